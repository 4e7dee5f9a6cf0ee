// llama_endpoints.cpp  What llama.cpp's server has beside OpenAI's API: /completion, /infill, /apply-template,
// /props, /slots.
// Its paths without /v1 are in routes.cpp.
#include <utility>

#include "server/endpoints.h"
#include "server/http/json.h"
#include "server/job_answer.h"
#include "server/protocols/llama_request.h"
#include "server/protocols/llama_response.h"
#include "server/protocols/openai_chat_request.h"
#include "server/protocols/shared/answer_generated.h"
#include "server/protocols/shared/engram_field.h"

namespace chimere::server {
namespace {

using engine::RequestInfo;
using engine::RequestState;

std::unique_ptr<Answer> complete_llama(const Services& services, Call call, LlamaCall& asked) {
  if (const auto error = services.names.refuse_to_chat(asked.model)) return answer_now(call, error_response(*error));
  Generation generation;
  for (orchestrator::CompletionRequest& prompt : asked.prompts) {
    prompt.memory.owner = memory_owner(call.request.client, asked.user);
    services.limit(prompt, call);
    for (auto& choice : services.chat.complete(std::move(prompt), 1, call.wake)) {
      generation.choices.push_back(std::move(choice));
    }
  }
  generation.writer = llama_writer({services.names.chat, std::move(asked.settings), services.chat.context_length(),
                                    asked.is_list, asked.n_probs > 0, asked.return_tokens, std::move(asked.fields)});
  generation.prompt_field = "prompt";
  return answer_generated(services, call, std::move(asked), std::move(generation));
}

// {"prompt": the text that the messages become}
std::unique_ptr<Answer> apply_template(const Services& services, Call call, ChatCall& asked) {
  asked.request.memory.owner = memory_owner(call.request.client, asked.user);
  services.limit(asked.request, call);
  auto job = services.chat.render(std::move(asked.request), call.wake);
  const auto write = [](const std::string& prompt) { return json_response(Json{{"prompt", prompt}}); };
  return std::make_unique<JobAnswer<std::string>>(std::move(job), std::move(call.record), write, to_api_error,
                                                  ignored_header(asked.ignored));
}

Json props_json(const Services& services) {
  const orchestrator::ChatService& chat = services.chat;
  orchestrator::CompletionRequest usual;
  chat.defaults().apply_to(usual);
  Json json;
  json["default_generation_settings"] = Json{{"n_ctx", chat.context_length()}, {"params", llama_settings(usual)}};
  json["total_slots"] = chat.engine().stats().max_running;
  json["model_alias"] = services.names.chat;
  json["model_path"] = services.names.chat + ".gguf";  // its name: where it lies is nobody's business
  json["modalities"] = Json{{"vision", false}, {"audio", false}};
  json["build_info"] = "chimere " + services.version;
  json["is_sleeping"] = false;
  return json;
}

// As many as answer at a time. Here no request has a slot of its own: those that run are shown in the first ones.
Json slots_json(const Services& services) {
  const engine::Engine& engine = services.chat.engine();
  const engine::EngineStats stats = engine.stats();
  std::vector<RequestInfo> running;
  for (const RequestInfo& info : engine.list()) {
    if (info.state != RequestState::queued) running.push_back(info);
  }
  Json slots = Json::array();
  for (size_t i = 0; i < static_cast<size_t>(stats.max_running); ++i) {
    Json slot;
    slot["id"] = i;
    slot["n_ctx"] = engine.context_length();
    slot["is_processing"] = i < running.size();
    slot["speculative"] = i < running.size() ? running[i].may_draft : stats.speculate != speculative::Mode::off;
    if (i < running.size()) {
      slot["id_task"] = running[i].id;
      slot["next_token"] = Json::array({Json{{"n_decoded", running[i].completion_tokens}, {"has_next_token", true}}});
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

}  // namespace

void add_llama_endpoints(Router& router, const Services& services) {
  const orchestrator::ChatService& chat = services.chat;
  add_parsed_route(
      router, services, "/completion",
      [&chat](const std::string& body) { return parse_llama_completion(body, chat.defaults(), chat.tokenizer()); },
      complete_llama);
  add_parsed_route(
      router, services, "/infill",
      [&chat](const std::string& body) { return parse_llama_infill(body, chat.defaults(), chat.tokenizer()); },
      complete_llama);
  add_parsed_route(
      router, services, "/apply-template",
      [&chat](const std::string& body) { return parse_chat_call(body, chat.defaults()); }, apply_template);
  router.add({.method = "GET", .path = "/props", .handler = [services](Call call) {
                return answer_now(call, json_response(props_json(services)));
              }});
  router.add({.method = "GET", .path = "/slots", .handler = [services](Call call) {
                if (!services.slots) {
                  return answer_now(call, error_response({501, "this server was started with --no-slots",
                                                          "not_supported_error", "", "not_supported"}));
                }
                return answer_now(call, json_response(slots_json(services)));
              }});
}

}  // namespace chimere::server
