// request_record.cpp  The log line of a request.
#include "server/request_record.h"

#include <spdlog/spdlog.h>

namespace chimere::server {
namespace {

// What a client sent must not forge lines of the log.
std::string printable(std::string text) {
  constexpr size_t kLongest = 100;
  if (text.size() > kLongest) text.replace(kLongest, std::string::npos, "...");
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

double per_second(int n, double seconds) { return seconds > 0 ? n / seconds : 0; }

}  // namespace

RequestRecord::RequestRecord(const HttpRequest& request)
    : id_(request.id), method_(printable(request.method)), path_(printable(request.path)) {}

void RequestRecord::set_usage(const engine::Usage& usage, const char* finish) {
  usage_ = usage;
  finish_ = finish;
}

RequestRecord::~RequestRecord() {
  if (failures_only_ && status_ < 400) return;
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  const std::string status = status_ == 0 ? "client left" : std::to_string(status_);
  if (usage_.prompt_tokens == 0) {
    spdlog::info("{} {} {} {} {:.0f} ms{}{}", id_, method_, path_, status, ms, finish_[0] ? ", " : "", finish_);
    return;
  }
  spdlog::info("{} {} {} {} {:.0f} ms, prompt {} tokens ({} cached, {:.1f} tok/s), answer {} tokens ({:.1f} tok/s), {}",
               id_, method_, path_, status, ms, usage_.prompt_tokens, usage_.cached_tokens,
               per_second(usage_.prompt_tokens - usage_.cached_tokens, usage_.prefill_seconds),
               usage_.completion_tokens, per_second(usage_.completion_tokens, usage_.decode_seconds), finish_);
}

}  // namespace chimere::server
