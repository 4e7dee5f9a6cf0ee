#include "server/learning/learning_json.h"

#include <utility>

namespace chimere::server {
namespace {

// What the journal wrote itself.
Json parsed(const std::string& text) {
  auto json = parse_json(text);
  return json ? std::move(*json) : Json();
}

}  // namespace

Json kept_json(const store::KeptAnswer& kept) {
  Json json{{"object", "learning.answer"},
            {"id", kept.id},
            {"request_id", kept.request_id},
            {"answer_id", kept.answer_id},
            {"conversation", kept.conversation},
            {"created", kept.created},
            {"model", kept.model},
            {"route", kept.route},
            {"artefacts", parsed(kept.artefacts)},
            {"foreign", parsed(kept.foreign)},
            {"messages", parsed(kept.messages)},
            {"answer", kept.answer},
            {"tool_calls", parsed(kept.tool_calls)},
            {"finish_reason", kept.finish},
            {"prompt_tokens", kept.prompt_tokens},
            {"completion_tokens", kept.completion_tokens},
            {"ms", kept.milliseconds},
            {"rating", nullptr},
            {"feedback", Json::array()}};
  if (!kept.tools.empty()) json["tools"] = parsed(kept.tools);
  if (const int rating = kept.rating(); rating > 0) json["rating"] = rating;
  if (kept.scored > 0) {
    json["score"] = {{"score", kept.scored}, {"scorer", kept.scorer}, {"reason", kept.score_reason}};
  }
  for (const auto& said : kept.feedback) {
    Json one{{"kind", said.kind}, {"created", said.at}};
    if (said.rating > 0) one["rating"] = said.rating;
    if (!said.text.empty()) one["text"] = said.text;
    json["feedback"].push_back(std::move(one));
  }
  return json;
}

}  // namespace chimere::server
