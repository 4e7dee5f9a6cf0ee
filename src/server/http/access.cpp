// access.cpp  The checks of a request's head.
#include "server/http/access.h"

#include <algorithm>
#include <utility>

namespace chimere::server {
namespace {

constexpr size_t kMaxHostBytes = 255;

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

std::optional<ApiError> Access::refuse_stranger(HttpRequest& head) {
  return keys_.empty() ? check_browser(head) : check_key(head);
}

std::optional<ApiError> Access::check_key(HttpRequest& head) {
  if (const std::string* name = keys_.find(given_key(head))) {
    head.client = *name;
    return std::nullopt;
  }
  // Who guesses keys is counted by address; a space keeps it apart from the names of keys.
  if (const auto wait = limiter_.take(" " + head.remote, RateLimiter::Clock::now())) return too_many(*wait);
  return ApiError{401, "expected the header 'Authorization: Bearer KEY' or 'x-api-key: KEY' with a key of this server",
                  "authentication_error", "", "invalid_api_key"};
}

bool Access::names_us(std::string_view authority) const {
  if (is_this_machine(authority)) return true;
  const std::string_view host = host_of(authority);
  return !host.empty() && std::any_of(hosts_.begin(), hosts_.end(),
                                      [&](const std::string& allowed) { return equals_ignoring_case(allowed, host); });
}

// Without a key we serve this machine alone, and not the web pages its browser happens to show: those come with a
// foreign Origin, or with a foreign Host that was made to point here.
std::optional<ApiError> Access::check_browser(const HttpRequest& head) const {
  const std::string_view host = head.header("Host");
  if (!host.empty() && !names_us(host)) {
    const std::string name(is_host(host_of(host)) ? host_of(host) : "NAME");
    return ApiError{403,
                    "Host: a server without a key answers to localhost only; to let clients call it '" + name +
                        "' start it with --allow-host " + name + ", or with a key",
                    "permission_error", "", "foreign_host"};
  }
  const std::string_view origin = head.header("Origin");
  if (origin.empty() || cors_.allows(head)) return std::nullopt;
  const size_t authority = origin.find("://");
  if (authority != std::string_view::npos && names_us(origin.substr(authority + 3))) return std::nullopt;
  return ApiError{403,
                  "Origin: a server without a key answers to pages of this machine only; to let a page of another "
                  "origin in start it with --cors ORIGIN",
                  "permission_error", "", "foreign_origin"};
}

std::optional<ApiError> Access::refuse_too_many(const HttpRequest& head) {
  const std::string& client = head.client.empty() ? head.remote : head.client;
  if (const auto wait = limiter_.take(client, RateLimiter::Clock::now())) return too_many(*wait);
  return std::nullopt;
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
