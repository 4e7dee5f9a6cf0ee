#include "odo/route_folder.h"

#include <utility>

#include "base/check.h"

namespace chimere::odo {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kLookAgain{1};
constexpr size_t kMaxRoutes = 64;

Result<Route> route_of_file(const std::string& name, const std::string& path) {
  TRY_ASSIGN(const YamlNode root, read_yaml(path));
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

RouteFolder::RouteFolder(std::vector<std::string> folders) : folders_(std::move(folders)) {
  files_ = look();
  read(files_);
  looked_ = std::chrono::steady_clock::now();
}

std::shared_ptr<const RouteSet> RouteFolder::routes() {
  std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ >= kLookAgain) {
    looked_ = now;
    Files files = look();
    if (files != files_) {
      read(files);
      files_ = std::move(files);
    }
  }
  return set_;
}

RouteFolder::Files RouteFolder::look() const {
  Files files;
  for (const std::string& folder : folders_) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      std::error_code ignored;
      const fs::path& path = entry.path();
      if (path.extension() != ".yaml" || !entry.is_regular_file(ignored) || files.size() >= kMaxRoutes) continue;
      files[path.stem().string()] = {entry.last_write_time(ignored), entry.file_size(ignored), path.string()};
    }
  }
  return files;
}

void RouteFolder::read(const Files& files) {
  auto set = std::make_shared<RouteSet>();
  for (const auto& [name, file] : files) {
    if (!is_route_name(name)) {
      set->problems[file.path] =
          "expected a name of small letters, digits, - and _ that is no mode, found '" + name + "'";
      continue;
    }
    const auto before = files_.find(name);
    const bool is_known = set_ && before != files_.end() && set_->routes.count(name) > 0;
    Result<Route> route = route_of_file(name, file.path);
    if (route) {
      set->routes.emplace(name, std::move(*route));
      continue;
    }
    set->problems[file.path] = route.error().message;
    if (is_known) set->routes.emplace(name, set_->routes.at(name));
  }
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
