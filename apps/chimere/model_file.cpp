#include "model_file.h"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string_view>
#include <vector>

#include "server/shelf/model_files.h"
#include "text/nearest_word.h"

namespace chimere::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNoDownloads = "nothing is downloaded here";
constexpr size_t kMaxShown = 3;

std::vector<std::string> gguf_files(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".gguf") names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Error folder_instead(const std::string& given) {
  std::error_code error;
  std::string message = given + ": is a folder";
  if (fs::exists(fs::path(given) / "config.json", error)) {
    message += " of Hugging Face's kind: `chimere convert " + given + " --out MODEL.gguf` makes a GGUF file of it";
  } else {
    message += "; `chimere serve --models " + given + "` serves the GGUF files in it by their names";
    const std::vector<std::string> names = gguf_files(given);
    for (size_t i = 0; i < std::min(names.size(), kMaxShown); ++i) message += (i == 0 ? ": " : ", ") + names[i];
    if (names.size() > kMaxShown) message += ", ...";
  }
  return Error{Code::invalid_argument, message};
}

// What Ollama has under this name; empty: nothing.
std::string file_at_ollama(const std::string& name) {
  const auto files = server::find_models(server::model_folder("ollama"));
  if (!files) return {};
  const auto is_it = [&](const server::ModelFile& file) { return file.name == name || file.name == name + ":latest"; };
  const auto found = std::find_if(files->begin(), files->end(), is_it);
  return found == files->end() ? std::string() : found->path;
}

// "maker/model", "maker/model:Q4_K_M", as Hugging Face names them.
bool is_name_of_hub(const std::string& given) {
  static const std::regex pattern(R"((hf\.co/|huggingface\.co/)?[\w.-]+/[\w.-]+(:[\w.-]+)?)");
  if (given.starts_with(".") || given.ends_with(".gguf") || !std::regex_match(given, pattern)) return false;
  std::error_code error;
  return !fs::exists(fs::path(given).parent_path(), error);
}

std::string nearest_file(const fs::path& given) {
  const fs::path folder = given.has_parent_path() ? given.parent_path() : fs::path(".");
  const std::vector<std::string> names = gguf_files(folder);
  std::string name = given.filename().string();
  if (!name.ends_with(".gguf")) name += ".gguf";
  const std::string near = nearest_word(name, names);
  if (near.empty()) return {};
  return (given.has_parent_path() ? given.parent_path() / near : fs::path(near)).string();
}

std::string advice(const std::string& given) {
  if (given.find("://") != std::string::npos) {
    return std::string("is an address, and ") + kNoDownloads +
           ": fetch the file first (`curl -L -O ADDRESS`), then give its path";
  }
  if (const std::string file = file_at_ollama(given); !file.empty()) {
    return "no such file, but Ollama has a model of this name: `chimere serve --models ollama` serves it, and its file "
           "is " +
           file;
  }
  if (is_name_of_hub(given)) {
    return std::string("no such file. As a name at Hugging Face: ") + kNoDownloads +
           "; fetch a GGUF file of the model first, then give its path";
  }
  std::string text = "cannot open: No such file or directory";
  if (const std::string near = nearest_file(given); !near.empty()) text += "; did you mean " + near + "?";
  return text;
}

}  // namespace

Status check_model_file(const std::string& given) {
  std::error_code error;
  if (fs::is_directory(given, error)) return folder_instead(given);
  if (fs::exists(given, error) || (error && error != std::errc::no_such_file_or_directory)) return Ok{};
  return Error{Code::not_found, given + ": " + advice(given)};
}

}  // namespace chimere::apps
