// route_folder.h  The routes of the program and of a person's own folder, read again when a file changes.
//
// A file that is broken keeps its last good version in use; what is wrong with it is listed.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "odo/route.h"
#include "odo/routing/router.h"
#include "text/yaml_folder.h"

namespace chimere::odo {

// What was read at one moment; it never changes.
struct RouteSet {
  std::map<std::string, Route> routes;          // by name; `default` is always there
  std::shared_ptr<const Router> router;         // chooses among them
  std::map<std::string, std::string> problems;  // by file: what is wrong with it

  const Route& at_or_default(const std::string& name) const;
  // "code, default, ..."
  std::string names() const;
};

class RouteFolder {
 public:
  // Folders in the order of their weight: a file in a later one stands for those of the same name before it. Those that
  // are not there are empty.
  explicit RouteFolder(std::vector<std::string> folders);

  // Looks for changes when it has not done so for a second. Any thread.
  std::shared_ptr<const RouteSet> routes();

 private:
  void build();

  std::mutex mutex_;  // guards all below
  YamlFolder<Route> folder_;
  std::shared_ptr<const RouteSet> set_;
};

}  // namespace chimere::odo
