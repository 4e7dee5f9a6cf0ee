#include "server/tracing/tracer.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "server/tracing/otlp_json.h"
#include "web/http_client.h"

namespace chimere::server {
namespace {

constexpr std::string_view kTracesPath = "/v1/traces";
constexpr std::chrono::seconds kLongestExchange{10};
constexpr std::chrono::seconds kLastExchange{1};
constexpr size_t kMaxAnswerBytes = 64 << 10;

std::vector<Attribute> resource_of(const TracerConfig& config) {
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = 0;
  return {{"service.name", config.service},
          {"service.version", config.version},
          {"service.instance.id", std::string(host) + ":" + std::to_string(getpid())},
          {"host.name", std::string(host)},
          {"process.pid", static_cast<int64_t>(getpid())}};
}

// Those after which the standard says to try again.
bool may_come_back(int status) { return status == 429 || status == 502 || status == 503 || status == 504; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// nullopt where a % has no two digits behind it.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    int byte = 0;
    for (size_t k = 1; k <= 2; ++k) {
      const size_t digit = i + k < text.size() ? std::string_view("0123456789abcdef").find(text[i + k] | 0x20) : 16;
      if (digit > 15) return std::nullopt;
      byte = byte * 16 + static_cast<int>(digit);
    }
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

}  // namespace

Result<std::string> traces_url(const std::string& endpoint) {
  TRY_ASSIGN(const web::Url url, web::parse_url(endpoint));
  if (url.target.find('?') != std::string::npos) {
    return Error{Code::invalid_argument, endpoint + ": expected an address without a query"};
  }
  std::string text = endpoint;
  while (text.ends_with('/')) text.pop_back();
  if (!text.ends_with(kTracesPath)) text += kTracesPath;
  return text;
}

Result<std::vector<std::pair<std::string, std::string>>> parse_trace_headers(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> headers;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view one = std::string_view(text).substr(begin, end - begin);
    const size_t equals = one.find('=');
    const std::string_view name = trimmed(one.substr(0, equals));
    const auto value =
        equals == std::string_view::npos ? std::nullopt : percent_decoded(trimmed(one.substr(equals + 1)));
    if (name.empty() || !value) return Error{Code::invalid_argument, "expected name=value,..., found something else"};
    headers.emplace_back(std::string(name), *value);
    begin = end + 1;
  }
  return headers;
}

Tracer::Tracer(TracerConfig config)
    : config_(std::move(config)), resource_(resource_of(config_)), thread_([this] { work(); }) {}

Tracer::~Tracer() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = must_end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Tracer::add(std::vector<Span> spans) {
  std::lock_guard lock(mutex_);
  const size_t n_there = queue_.size() + n_sending_;
  const size_t room = config_.max_queued - std::min(config_.max_queued, n_there);
  // A trace with holes is worth less than none.
  if (spans.size() > room) {
    counts_.dropped += spans.size();
    return;
  }
  queue_.insert(queue_.end(), std::make_move_iterator(spans.begin()), std::make_move_iterator(spans.end()));
  changed_.notify_one();
}

Tracer::Counts Tracer::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

void Tracer::work() {
  std::unique_lock lock(mutex_);
  std::vector<Span> batch;
  auto pause = config_.first_pause;
  for (;;) {
    if (batch.empty()) {
      changed_.wait(lock, [&] { return is_stopping_ || !queue_.empty(); });
      changed_.wait_for(lock, config_.gather, [&] { return is_stopping_ || queue_.size() >= config_.max_batch; });
      if (queue_.empty()) return;  // and we are stopping
      const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), config_.max_batch));
      batch.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
      queue_.erase(queue_.begin(), end);
      n_sending_ = batch.size();
    }
    const bool is_last = is_stopping_;
    lock.unlock();
    Outcome outcome = Outcome::refused;
    try {
      outcome = send(batch);
    } catch (const std::exception& e) {
      outcome = failed(Outcome::refused, e.what());
    }
    lock.lock();
    if (outcome == Outcome::again && !is_last) {
      changed_.wait_for(lock, pause, [&] { return is_stopping_; });
      pause = std::min(2 * pause, config_.longest_pause);
      continue;
    }
    if (outcome != Outcome::sent) counts_.dropped += batch.size();
    batch.clear();
    n_sending_ = 0;
    pause = config_.first_pause;
    if (is_last && outcome == Outcome::again) {
      counts_.dropped += queue_.size();
      return;
    }
  }
}

Tracer::Outcome Tracer::send(const std::vector<Span>& batch) {
  const web::HttpClient client({});
  web::HttpRequest request;
  request.method = "POST";
  request.url = config_.url;
  request.headers = {{"Content-Type", "application/json"}};
  for (const auto& [name, value] : config_.headers) request.headers.push_back({name, value});
  request.body = otlp_json(batch, resource_, config_.version);
  request.limits.body_bytes = kMaxAnswerBytes;
  const bool is_last = must_end_;
  request.limits.total = is_last ? kLastExchange : kLongestExchange;
  request.limits.connect = std::chrono::milliseconds(request.limits.total) / 2;
  // One that was under way when we were told to end is begun again, as the last.
  request.is_cancelled = [this, is_last] { return must_end_ && !is_last; };
  const auto answer = client.exchange(request);
  if (!answer) return failed(Outcome::again, answer.error().message);
  if (answer->status / 100 != 2) {
    return failed(may_come_back(answer->status) ? Outcome::again : Outcome::refused,
                  "status " + std::to_string(answer->status));
  }
  if (is_failing_) spdlog::info("traces are sent again");
  is_failing_ = false;
  const uint64_t rejected = std::min<uint64_t>(rejected_spans(answer->body), batch.size());
  std::lock_guard lock(mutex_);
  counts_.sent += batch.size() - rejected;
  counts_.dropped += rejected;
  return Outcome::sent;
}

Tracer::Outcome Tracer::failed(Outcome outcome, const std::string& why) {
  if (!is_failing_) spdlog::warn("traces can not be sent to {}: {}", config_.url, why);
  is_failing_ = true;
  std::lock_guard lock(mutex_);
  ++counts_.failures;
  return outcome;
}

}  // namespace chimere::server
