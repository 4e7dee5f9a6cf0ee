// model_files.cpp  Looking into folders.
#include "server/shelf/model_files.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <regex>

namespace chimere::server {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 6;
constexpr size_t kMaxFiles = 2'000;

int64_t seconds_of(fs::file_time_type time) {
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration_cast<std::chrono::seconds>(system.time_since_epoch()).count();
}

// Empty when it is no model, or a further part of one.
std::string name_of(const fs::path& path) {
  static const std::regex kPart("(.*)-(\\d{5})-of-\\d{5}");
  std::string name = path.stem().string();
  if (path.extension() != ".gguf" || name.empty() || name.find("mmproj") != std::string::npos) return {};
  std::smatch part;
  if (!std::regex_match(name, part, kPart)) return name;
  return part[2] == "00001" ? part[1].str() : std::string();
}

// Of a file in parts all of them.
uint64_t bytes_of(const fs::path& path, const std::string& name) {
  std::error_code error;
  if (path.stem() == name) return fs::file_size(path, error);
  uint64_t sum = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(path.parent_path(), error)) {
    if (entry.path().filename().string().starts_with(name + "-")) sum += entry.file_size(error);
  }
  return sum;
}

}  // namespace

Result<std::vector<ModelFile>> find_models(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return Error{Code::not_found, "--models " + folder + ": expected a folder of GGUF files, found " +
                                      (fs::exists(folder, error) ? "something else" : "nothing there")};
  }
  std::vector<ModelFile> files;
  std::map<std::string, int> uses;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && at != end && files.size() < kMaxFiles; at.increment(error)) {
    if (at.depth() >= kMaxDepth) at.disable_recursion_pending();
    std::error_code unreadable;
    if (!at->is_regular_file(unreadable)) continue;
    const std::string name = name_of(at->path());
    if (name.empty()) continue;
    ++uses[name];
    files.push_back(
        {name, at->path().string(), bytes_of(at->path(), name), seconds_of(at->last_write_time(unreadable))});
  }
  for (ModelFile& file : files) {
    if (uses[file.name] > 1) file.name = fs::path(file.path).parent_path().filename().string() + "." + file.name;
  }
  std::sort(files.begin(), files.end(),
            [](const ModelFile& a, const ModelFile& b) { return std::tie(a.name, a.path) < std::tie(b.name, b.path); });
  files.erase(
      std::unique(files.begin(), files.end(), [](const ModelFile& a, const ModelFile& b) { return a.name == b.name; }),
      files.end());
  return files;
}

}  // namespace chimere::server
