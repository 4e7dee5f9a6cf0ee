// router.cpp  Paths compared segment by segment; a handful of routes needs no tree.
#include "server/http/router.h"

#include <optional>
#include <utility>

namespace chimere::server {
namespace {

constexpr std::string_view kParameter = "{id}";

// What stood for {id}, empty when the pattern has none; nullopt when the path is another one.
std::optional<std::string> match(std::string_view pattern, std::string_view path) {
  const size_t at = pattern.find(kParameter);
  if (at == std::string_view::npos) return pattern == path ? std::optional<std::string>(std::in_place) : std::nullopt;
  const std::string_view before = pattern.substr(0, at);
  const std::string_view after = pattern.substr(at + kParameter.size());
  if (path.size() <= before.size() + after.size()) return std::nullopt;
  if (!path.starts_with(before) || !path.ends_with(after)) return std::nullopt;
  const std::string_view middle = path.substr(before.size(), path.size() - before.size() - after.size());
  if (middle.find('/') != std::string_view::npos) return std::nullopt;
  return std::string(middle);
}

}  // namespace

void Router::add(Route route) { routes_.push_back(std::move(route)); }

Router::Match Router::find(std::string_view method, std::string_view path) const {
  Match found;
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : routes_) {
    std::optional<std::string> parameter = match(route.path, path);
    if (!parameter) continue;
    if (!found.allowed.empty()) found.allowed += ", ";
    found.allowed += route.method;
    if (!found.route && route.method == wanted) {
      found.route = &route;
      found.parameter = std::move(*parameter);
    }
  }
  return found;
}

std::unique_ptr<Answer> answer_now(Call& call, HttpResponse response) {
  call.record->set_status(response.status);
  return immediate(std::move(response));
}

}  // namespace chimere::server
