#include "odo/route_folder.h"

#include <utility>

#include "base/check.h"

namespace chimere::odo {
namespace {

constexpr size_t kMaxRoutes = 64;

Result<Route> route_of_file(const YamlNode& root, const std::string& name, const std::string& path) {
  if (!is_route_name(name)) {
    return Error{Code::invalid_argument,
                 "expected a name of small letters, digits, - and _ that is no mode, found '" + name + "'"};
  }
  return read_route(root, name, path);
}

}  // namespace

const Route& RouteSet::at_or_default(const std::string& name) const {
  const auto found = routes.find(name);
  return found == routes.end() ? routes.at("default") : found->second;
}

std::string RouteSet::names() const {
  std::string text;
  for (const auto& [name, route] : routes) text += (text.empty() ? "" : ", ") + name;
  return text;
}

RouteFolder::RouteFolder(std::vector<std::string> folders) : folder_(std::move(folders), kMaxRoutes, route_of_file) {
  folder_.update();
  build();
}

std::shared_ptr<const RouteSet> RouteFolder::routes() {
  std::lock_guard lock(mutex_);
  if (folder_.update()) build();
  return set_;
}

void RouteFolder::build() {
  auto set = std::make_shared<RouteSet>();
  set->routes = folder_.items();
  set->problems = folder_.problems();
  Route plain;
  plain.name = "default";
  set->routes.emplace("default", std::move(plain));
  std::vector<NamedRules> rules;
  for (const auto& [name, route] : set->routes) rules.emplace_back(name, route.match);
  // Patterns were checked with their file and names are those of a map: nothing is left that it could refuse.
  auto router = Router::create(std::move(rules));
  CHECK(router);
  set->router = std::move(*router);
  set_ = std::move(set);
}

}  // namespace chimere::odo
