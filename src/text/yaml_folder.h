// yaml_folder.h  Folders of YAML files, each one thing by the name of its file: read when they change, and a file that is
// broken keeps its last good version in use.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "text/yaml.h"

namespace chimere {

// The `*.yaml` of some folders by their names without the ending. A file in a later folder stands for one of the same name
// in those before it; a folder that is not there is empty.
struct YamlFile {
  std::filesystem::file_time_type time;
  uintmax_t bytes = 0;
  std::string path;
  bool operator==(const YamlFile&) const = default;
};
using YamlFiles = std::map<std::string, YamlFile>;
YamlFiles find_yaml_files(const std::vector<std::string>& folders, size_t max_files);

// For one thread at a time.
template <class T>
class YamlFolder {
 public:
  // What a file says; its errors name file and line. The name may be wrong, too.
  using Read = std::function<Result<T>(const YamlNode& root, const std::string& name, const std::string& path)>;

  YamlFolder(std::vector<std::string> folders, size_t max_files, Read read)
      : folders_(std::move(folders)), max_files_(max_files), read_(std::move(read)) {}

  // Looks at the folders, if that was not done within `pause`; true where something was read. The first time always.
  bool update(std::chrono::milliseconds pause = std::chrono::seconds(1)) {
    const auto now = std::chrono::steady_clock::now();
    if (has_looked_ && now - looked_ < pause) return false;
    looked_ = now;
    YamlFiles files = find_yaml_files(folders_, max_files_);
    if (has_looked_ && files == files_) return false;
    has_looked_ = true;
    files_ = std::move(files);
    read_all();
    return true;
  }

  const std::map<std::string, T>& items() const { return items_; }                  // by name
  const std::map<std::string, std::string>& problems() const { return problems_; }  // by file: what is wrong with it

 private:
  void read_all() {
    std::map<std::string, T> items;
    problems_.clear();
    for (const auto& [name, file] : files_) {
      Result<T> item = read_one(name, file.path);
      if (item) {
        items.emplace(name, std::move(*item));
        continue;
      }
      problems_[file.path] = item.error().message;
      if (const auto last = items_.find(name); last != items_.end()) items.emplace(name, std::move(last->second));
    }
    items_ = std::move(items);
  }

  Result<T> read_one(const std::string& name, const std::string& path) const {
    TRY_ASSIGN(const YamlNode root, read_yaml(path));
    return read_(root, name, path);
  }

  const std::vector<std::string> folders_;
  const size_t max_files_;
  const Read read_;
  bool has_looked_ = false;
  std::chrono::steady_clock::time_point looked_{};
  YamlFiles files_;
  std::map<std::string, T> items_;
  std::map<std::string, std::string> problems_;
};

}  // namespace chimere
