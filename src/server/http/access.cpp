// access.cpp  The checks of a request's head.
#include "server/http/access.h"

#include <algorithm>
#include <ctime>
#include <iterator>
#include <utility>

namespace chimere::server {
namespace {

constexpr size_t kMaxHostBytes = 255;

// What uses tokens of a budget.
constexpr std::string_view kSpending[] = {
    "/v1/chat/completions", "/v1/completions", "/v1/responses",  "/v1/messages", "/v1/embeddings",
    "/v1/rerank",           "/completion",     "/embedding",     "/infill",      "/api/chat",
    "/api/generate",        "/api/embed",      "/api/embeddings"};

std::string utc_text(KeyUsage::Clock::time_point time) {
  const std::time_t seconds = KeyUsage::Clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= kMaxHostBytes && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(".-_[]:").find(c) != std::string_view::npos;
  });
}

// OpenAI's clients send the first, Anthropic's the second.
std::string_view given_key(const HttpRequest& head) {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view authorization = head.header("Authorization");
  if (equals_ignoring_case(authorization.substr(0, kScheme.size()), kScheme)) {
    return authorization.substr(kScheme.size());
  }
  return head.header("x-api-key");
}

ApiError too_many(std::chrono::seconds wait) {
  const std::string seconds = std::to_string(wait.count());
  ApiError error{429, "too many requests: the next one is welcome in " + seconds + " s", "rate_limit_error", "",
                 "rate_limit_exceeded"};
  error.retry_after = static_cast<int>(wait.count());
  return error;
}

}  // namespace

void Access::replace(ApiKeys keys, int requests_per_minute, std::vector<std::string> hosts, Cors cors) {
  auto rules = std::make_shared<Rules>(Rules{std::move(keys), std::move(hosts), std::move(cors)});
  const std::lock_guard lock(mutex_);
  rules_ = std::move(rules);
  limiter_.set_rate(requests_per_minute);
}

std::shared_ptr<const Access::Rules> Access::rules() const {
  const std::lock_guard lock(mutex_);
  return rules_;
}

std::optional<std::chrono::seconds> Access::take(const std::string& client) {
  const std::lock_guard lock(mutex_);
  return limiter_.take(client, RateLimiter::Clock::now());
}

std::optional<ApiError> Access::refuse_stranger(HttpRequest& head) {
  const auto rules = this->rules();
  if (!rules->keys.empty() || pairing_) return check_key(*rules, head);
  head.is_admin = true;
  return check_browser(*rules, head);
}

std::optional<ApiError> Access::check_key(const Rules& rules, HttpRequest& head) {
  const std::string_view key = given_key(head);
  if (const ApiKey* found = rules.keys.find(key)) {
    head.client = found->name;
    head.is_admin = found->is_admin;
    return std::nullopt;
  }
  if (const std::string* name = pairing_ ? pairing_->find(key) : nullptr) {
    head.client = *name;
    return std::nullopt;
  }
  // Who guesses keys is counted by address; a space keeps it apart from the names of keys.
  if (const auto wait = take(" " + head.remote)) return too_many(*wait);
  return ApiError{401, "expected the header 'Authorization: Bearer KEY' or 'x-api-key: KEY' with a key of this server",
                  "authentication_error", "", "invalid_api_key"};
}

std::variant<std::string, ApiError> Access::pair(const HttpRequest& head) {
  auto key = pairing_->accept(given_key(head));
  if (key) return std::move(*key);
  if (key.error().code == Code::exhausted) {
    return ApiError{409, key.error().message, "invalid_request_error", "", "too_many_browsers"};
  }
  if (key.error().code != Code::not_found) return to_api_error(key.error());
  if (const auto wait = take(" " + head.remote)) return too_many(*wait);
  return ApiError{401, key.error().message, "authentication_error", "", "invalid_code"};
}

bool Access::Rules::names_us(std::string_view authority) const {
  if (is_this_machine(authority)) return true;
  const std::string_view host = host_of(authority);
  return !host.empty() && std::any_of(hosts.begin(), hosts.end(),
                                      [&](const std::string& allowed) { return equals_ignoring_case(allowed, host); });
}

// Without a key we serve this machine alone, and not the web pages its browser happens to show: those come with a
// foreign Origin, or with a foreign Host that was made to point here.
std::optional<ApiError> Access::check_browser(const Rules& rules, const HttpRequest& head) {
  const std::string_view host = head.header("Host");
  if (!host.empty() && !rules.names_us(host)) {
    const std::string name(is_host(host_of(host)) ? host_of(host) : "NAME");
    return ApiError{403,
                    "Host: a server without a key answers to localhost only; to let clients call it '" + name +
                        "' start it with --allow-host " + name + ", or with a key",
                    "permission_error", "", "foreign_host"};
  }
  const std::string_view origin = head.header("Origin");
  if (origin.empty() || rules.cors.allows(head)) return std::nullopt;
  const size_t authority = origin.find("://");
  if (authority != std::string_view::npos && rules.names_us(origin.substr(authority + 3))) return std::nullopt;
  return ApiError{403,
                  "Origin: a server without a key answers to pages of this machine only; to let a page of another "
                  "origin in start it with --cors ORIGIN",
                  "permission_error", "", "foreign_origin"};
}

std::optional<ApiError> Access::refuse_too_many(const HttpRequest& head) {
  const std::string& client = head.client.empty() ? head.remote : head.client;
  if (const auto wait = take(client)) return too_many(*wait);
  return std::nullopt;
}

bool Access::has_client(const std::string& name) const {
  const auto rules = this->rules();
  if (rules->keys.empty() && !pairing_) return name.empty();
  return rules->keys.named(name) || (pairing_ && name == Pairing::name());
}

uint64_t Access::tokens_per_day(const std::string& name) const {
  const auto rules = this->rules();
  const ApiKey* key = rules->keys.named(name);
  return key ? key->tokens_per_day : 0;
}

std::optional<ApiError> Access::refuse_over_budget(const HttpRequest& head, KeyUsage::Clock::time_point now) const {
  const uint64_t budget = tokens_per_day(head.client);
  if (budget == 0 || head.method != "POST") return std::nullopt;
  if (std::find(std::begin(kSpending), std::end(kSpending), head.path) == std::end(kSpending)) return std::nullopt;
  const uint64_t used = usage_->of(head.client, now).today.computed();
  if (used < budget) return std::nullopt;
  const auto next = KeyUsage::next_day(now);
  ApiError error{429,
                 "the key '" + head.client + "' has used " + std::to_string(used) + " of its " +
                     std::to_string(budget) + " tokens of today; the next ones are there at " + utc_text(next),
                 "rate_limit_error", "", "token_budget_exceeded"};
  error.retry_after = static_cast<int>(std::chrono::ceil<std::chrono::seconds>(next - now).count());
  return error;
}

Status check_hosts(const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) {
    if (is_host(host) && host_of(host) == host) continue;
    return Error{Code::invalid_argument,
                 "--allow-host: expected a name such as host.docker.internal, without a port, found '" + host + "'"};
  }
  return Ok{};
}

}  // namespace chimere::server
