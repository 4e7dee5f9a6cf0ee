#include "file_walk.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace chimere::apps {
namespace {

namespace fs = std::filesystem;

void add_file(const fs::path& path, std::vector<WalkedFile>& files) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return;  // gone meanwhile
  files.push_back({path.string(), static_cast<uint64_t>(info.st_size), static_cast<int64_t>(info.st_mtime)});
}

Status add_folder(const fs::path& folder, std::vector<WalkedFile>& files) {
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const bool is_hidden = it->path().filename().string().starts_with('.');
    std::error_code ignored;
    if (is_hidden && it->is_directory(ignored)) it.disable_recursion_pending();
    if (is_hidden || it->is_symlink(ignored) || !it->is_regular_file(ignored)) continue;
    add_file(it->path(), files);
  }
  if (error) return Error{Code::io, folder.string() + ": " + error.message()};
  return Ok{};
}

}  // namespace

Result<std::vector<WalkedFile>> walk_files(const std::vector<std::string>& paths) {
  std::vector<WalkedFile> files;
  for (const std::string& name : paths) {
    std::error_code error;
    const fs::path path = fs::canonical(name, error);
    if (error) return Error{Code::not_found, name + ": expected a file or a folder, found nothing"};
    if (fs::is_directory(path, error)) {
      TRY(add_folder(path, files));
    } else {
      add_file(path, files);
    }
  }
  const auto by_path = [](const WalkedFile& a, const WalkedFile& b) { return a.path < b.path; };
  std::sort(files.begin(), files.end(), by_path);
  const auto same = [](const WalkedFile& a, const WalkedFile& b) { return a.path == b.path; };
  files.erase(std::unique(files.begin(), files.end(), same), files.end());
  return Result<std::vector<WalkedFile>>{std::move(files)};
}

Result<std::string> read_file(const std::string& path, uint64_t max_bytes) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return Error{Code::io, path + ": can not be opened"};
  const auto bytes = static_cast<uint64_t>(in.tellg());
  if (bytes > max_bytes) {
    return Error{Code::invalid_argument,
                 path + ": expected at most " + std::to_string(max_bytes) + " bytes, found " + std::to_string(bytes)};
  }
  std::string content(bytes, '\0');
  in.seekg(0);
  in.read(content.data(), static_cast<std::streamsize>(bytes));
  content.resize(static_cast<size_t>(in.gcount()));
  return Result<std::string>{std::move(content)};
}

}  // namespace chimere::apps
