// model_files.cpp  Looking into folders.
#include "server/shelf/model_files.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>

#include "server/http/json.h"

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

std::string read_small_file(const fs::path& path) {
  constexpr std::streamsize kMaxBytes = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxBytes, '\0');
  file.read(text.data(), kMaxBytes);
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// The layer of a manifest that is a model: its file, and what it should be called. The path of a manifest is
// HOST/NAMESPACE/NAME/TAG; Ollama's own namespace is left out of names.
std::optional<ModelFile> ollama_model(const fs::path& folder, const fs::path& manifest) {
  const auto json = parse_json(read_small_file(manifest));
  if (!json || !json->is_object() || !json->contains("layers") || !(*json)["layers"].is_array()) return std::nullopt;
  for (const Json& layer : (*json)["layers"]) {
    if (!layer.is_object() || layer.value("mediaType", Json()) != "application/vnd.ollama.image.model") continue;
    const Json digest = layer.value("digest", Json());
    if (!digest.is_string()) continue;
    std::string blob = digest.get<std::string>();
    std::replace(blob.begin(), blob.end(), ':', '-');
    if (blob.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos) continue;
    const fs::path name = manifest.parent_path();
    const std::string space = name.parent_path().filename().string();
    std::error_code error;
    const fs::path path = folder / "blobs" / blob;
    return ModelFile{
        (space == "library" ? "" : space + "/") + name.filename().string() + ":" + manifest.filename().string(),
        path.string(), fs::file_size(path, error), seconds_of(fs::last_write_time(manifest, error))};
  }
  return std::nullopt;
}

bool is_ollama(const fs::path& folder) {
  std::error_code error;
  return fs::is_directory(folder / "manifests", error) && fs::is_directory(folder / "blobs", error);
}

}  // namespace

std::string model_folder(const std::string& given) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  const fs::path home = variable("HOME");
  std::vector<fs::path> places;
  if (given == "ollama") {
    places = {variable("OLLAMA_MODELS"), home / ".ollama/models", "/usr/share/ollama/.ollama/models"};
  } else if (given == "lmstudio") {
    places = {home / ".lmstudio/models", home / ".cache/lm-studio/models"};
  }
  std::error_code error;
  for (const fs::path& place : places) {
    if (!place.empty() && fs::is_directory(place, error)) return place.string();
  }
  return given;
}

Result<std::vector<ModelFile>> find_models(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return Error{Code::not_found, "--models " + folder + ": expected a folder of GGUF files, found " +
                                      (fs::exists(folder, error) ? "something else" : "nothing there")};
  }
  std::vector<ModelFile> files;
  std::map<std::string, int> uses;
  const bool ollama = is_ollama(folder);
  const fs::path start = ollama ? fs::path(folder) / "manifests" : fs::path(folder);
  fs::recursive_directory_iterator at(start, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && at != end && files.size() < kMaxFiles; at.increment(error)) {
    if (at.depth() >= kMaxDepth) at.disable_recursion_pending();
    std::error_code unreadable;
    if (!at->is_regular_file(unreadable)) continue;
    if (ollama) {
      if (auto model = ollama_model(folder, at->path())) files.push_back(std::move(*model));
      continue;
    }
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
