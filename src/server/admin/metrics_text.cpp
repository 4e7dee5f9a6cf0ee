// metrics_text.cpp  The text format of Prometheus: HELP, TYPE, then one line for each set of labels.
#include "server/admin/metrics_text.h"

#include <vector>

#include "server/learning/improve_desk.h"
#include "server/tracing/tracer.h"

namespace chimere::server {
namespace {

struct Line {
  std::string labels;  // {name="value"}, or nothing
  double value = 0;
};

void family(std::string& out, const std::string& name, const char* type, const char* help,
            const std::vector<Line>& lines) {
  out += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  for (const Line& line : lines) out += name + line.labels + " " + number_text(line.value) + "\n";
}

void gauge(std::string& out, const std::string& name, const char* help, double value) {
  family(out, name, "gauge", help, {{"", value}});
}

void counter(std::string& out, const std::string& name, const char* help, uint64_t value) {
  family(out, name, "counter", help, {{"", static_cast<double>(value)}});
}

// Values come from our own tables, but one may come from a file.
std::string label(const std::string& name, const std::string& value) {
  std::string text = "{" + name + "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? ' ' : c;
  }
  return text + "\"}";
}

const char* reason_name(size_t reason) {
  switch (static_cast<engine::FinishReason>(reason)) {
    case engine::FinishReason::stop: return "stop";
    case engine::FinishReason::length: return "length";
    case engine::FinishReason::cancelled: return "cancelled";
    case engine::FinishReason::deadline: return "deadline";
    case engine::FinishReason::loop: return "loop";
  }
  return "other";
}

void add_requests(std::string& out, const Monitor& monitor, const engine::EngineStats& stats) {
  std::vector<Line> lines;
  for (const auto& [key, n] : monitor.ended()) {
    const std::string status = key.second == 0 ? "client_left" : std::to_string(key.second);
    lines.push_back({"{route=\"" + (key.first.empty() ? "none" : key.first) + "\",status=\"" + status + "\"}",
                     static_cast<double>(n)});
  }
  family(out, "chimere_http_requests_total", "counter", "Requests that ended, by route and status.", lines);
  family(out, "chimere_batch_requests_total", "counter", "Requests of batches that have a result.",
         {{label("result", "completed"), static_cast<double>(monitor.batch_requests_completed)},
          {label("result", "failed"), static_cast<double>(monitor.batch_requests_failed)}});
  lines.clear();
  for (size_t i = 0; i < stats.finished_by_reason.size(); ++i) {
    lines.push_back({label("reason", reason_name(i)), static_cast<double>(stats.finished_by_reason[i])});
  }
  family(out, "chimere_answers_total", "counter", "Answers that the engine finished, by reason.", lines);
  counter(out, "chimere_answers_failed_total", "Answers that ended with an error.", stats.requests_failed);
  gauge(out, "chimere_requests_running", "Requests that are computed now.", stats.running);
  gauge(out, "chimere_requests_queued", "Requests that wait for a place.", stats.queued);
}

void add_tokens(std::string& out, const engine::EngineStats& stats) {
  counter(out, "chimere_prompt_tokens_total", "Tokens of prompts that were computed.", stats.prompt_tokens);
  counter(out, "chimere_prompt_tokens_reused_total", "Tokens of prompts whose state came from the cache.",
          stats.prompt_tokens_reused);
  counter(out, "chimere_generated_tokens_total", "Tokens of answers.", stats.generated_tokens);
  counter(out, "chimere_drafts_total", "Times that guesses at an answer's next tokens went into a step.", stats.drafts);
  counter(out, "chimere_draft_tokens_total", "Guesses that were computed.", stats.draft_tokens);
  counter(out, "chimere_draft_tokens_accepted_total", "Of these, guesses that became tokens of answers.",
          stats.draft_tokens_accepted);
  const speculative::DraftTimes& times = stats.draft_times;
  if (stats.drafts > 0) {
    gauge(out, "chimere_draft_mean_accepted_length", "Guesses accepted of a draft, on average since the start.",
          static_cast<double>(stats.draft_tokens_accepted) / static_cast<double>(stats.drafts));
  }
  family(out, "chimere_answer_steps_seconds_total", "counter", "Time of steps in which answers had a token.",
         {{"", times.steps}});
  family(out, "chimere_draft_seconds_total", "counter", "Of this, time that drafts cost.", {{"", times.spent}});
  family(out, "chimere_draft_saved_seconds_total", "counter",
         "Estimated time of the steps that accepted guesses made needless.", {{"", times.saved}});
  gauge(out, "chimere_draft_time_share", "Share of the time of answers' steps that drafts cost since the start.",
        times.share());
  gauge(out, "chimere_draft_gain", "How many times as fast answers were as without drafts, estimated since the start.",
        times.gain());
  std::vector<Line> tried, taken;
  for (int i = 0; i < speculative::kSources; ++i) {
    const auto source = static_cast<speculative::Source>(i);
    for (size_t place = 0; place < static_cast<size_t>(speculative::kPlaces); ++place) {
      const speculative::Tally::Count& count = stats.guesses.of(source)[place];
      if (count.tried == 0) continue;
      const std::string labels =
          std::string("{source=\"") + speculative::name(source) + "\",position=\"" + std::to_string(place) + "\"}";
      tried.push_back({labels, static_cast<double>(count.tried)});
      taken.push_back({labels, static_cast<double>(count.taken)});
    }
  }
  family(out, "chimere_draft_guesses_total", "counter", "Guesses that were computed, by source and place in the draft.",
         tried);
  family(out, "chimere_draft_guesses_accepted_total", "counter", "Of these, guesses that became tokens of answers.",
         taken);
  counter(out, "chimere_draft_model_rows_total", "Rows that the draft model computed.", stats.draft_model_rows);
  counter(out, "chimere_drafter_rows_total", "Rows of blocks that the DFlash drafter computed.", stats.drafter_rows);
  counter(out, "chimere_draft_pass_rows_total", "Rows that went through the model's MTP block.", stats.draft_pass_rows);
  counter(out, "chimere_draft_pass_tokens_total", "Of the guesses that were computed, those of the MTP block.",
          stats.draft_pass_tokens);
  counter(out, "chimere_draft_pass_tokens_accepted_total", "Of these, guesses that became tokens of answers.",
          stats.draft_pass_tokens_accepted);
}

void add_cache(std::string& out, const engine::CacheStats& cache) {
  counter(out, "chimere_cache_lookups_total", "Prompts looked up in the prefix cache.", cache.lookups);
  counter(out, "chimere_cache_hits_total", "Lookups that found something.", cache.hits);
  std::vector<Line> lines;
  for (const auto& [reason, n] : cache.misses) lines.push_back({label("reason", reason), static_cast<double>(n)});
  family(out, "chimere_cache_misses_total", "counter", "Lookups that found less than they could, by reason.", lines);
  family(out, "chimere_cache_bytes", "gauge", "Bytes of cached state, by tier.",
         {{label("tier", "ram"), static_cast<double>(cache.ram_bytes)},
          {label("tier", "disk"), static_cast<double>(cache.disk_bytes)}});
  gauge(out, "chimere_cache_disk_limit_bytes", "What cached state may take of the disk.",
        static_cast<double>(cache.disk_limit_bytes));
  counter(out, "chimere_cache_cleared_bytes_total", "Cached state that was removed because somebody asked for it.",
          cache.cleared_bytes);
  gauge(out, "chimere_cache_entries", "Positions at which state is kept.", static_cast<double>(cache.entries));
}

// Of experts on disk; nothing where none are.
void add_experts(std::string& out, const std::optional<ExpertTraffic>& experts) {
  if (!experts) return;
  gauge(out, "chimere_experts_ram_bytes", "Room in RAM for experts that are on disk.",
        static_cast<double>(experts->ram_bytes));
  counter(out, "chimere_expert_hits_total", "Uses of experts that were in RAM or on their way.", experts->hits);
  counter(out, "chimere_expert_misses_total", "Uses of experts that had to be read from disk.", experts->misses);
  counter(out, "chimere_experts_read_ahead_total", "Experts that were read before they were asked for.",
          experts->read_ahead);
  counter(out, "chimere_expert_bytes_read_total", "Bytes of experts that were read from disk.", experts->bytes_read);
}

// Of experts in RAM that a card reads; nothing where there are none.
void add_card_experts(std::string& out, const std::optional<CardTraffic>& experts) {
  if (!experts) return;
  gauge(out, "chimere_card_expert_slots", "Experts that have a slot on the card.",
        static_cast<double>(experts->n_slots));
  counter(out, "chimere_card_expert_hits_total", "Uses of experts that were in a slot.", experts->hits);
  counter(out, "chimere_card_expert_misses_total", "Uses of experts that were read from RAM.", experts->misses);
  counter(out, "chimere_card_expert_bytes_total", "Bytes of experts that were read over the bus.", experts->bytes_read);
  counter(out, "chimere_card_experts_moved_total", "Experts that were taken into a slot.", experts->moved);
}

Histogram batch_rows(const engine::EngineStats& stats) {
  std::vector<double> bounds;
  for (int i = 0; i + 1 < engine::kBatchSizes; ++i) bounds.push_back(1 << i);
  std::vector<uint64_t> counts(stats.steps_by_rows.begin(), stats.steps_by_rows.end());
  return Histogram(std::move(bounds), std::move(counts), static_cast<double>(stats.rows));
}

void add_memory(std::string& out, const engine::EngineStats& stats, uint64_t resident_bytes) {
  std::vector<Line> lines;
  for (const auto& [purpose, bytes] : stats.memory)
    lines.push_back({label("purpose", purpose), static_cast<double>(bytes)});
  family(out, "chimere_memory_bytes", "gauge", "Memory, by purpose.", lines);
  gauge(out, "chimere_state_limit_bytes", "Memory for the state of requests and of the prefix cache.",
        static_cast<double>(stats.shortage.limit_bytes));
  gauge(out, "chimere_state_memory_waiting", "Requests that wait for memory now.", stats.shortage.waiting);
  counter(out, "chimere_state_memory_waits_total", "Times that a request had to wait for memory.",
          stats.shortage.waits);
  counter(out, "chimere_state_memory_refusals_total", "Times that the device had less memory than the limit.",
          stats.shortage.refusals);
  counter(out, "chimere_states_given_back_total", "Times that a request gave its state back, to be computed again.",
          stats.shortage.given_back);
  gauge(out, "chimere_sleeping_bytes", "Memory of the card that is given away while the model sleeps.",
        static_cast<double>(stats.asleep_bytes));
  gauge(out, "process_resident_memory_bytes", "Memory of the process.", static_cast<double>(resident_bytes));
}

// By stage of the orchestrator: nothing where there is none, or where nobody has asked it.
void add_stages(std::string& out, const std::map<std::string, odo::StageCount>& stages) {
  if (stages.empty()) return;
  const std::vector<double> bounds(odo::kStageSeconds.begin(), odo::kStageSeconds.end());
  const std::string name = "chimere_odo_stage_seconds";
  std::string seconds = Histogram::head(name, "Time of a step of the orchestrator, by stage.");
  std::vector<Line> n;
  for (const auto& [stage, count] : stages) {
    const std::string braced = label("stage", stage);
    const std::string own = braced.substr(1, braced.size() - 2);
    const auto with_result = [&own](const char* result) { return "{" + own + ",result=\"" + result + "\"}"; };
    n.push_back({with_result("done"), static_cast<double>(count.n - count.failed - count.skipped)});
    n.push_back({with_result("failed"), static_cast<double>(count.failed)});
    n.push_back({with_result("skipped"), static_cast<double>(count.skipped)});
    const std::vector<uint64_t> counts(count.by_seconds.begin(), count.by_seconds.end());
    seconds += Histogram(bounds, counts, count.seconds).lines(name, own);
  }
  family(out, "chimere_odo_steps_total", "counter", "Steps of the orchestrator, by stage and result.", n);
  out += seconds;
}

}  // namespace

