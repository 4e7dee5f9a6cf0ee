#include "cache/cache_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>

#include "base/platform/atomic_file.h"
#include "base/platform/private_file.h"
#include "cache/point_file.h"

namespace chimere {

namespace fs = std::filesystem;

namespace {

constexpr const char* kMarker = ".chimere-cache";
constexpr std::string_view kSignature = "chimere prefix cache";
constexpr const char* kOwnFolder = "chimere-prefix-cache";
constexpr uint64_t kMostBytes = 8'000'000'000;

std::string file_text(const fs::path& path) {
  constexpr size_t kLongest = 256;
  std::ifstream file(path, std::ios::binary);
  std::string text(kLongest, '\0');
  file.read(text.data(), kLongest);
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

bool is_real_folder(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() == fs::file_type::directory;
}

bool has_marker(const fs::path& folder) {
  std::error_code error;
  const fs::path marker = folder / kMarker;
  return fs::symlink_status(marker, error).type() == fs::file_type::regular &&
         file_text(marker).starts_with(kSignature);
}

Status mark_folder(const fs::path& folder) {
  std::random_device random;
  const uint64_t number = static_cast<uint64_t>(random()) << 32 | random();
  const std::string text = std::string(kSignature) + "\n" + std::to_string(number) +
                           "\nEverything that Chimère wrote here may be deleted: `chimere cache clear` does.\n";
  TRY_ASSIGN(AtomicFile file, AtomicFile::create((folder / kMarker).string()));
  TRY(file.write(std::as_bytes(std::span(text))));
  return file.commit();
}

// Another process may be marking it at this moment.
bool is_empty_folder(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!entry.path().filename().string().starts_with(kMarker)) return false;
  }
  return !error;
}

// Creates the folder, or accepts one that we created before. Symbolic links are not followed.
Result<std::string> claim_real_folder(const fs::path& folder) {
  TRY_ASSIGN(const bool is_new, make_private_folder(folder.string()));
  if (is_real_folder(folder)) {
    if (has_marker(folder)) return folder.string();
    if (is_new || is_empty_folder(folder)) {
      TRY(mark_folder(folder));
      return folder.string();
    }
  }
  return Error{Code::invalid_argument, folder.string() + ": expected a folder that this program made, with " + kMarker +
                                           " in it, found something else, which is left alone"};
}

enum class Kind { none, point, page };

Kind kind_of(std::string_view file) {
  uint64_t point;
  PageName page;
  const std::string_view name = file.substr(0, file.find(".tmp-"));
  if (parse_point_file_name(name, point)) return Kind::point;
  return parse_page_file_name(name, page) ? Kind::page : Kind::none;
}

// Files of a model's folder that are ours, points first: pages are only reached through points.
std::vector<fs::path> own_files(const std::string& folder) {
  std::vector<fs::path> points, pages;
  if (!is_real_folder(folder) || !has_marker(folder)) return points;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.symlink_status(error).type() != fs::file_type::regular) continue;
    const Kind kind = kind_of(entry.path().filename().string());
    if (kind == Kind::point) points.push_back(entry.path());
    if (kind == Kind::page) pages.push_back(entry.path());
  }
  points.insert(points.end(), pages.begin(), pages.end());
  return points;
}

void count_file(CacheUse& use, const fs::path& file) {
  std::error_code error;
  if (const auto bytes = fs::file_size(file, error); !error) use.bytes += bytes;
  use.entries += file.extension() == ".point";
}

}  // namespace

Result<std::string> claim_cache_folder(const std::string& wanted) {
  std::error_code error;
  const fs::path path(wanted);
  if (!fs::exists(path, error)) {
    if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
    return claim_real_folder(path);
  }
  if (!fs::is_directory(path, error)) return Error{Code::invalid_argument, wanted + ": expected a folder"};
  if (has_marker(path)) return wanted;
  if (!is_empty_folder(path)) return claim_real_folder(path / kOwnFolder);
  TRY(mark_folder(path));
  return wanted;
}

Result<std::string> find_cache_folder(const std::string& wanted) {
  if (has_marker(wanted)) return wanted;
  const fs::path own = fs::path(wanted) / kOwnFolder;
  if (is_real_folder(own) && has_marker(own)) return own.string();
  return Error{Code::not_found, wanted + ": there is no prefix cache"};
}

Result<std::string> claim_model_folder(const std::string& folder, uint64_t key) {
  return claim_real_folder(fs::path(folder) / point_file_name(key).substr(0, 16));
}

std::vector<std::string> model_folders(const std::string& folder) {
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    uint64_t key;
    if (!parse_point_file_name(entry.path().filename().string() + ".point", key)) continue;
    if (is_real_folder(entry.path()) && has_marker(entry.path())) folders.push_back(entry.path().string());
  }
  return folders;
}

std::string clear_mark(const std::string& model_folder) {
  if (!is_real_folder(model_folder) || !has_marker(model_folder)) return {};
  return file_text(fs::path(model_folder) / kMarker);
}

CacheUse use_of_folder(const std::string& model_folder) {
  CacheUse use;
  for (const fs::path& file : own_files(model_folder)) count_file(use, file);
  return use;
}

CacheUse clear_folder(const std::string& model_folder) {
  CacheUse cleared;
  std::error_code error;
  for (const fs::path& file : own_files(model_folder)) {
    CacheUse one;
    count_file(one, file);
    if (!fs::remove(file, error)) continue;
    cleared.bytes += one.bytes;
    cleared.entries += one.entries;
  }
  // If that fails, a running store still notices file by file that they are gone.
  if (is_real_folder(model_folder) && has_marker(model_folder)) (void)mark_folder(model_folder);
  return cleared;
}

DiskQuota default_quota(uint64_t model_bytes, uint64_t free_bytes) {
  const uint64_t all = std::min(kMostBytes, free_bytes / 20);
  return {all, std::min(all, 4 * std::min(model_bytes, kMostBytes))};
}

uint64_t free_bytes_for(const std::string& folder) {
  std::error_code error;
  fs::path there = fs::absolute(folder, error);
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  const fs::space_info space = fs::space(there, error);
  uint64_t bytes = error ? 0 : static_cast<uint64_t>(space.available);
  if (const auto ours = find_cache_folder(folder)) {
    for (const std::string& model : model_folders(*ours)) bytes += use_of_folder(model).bytes;
  }
  return bytes;
}

}  // namespace chimere
