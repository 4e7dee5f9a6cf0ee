// access.cpp  The checks of a request's head.
#include "server/access.h"

#include <utility>

namespace chimere::server {
namespace {

// "localhost:8081", "127.0.0.1", "[::1]:80"
bool names_this_machine(std::string_view authority) {
  if (authority.starts_with("[::1]")) return authority.size() == 5 || authority[5] == ':';
  const std::string_view host = authority.substr(0, authority.find(':'));
  return equals_ignoring_case(host, "localhost") || host == "127.0.0.1";
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

HttpResponse too_many(std::chrono::seconds wait) {
  HttpResponse response =
      error_response({429, "too many requests: the next one is welcome in " + std::to_string(wait.count()) + " s",
                      "rate_limit_error", "", "rate_limit_exceeded"});
  response.set_header("Retry-After", std::to_string(wait.count()));
  return response;
}

}  // namespace

std::optional<HttpResponse> Access::refuse_stranger(HttpRequest& head) {
  return keys_.empty() ? check_browser(head) : check_key(head);
}

std::optional<HttpResponse> Access::check_key(HttpRequest& head) {
  if (const std::string* name = keys_.find(given_key(head))) {
    head.client = *name;
    return std::nullopt;
  }
  // Who guesses keys is counted by address; a space keeps it apart from the names of keys.
  if (const auto wait = limiter_.take(" " + head.remote, RateLimiter::Clock::now())) return too_many(*wait);
  return error_response(
      {401, "expected the header 'Authorization: Bearer KEY' or 'x-api-key: KEY' with a key of this server",
       "authentication_error", "", "invalid_api_key"});
}

// Without a key we serve this machine alone, and not the web pages its browser happens to show: those come with a
// foreign Origin, or with a foreign Host that was made to point here.
std::optional<HttpResponse> Access::check_browser(const HttpRequest& head) const {
  const std::string_view host = head.header("Host");
  if (!host.empty() && !names_this_machine(host)) {
    return error_response({403, "Host: a server without a key answers to localhost only; start it with a key",
                           "permission_error", "", "foreign_host"});
  }
  const std::string_view origin = head.header("Origin");
  if (origin.empty()) return std::nullopt;
  const size_t authority = origin.find("://");
  if (authority != std::string_view::npos && names_this_machine(origin.substr(authority + 3))) return std::nullopt;
  return error_response({403,
                         "Origin: a server without a key answers to pages of this machine only; start it with a key",
                         "permission_error", "", "foreign_origin"});
}

std::optional<HttpResponse> Access::refuse_too_many(const HttpRequest& head) {
  const std::string& client = head.client.empty() ? head.remote : head.client;
  if (const auto wait = limiter_.take(client, RateLimiter::Clock::now())) return too_many(*wait);
  return std::nullopt;
}

}  // namespace chimere::server