std::string metrics_text(const Monitor& monitor, const engine::EngineStats& stats, uint64_t resident_bytes,
                         const std::optional<retrieval::NoteUsage>& learned,
                         const std::map<std::string, odo::StageCount>& stages) {
  std::string out;
  const auto now = Monitor::Clock::now();
  gauge(out, "chimere_uptime_seconds", "Since the server started.",
        std::chrono::duration<double>(now - monitor.started).count());
  add_requests(out, monitor, stats);
  add_tokens(out, stats);
  counter(out, "chimere_engine_stalls_total", "Times that --dump-on-stall found the engine stalled.", monitor.stalls);
  out += monitor.first_token_seconds.text("chimere_time_to_first_token_seconds",
                                          "From the head of a request to the first token of its answer.");
  out += monitor.tokens_per_second.text("chimere_generated_tokens_per_second", "Speed of an answer.");
  out += monitor.queue_seconds.text("chimere_queue_seconds", "Time a request waited for its place.");
  out +=
      monitor.request_seconds.text("chimere_request_seconds", "From the head of a request to the end of its answer.");
  out += batch_rows(stats).text("chimere_batch_rows", "Rows of the engine's steps.");
  add_experts(out, stats.experts);
  add_card_experts(out, stats.card_experts);
  add_cache(out, stats.cache);
  add_memory(out, stats, resident_bytes);
  if (monitor.collections) {
    gauge(out, "chimere_collection_documents", "Documents in collections.",
          static_cast<double>(monitor.collections->documents));
    gauge(out, "chimere_collection_chunks", "Chunks of these.", static_cast<double>(monitor.collections->chunks));
    gauge(out, "chimere_collection_bytes", "Bytes of their text.", static_cast<double>(monitor.collections->bytes));
    counter(out, "chimere_collection_documents_added_total", "Documents that were added or replaced.",
            monitor.documents_added);
    out += monitor.search_seconds.text("chimere_collection_search_seconds", "Time of a search in a collection.");
  }
  if (learned) {
    gauge(out, "chimere_engram_learned_bytes", "Bytes of the notes and tables of all users.",
          static_cast<double>(learned->bytes));
    gauge(out, "chimere_engram_users", "Users that have notes or a table.", static_cast<double>(learned->files));
  }
  add_stages(out, stages);
  if (monitor.tracer) {
    const Tracer::Counts counts = monitor.tracer->counts();
    family(out, "chimere_trace_spans_total", "counter", "Spans that were to be sent to a collector, by result.",
           {{label("result", "sent"), static_cast<double>(counts.sent)},
            {label("result", "dropped"), static_cast<double>(counts.dropped)}});
    counter(out, "chimere_trace_failures_total", "Exchanges with the collector that failed.", counts.failures);
  }
  return out;
}

