// request_record.cpp  The counts and the log line of a request.
#include "server/http/request_record.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <exception>

#include "server/http/json.h"
#include "server/http/key_usage.h"
#include "server/http/log.h"
#include "server/tracing/request_spans.h"
#include "server/tracing/tracer.h"

namespace chimere::server {
namespace {

double per_second(int n, double seconds) { return seconds > 0 ? n / seconds : 0; }

// The first token is prefill's.
double answer_rate(const engine::Usage& usage) { return per_second(usage.completion_tokens - 1, usage.decode_seconds); }

std::optional<TraceId> trace_of(const std::optional<TraceParent>& parent, bool is_traced) {
  if (parent) return parent->trace;
  return is_traced ? std::optional(new_trace_id()) : std::nullopt;
}

double rounded(double value) { return static_cast<double>(static_cast<int64_t>(value * 1000 + 0.5)) / 1000; }

}  // namespace

RequestRecord::RequestRecord(const HttpRequest& request, std::string route, Monitor& monitor)
    : monitor_(monitor),
      id_(request.id),
      client_(request.client),
      method_(printable(request.method)),
      path_(printable(request.path)),
      route_(std::move(route)),
      trace_parent_(parse_traceparent(request.header("traceparent"))),
      trace_(trace_of(trace_parent_, monitor.tracer != nullptr)) {
  monitor_.add(this);
}

RequestRecord::~RequestRecord() {
  monitor_.remove(this);
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  try {
    count(seconds);
    if (failures_only_ && status_ < 400) return;
    write_line(seconds);
    // Who began the trace says whether it is kept.
    if (monitor_.tracer && (!trace_parent_ || trace_parent_->is_sampled)) trace();
  } catch (const std::exception&) {
    // No memory for a line or a span, most likely because this very request took it all. It must not take the process along.
  }
}

void RequestRecord::set_usage(const engine::Usage& usage, const char* finish) {
  usage_ = usage;
  finish_ = finish;
}

void RequestRecord::end_answer(const orchestrator::ChatChunk& last) {
  if (!monitor_.tracer) return;
  if (last.run) {
    runs_.push_back(*last.run);
  } else {
    answers_.push_back({Clock::now(), last.usage});
  }
}

void RequestRecord::trace() const {
  TracedRequest traced;
  traced.trace = *trace_;
  traced.parent = trace_parent_;
  traced.id = id_;
  traced.client = client_;
  traced.method = method_;
  traced.path = path_;
  traced.route = route_;
  traced.status = status_;
  traced.begin = start_;
  traced.end = Clock::now();
  traced.first_token = first_token_time();
  traced.usage = usage_;
  traced.finish = finish_;
  traced.answers = answers_;
  traced.runs = runs_;
  monitor_.tracer->add(request_spans(traced, monitor_.tracer->with_texts()));
}

void RequestRecord::add_answer(std::string_view text) {
  if (!owner_.empty()) answer_ += text.substr(0, RecentAnswers::kMaxBytes + 1 - answer_.size());
}

void RequestRecord::keep_answer() {
  if (!owner_.empty()) monitor_.answers.put(id_, owner_, std::move(answer_));
}

void RequestRecord::cancel(CancelledBy who) {
  if (cancelled_by_ == CancelledBy::nobody) cancelled_by_ = who;
  for (orchestrator::AnswerStream* stream : streams_) stream->cancel();
  if (cancel_work_) cancel_work_();
}

ApiError RequestRecord::cancel_error() const {
  // A client's library tries again after a 503, which is right when the server comes back, and wrong when somebody
  // wanted this request to end.
  if (cancelled_by_ == CancelledBy::a_call) {
    return {400, "the request was cancelled", "invalid_request_error", "", "cancelled"};
  }
  if (cancelled_by_ == CancelledBy::no_reader) {
    return {503, "the answer was given up: nothing of it was read for a while, and other requests waited",
            "server_error", "", "not_read"};
  }
  return {503, "the server is stopping", "server_error", "", "cancelled"};
}

std::optional<RequestRecord::Clock::time_point> RequestRecord::first_token_time() const {
  std::optional<Clock::time_point> first;
  for (const orchestrator::AnswerStream* stream : streams_) {
    const auto time = stream->first_token_time();
    if (time && (!first || *time < *first)) first = time;
  }
  return first;
}

double RequestRecord::first_token_seconds() const {
  const auto first = first_token_time();
  return first ? std::chrono::duration<double>(*first - start_).count() : -1;
}

void RequestRecord::count(double seconds) {
  monitor_.count(route_, status_);
  if (monitor_.key_usage) count_for_key();
  if (usage_.prompt_tokens == 0) return;
  monitor_.request_seconds.add(seconds);
  monitor_.queue_seconds.add(usage_.queue_seconds);
  if (const double first = first_token_seconds(); first >= 0) monitor_.first_token_seconds.add(first);
  if (usage_.completion_tokens > 1) monitor_.tokens_per_second.add(answer_rate(usage_));
}

// A client that leaves before the end has used what was computed for it until then.
void RequestRecord::count_for_key() {
  engine::Usage used = usage_;
  if (used.prompt_tokens == 0) {
    for (const orchestrator::AnswerStream* stream : streams_) {
      used.prompt_tokens = std::max(used.prompt_tokens, stream->seen().prompt_tokens);
      used.completion_tokens += stream->seen().completion_tokens;
    }
  }
  // A prompt that was refused has cost nothing.
  if (used.prompt_tokens == 0 || (status_ >= 400 && used.completion_tokens == 0)) return;
  const auto counted = [](int32_t n) { return static_cast<uint64_t>(std::max(n, 0)); };
  monitor_.key_usage->add(client_,
                          {counted(used.prompt_tokens), counted(used.cached_tokens), counted(used.completion_tokens)});
}

void RequestRecord::write_line(double seconds) const {
  Json json;
  json["event"] = "request";
  json["request_id"] = id_;
  if (trace_) json["trace_id"] = hex_text(*trace_);
  if (!client_.empty()) json["client"] = client_;
  json["method"] = method_;
  json["path"] = path_;
  json["status"] = status_;
  json["ms"] = rounded(seconds * 1000);
  std::string text = fmt::format("{} {}{}{} {} {} {:.0f} ms", id_, client_, client_.empty() ? "" : " ", method_, path_,
                                 status_ == 0 ? "client left" : std::to_string(status_), seconds * 1000);
  if (usage_.prompt_tokens > 0) {
    const double first = first_token_seconds();
    const double prompt_rate = per_second(usage_.prompt_tokens - usage_.cached_tokens, usage_.prefill_seconds);
    const double rate = answer_rate(usage_);
    json["queue_ms"] = rounded(usage_.queue_seconds * 1000);
    if (first >= 0) json["first_token_ms"] = rounded(first * 1000);
    json["prompt_tokens"] = usage_.prompt_tokens;
    json["cached_tokens"] = usage_.cached_tokens;
    json["prompt_per_second"] = rounded(prompt_rate);
    json["completion_tokens"] = usage_.completion_tokens;
    json["generated_per_second"] = rounded(rate);
    text += fmt::format(", queue {:.0f} ms", usage_.queue_seconds * 1000);
    if (first >= 0) text += fmt::format(", first token {:.0f} ms", first * 1000);
    text += fmt::format(", prompt {} tokens ({} cached, {:.1f} tok/s), answer {} tokens ({:.1f} tok/s)",
                        usage_.prompt_tokens, usage_.cached_tokens, prompt_rate, usage_.completion_tokens, rate);
  }
  if (!finish_.empty()) {
    json["finish"] = finish_;
    text += ", " + finish_;
  }
  log_facts(text, to_text(json));
}

}  // namespace chimere::server
