// status_json.cpp  The parts of /v1/status.
#include "server/admin/status_json.h"

#include "server/http/access.h"
#include "server/http/monitor.h"
#include "server/protocols/shared/answer_json.h"

namespace chimere::server {
namespace {

using orchestrator::ModelInfo;

Json model_json(const ModelInfo& model, int context_length) {
  Json json;
  json["name"] = model.name;
  json["architecture"] = model.architecture;
  json["backend"] = model.backend;
  json["file_bytes"] = model.file_bytes;
  json["parameters"] = model.parameters;
  json["context_length"] = context_length;
  json["vocabulary"] = model.vocabulary;
  json["experts"] = model.experts;
  json["experts_used"] = model.experts_used;
  json["thinking"] = model.thinking;
  json["tools"] = model.tools;
  if (const ModelInfo::Places& at = model.placement; !at.text.empty()) {
    json["placement"] = Json{{"text", at.text},
                             {"expert_layers", at.expert_layers},
                             {"expert_layers_in_ram", at.expert_layers_in_ram},
                             {"layers_in_ram", at.layers_in_ram},
                             {"ram_bytes", at.ram_bytes},
                             {"card_bytes", at.card_bytes},
                             {"card_budget_bytes", at.card_budget_bytes}};
  }
  json["layers"] = Json::array();
  for (const ModelInfo::Layer& layer : model.layers) {
    json["layers"].push_back(Json{{"mixer", layer.mixer}, {"ffn", layer.ffn}});
  }
  json["formats"] = Json::array();
  for (const ModelInfo::Format& format : model.formats) {
    json["formats"].push_back(Json{{"type", format.type}, {"tensors", format.tensors}, {"bytes", format.bytes}});
  }
  return json;
}

Json cache_json(const engine::EngineStats& stats) {
  const engine::CacheStats& cache = stats.cache;
  Json json;
  json["lookups"] = cache.lookups;
  json["hits"] = cache.hits;
  json["tokens_reused"] = stats.prompt_tokens_reused;
  json["tokens_computed"] = stats.prompt_tokens;
  json["misses"] = Json::object();
  for (const auto& [reason, n] : cache.misses) json["misses"][reason] = n;
  json["ram_bytes"] = cache.ram_bytes;
  json["disk_bytes"] = cache.disk_bytes;
  json["budget_bytes"] = cache.budget_bytes;
  json["entries"] = cache.entries;
  return json;
}

Json shortage_json(const engine::Shortage& shortage) {
  return {{"wanted_bytes", shortage.wanted_bytes},
          {"limit_bytes", shortage.limit_bytes},
          {"is_short", shortage.waiting > 0},
          {"waiting", shortage.waiting},
          {"waits", shortage.waits},
          {"refusals", shortage.refusals},
          {"given_back", shortage.given_back}};
}

// Of sources that were tried, with the positions in a draft up to the last that was.
Json sources_json(const speculative::Tally& guesses) {
  Json json = Json::array();
  for (int i = 0; i < speculative::kSources; ++i) {
    const auto source = static_cast<speculative::Source>(i);
    const auto count_json = [](const speculative::Tally::Count& count) {
      return Json{{"draft_tokens", count.tried}, {"accepted_tokens", count.taken}};
    };
    const speculative::Tally::Count total = guesses.total(source);
    if (total.tried == 0) continue;
    Json one = count_json(total);
    one["source"] = speculative::name(source);
    uint64_t left = total.tried;
    for (const speculative::Tally::Count& count : guesses.of(source)) {
      if (left == 0) break;
      one["by_position"].push_back(count_json(count));
      left -= count.tried;
    }
    json.push_back(std::move(one));
  }
  return json;
}

Json steps_json(const std::vector<std::pair<int, double>>& steps) {
  Json json = Json::array();
  for (const auto& [rows, seconds] : steps) json.push_back(Json{{"rows", rows}, {"ms", seconds * 1000}});
  return json;
}

Json control_json(const engine::DraftControl& control) {
  Json json{{"may_pay", control.may_pay}, {"answers_drafted", control.n_answers}, {"depth", control.depth}};
  json["chances"] = Json::array();
  for (const engine::DraftControl::Chances& of : control.chances) {
    json["chances"].push_back(
        Json{{"source", speculative::name(of.source)}, {"chances", of.chances}, {"counted", of.tried}});
  }
  if (control.step_seconds.empty()) return json;
  json["open_ms"] = control.open_seconds * 1000;
  json["back_ms"] = control.back_seconds * 1000;
  json["step_ms"] = steps_json(control.step_seconds);
  return json;
}

Json drafter_json(const engine::EngineStats& stats) {
  const speculative::Tally::Count total = stats.guesses.total(speculative::Source::dflash);
  Json json{{"block_rows", stats.drafter.block_rows},
            {"rows", stats.drafter_rows},
            {"draft_tokens", total.tried},
            {"accepted_tokens", total.taken}};
  if (stats.drafter.block_seconds > 0) {
    json["block_ms"] = stats.drafter.block_seconds * 1000;
    json["guess_ms"] = stats.drafter.guess_seconds * 1000;
  }
  return json;
}

Json speculation_json(const engine::EngineStats& stats) {
  Json json;
  json["mode"] = speculative::name(stats.speculate);
  json["drafts"] = stats.drafts;
  json["draft_tokens"] = stats.draft_tokens;
  json["accepted_tokens"] = stats.draft_tokens_accepted;
  add_draft_figures(json, stats.drafts, stats.draft_tokens_accepted, stats.draft_times);
  json["mtp"] = Json{{"loaded", stats.has_draft_pass},
                     {"draft_tokens", stats.draft_pass_tokens},
                     {"accepted_tokens", stats.draft_pass_tokens_accepted}};
  if (stats.pass_seconds > 0) json["mtp"]["guess_ms"] = stats.pass_seconds * 1000;
  if (!stats.draft_model.empty()) {
    json["draft_model"] = Json{{"name", stats.draft_model}, {"rows", stats.draft_model_rows}};
    if (stats.draft_model_seconds > 0) json["draft_model"]["guess_ms"] = stats.draft_model_seconds * 1000;
  }
  if (stats.drafter.block_rows > 0) json["drafter"] = drafter_json(stats);
  json["sources"] = sources_json(stats.guesses);
  json["step_ms"] = steps_json(stats.step_seconds);
  json["controller"] = control_json(stats.draft_control);
  return json;
}

Json experts_json(const ExpertTraffic& experts) {
  return {{"count", experts.n_experts},       {"bytes", experts.all_bytes},
          {"ram_bytes", experts.ram_bytes},   {"hits", experts.hits},
          {"misses", experts.misses},         {"read_ahead", experts.read_ahead},
          {"bytes_read", experts.bytes_read}, {"waited_seconds", experts.waited_s}};
}

Json card_experts_json(const CardTraffic& experts) {
  return {{"count", experts.n_experts},       {"bytes", experts.ram_bytes}, {"slots", experts.n_slots},
          {"card_bytes", experts.slot_bytes}, {"hits", experts.hits},       {"misses", experts.misses},
          {"bytes_read", experts.bytes_read}, {"moved", experts.moved}};
}

}  // namespace

Json status_json(const Services& services) {
  const engine::EngineStats stats = services.chat.engine().stats();
  const auto now = Monitor::Clock::now();
  const TokenRates rates = services.monitor.rates(stats, now);
  Json json;
  json["version"] = services.version;
  json["uptime_seconds"] = std::chrono::duration<double>(now - services.monitor.started).count();
  json["model"] = model_json(services.chat.model_info(), services.chat.context_length());
  json["load"] = Json{{"running", stats.running},
                      {"queued", stats.queued},
                      {"max_running", stats.max_running},
                      {"max_queued", stats.max_queued},
                      {"batch_rows", stats.batch_rows}};
  json["is_sleeping"] = stats.asleep_bytes > 0;
  json["waits_for_card"] = stats.asleep_bytes > 0 && stats.queued > 0;
  json["tokens"] = Json{{"prompt_total", stats.prompt_tokens},
                        {"prompt_reused_total", stats.prompt_tokens_reused},
                        {"generated_total", stats.generated_tokens},
                        {"prompt_per_second", rates.prompt},
                        {"generated_per_second", rates.generated}};
  json["speculation"] = speculation_json(stats);
  json["cache"] = cache_json(stats);
  json["state_memory"] = shortage_json(stats.shortage);
  if (stats.experts) json["experts_on_disk"] = experts_json(*stats.experts);
  if (stats.card_experts) json["experts_in_ram"] = card_experts_json(*stats.card_experts);
  json["memory"] = Json::array();
  for (const auto& [purpose, bytes] : stats.memory) {
    json["memory"].push_back(Json{{"purpose", purpose}, {"bytes", bytes}});
  }
  if (&services.embedder == &services.chat.embedder()) return json;
  uint64_t embedder_bytes = 0;
  for (const auto& [purpose, bytes] : services.embedder.engine_stats().memory) embedder_bytes += bytes;
  json["memory"].push_back(Json{{"purpose", "embedding model"}, {"bytes", embedder_bytes}});
  json["embedding_model"] = Json{{"name", services.embedder.model_name()},
                                 {"dimensions", services.embedder.dimensions()},
                                 {"context_length", services.embedder.context_length()}};
  return json;
}

namespace {

Json counts_json(const TokenCounts& counts) {
  return {{"prompt", counts.prompt}, {"cached", counts.cached}, {"generated", counts.generated}};
}

Json key_json(const Access& access, const std::string& name, const KeyUsage::Counts& counts) {
  const uint64_t budget = access.tokens_per_day(name);
  return {{"name", name.empty() ? Json() : Json(name)},
          {"today", counts_json(counts.today)},
          {"all", counts_json(counts.all)},
          {"tokens_per_day", budget > 0 ? Json(budget) : Json()}};
}

}  // namespace

Json keys_json(const Access& access, const HttpRequest& request) {
  Json json = Json::array();
  if (!request.is_admin) {
    json.push_back(key_json(access, request.client, access.usage().of(request.client)));
    return json;
  }
  for (const auto& [name, counts] : access.usage().all()) json.push_back(key_json(access, name, counts));
  return json;
}

}  // namespace chimere::server