std::string journal_metrics_text(const store::JournalCounts& counts) {
  std::string out;
  family(out, "chimere_journal_answers_total", "counter", "Answers that were to be kept to learn from, by result.",
         {{label("result", "kept"), static_cast<double>(counts.kept)},
          {label("result", "dropped"), static_cast<double>(counts.dropped)},
          {label("result", "failed"), static_cast<double>(counts.failed)}});
  family(out, "chimere_journal_waiting", "gauge", "Answers that wait to be written: many where its database is away.",
         {{"", static_cast<double>(counts.waiting)}});
  std::vector<Line> said;
  for (const auto& [kind, n] : counts.feedback) said.push_back({label("kind", kind), static_cast<double>(n)});
  if (!said.empty()) family(out, "chimere_feedback_total", "counter", "What people said of answers, by kind.", said);
  return out;
}

std::string improve_metrics_text(const ImproveCounts& counts, bool is_running, bool is_paused) {
  std::string out;
  family(out, "chimere_improve_jobs_total", "counter", "Jobs that learn, by what became of their process.",
         {{label("result", "started"), static_cast<double>(counts.started)},
          {label("result", "ended"), static_cast<double>(counts.ended)},
          {label("result", "failed"), static_cast<double>(counts.failed)}});
  family(out, "chimere_improve_pauses_total", "counter", "Times that a job stood still for people.",
         {{"", static_cast<double>(counts.pauses)}});
  gauge(out, "chimere_improve_running", "1 while a job runs, also while it stands still.", is_running ? 1 : 0);
  gauge(out, "chimere_improve_paused", "1 while a job stands still for people.", is_paused ? 1 : 0);
  return out;
}

}  // namespace chimere::server
