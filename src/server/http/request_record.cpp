// request_record.cpp  The counts and the log line of a request.
#include "server/http/request_record.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <exception>

#include "server/http/json.h"
#include "server/http/key_usage.h"
#include "server/http/log.h"

namespace chimere::server {
namespace {

double per_second(int n, double seconds) { return seconds > 0 ? n / seconds : 0; }

// The first token is prefill's.
double answer_rate(const engine::Usage& usage) { return per_second(usage.completion_tokens - 1, usage.decode_seconds); }

double rounded(double value) { return static_cast<double>(static_cast<int64_t>(value * 1000 + 0.5)) / 1000; }

}  // namespace

RequestRecord::RequestRecord(const HttpRequest& request, std::string route, Monitor& monitor)
    : monitor_(monitor),
      id_(request.id),
      client_(request.client),
      method_(printable(request.method)),
      path_(printable(request.path)),
      route_(std::move(route)) {
  monitor_.add(this);
}

RequestRecord::~RequestRecord() {
  monitor_.remove(this);
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  try {
    count(seconds);
    if (!failures_only_ || status_ >= 400) write_line(seconds);
  } catch (const std::exception&) {
    // No memory for a line, most likely because this very request took it all. It must not take the process along.
  }
}

void RequestRecord::set_usage(const engine::Usage& usage, const char* finish) {
  usage_ = usage;
  finish_ = finish;
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

double RequestRecord::first_token_seconds() const {
  double first = -1;
  for (const orchestrator::AnswerStream* stream : streams_) {
    const auto time = stream->first_token_time();
    if (!time) continue;
    const double seconds = std::chrono::duration<double>(*time - start_).count();
    if (first < 0 || seconds < first) first = seconds;
  }
  return first;
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
