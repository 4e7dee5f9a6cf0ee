// answer_json.cpp  Tokens, usage and timings.
#include "server/protocols/shared/answer_json.h"

#include <utility>

#include "chat/json_stream.h"

namespace chimere::server {

using orchestrator::Finish;
using orchestrator::TokenChance;
using orchestrator::TokenInfo;

namespace {

Json chance_json(const TokenChance& chance) {
  Json json;
  json["token"] = chance.bytes;
  json["logprob"] = shown_logprob(chance.logprob);
  Json bytes = Json::array();
  for (const char c : chance.bytes) bytes.push_back(static_cast<unsigned char>(c));
  json["bytes"] = std::move(bytes);
  return json;
}

double tokens_per_second(int n, double seconds) { return seconds > 0 ? n / seconds : 0; }

}  // namespace

float shown_logprob(float logprob) { return logprob >= kLowestLogprob ? logprob : kLowestLogprob; }

Json logprobs_json(const std::vector<TokenInfo>& tokens) {
  Json content = Json::array();
  for (const TokenInfo& token : tokens) {
    Json entry = chance_json(token.token);
    entry["top_logprobs"] = Json::array();
    for (const TokenChance& other : token.top) entry["top_logprobs"].push_back(chance_json(other));
    content.push_back(std::move(entry));
  }
  return content;
}

Json token_stats_json(const std::vector<TokenInfo>& tokens) {
  Json list = Json::array();
  for (const TokenInfo& token : tokens) {
    Json entry;
    entry["token"] = token.token.bytes;
    entry["entropy"] = token.entropy;
    entry["certainty"] = token.certainty;
    if (token.was_guessed) entry["guessed"] = true;
    list.push_back(std::move(entry));
  }
  return list;
}

void add_passages(Json& json, const std::vector<orchestrator::UsedPassage>& passages) {
  for (const orchestrator::UsedPassage& passage : passages) {
    Json entry{{"source", passage.source}, {"score", passage.score}, {"text", passage.text}};
    if (passage.note != 0) entry["id"] = passage.note;
    json["engram"][passage.note != 0 ? "notes" : "passages"].push_back(std::move(entry));
  }
}

void add_progress(Json& json, const orchestrator::ChatChunk& chunk) {
  if (!chunk.progress) return;
  json["prompt_progress"] =
      Json{{"total", chunk.progress->total}, {"cache", chunk.progress->cached}, {"processed", chunk.progress->read}};
}

void add_draft_figures(Json& json, uint64_t n_drafts, uint64_t n_accepted, const speculative::DraftTimes& times) {
  if (n_drafts > 0) json["mean_accepted_length"] = static_cast<double>(n_accepted) / static_cast<double>(n_drafts);
  if (times.steps <= 0) return;
  json["draft_time_share"] = times.share();
  json["draft_gain"] = times.gain();
}

Json timings_json(const engine::Usage& usage) {
  Json json;
  json["queue_ms"] = usage.queue_seconds * 1000;
  json["prefill_ms"] = usage.prefill_seconds * 1000;
  json["decode_ms"] = usage.decode_seconds * 1000;
  json["prompt_per_second"] = tokens_per_second(usage.prompt_tokens - usage.cached_tokens, usage.prefill_seconds);
  json["generated_per_second"] = tokens_per_second(usage.completion_tokens, usage.decode_seconds);
  // As llama.cpp names them.
  json["cache_n"] = usage.cached_tokens;
  json["prompt_n"] = usage.prompt_tokens - usage.cached_tokens;
  json["prompt_ms"] = usage.prefill_seconds * 1000;
  json["predicted_n"] = usage.completion_tokens;
  json["predicted_ms"] = usage.decode_seconds * 1000;
  json["predicted_per_second"] = tokens_per_second(usage.completion_tokens, usage.decode_seconds);
  // And as it does only where something was drafted.
  if (usage.draft_tokens > 0) {
    json["draft_n"] = usage.draft_tokens;
    json["draft_n_accepted"] = usage.draft_tokens_accepted;
    add_draft_figures(json, static_cast<uint64_t>(usage.drafts), static_cast<uint64_t>(usage.draft_tokens_accepted),
                      usage.draft_times);
  }
  return json;
}

void add_usage(Json& json, const engine::Usage& usage) {
  Json& counts = json["usage"];
  counts["prompt_tokens"] = usage.prompt_tokens;
  counts["completion_tokens"] = usage.completion_tokens;
  counts["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  counts["prompt_tokens_details"]["cached_tokens"] = usage.cached_tokens;
  counts["completion_tokens_details"]["reasoning_tokens"] = usage.reasoning_tokens;
  json["timings"] = timings_json(usage);
}

Json arguments_object(const std::string& arguments) {
  auto json = parse_json(arguments);
  if (!json) json = parse_json(chat::closed_json(arguments));
  return json && json->is_object() ? std::move(*json) : Json::object();
}

}  // namespace chimere::server
