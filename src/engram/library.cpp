#include "engram/library.h"

#include <algorithm>
#include <system_error>

namespace chimere::engram {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExtension = ".engram";
constexpr const char* kLegacyExtension = ".engr";
constexpr size_t kMaxOpenTables = 256;  // users come and go; a mapping costs little, but not nothing
constexpr size_t kMaxNameBytes = 64;

bool is_plain(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

}  // namespace

Library::Library(fs::path folder, Vocabulary vocabulary, fs::path shipped)
    : folder_(std::move(folder)), vocabulary_(vocabulary) {
  if (shipped.empty()) return;
  std::error_code error;
  for (fs::directory_iterator it(shipped, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().stem().string();
    if (it->path().extension() == kExtension && is_name(name) && open(it->path())) shipped_[name] = it->path();
  }
}

bool Library::is_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name.front() != '.' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_plain(static_cast<unsigned char>(c)) || c == '.'; });
}

// Everything but letters, digits, '-' and '_' is written as %XX, so that names and files correspond one to one.
fs::path Library::user_file(const fs::path& folder, const std::string& user) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string file;
  for (const char c : user) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(byte)) {
      file += c;
    } else {
      file += '%';
      file += kDigits[byte >> 4];
      file += kDigits[byte & 15];
    }
  }
  return folder / "users" / (file + kExtension);
}

std::vector<std::string> Library::names() const {
  std::vector<std::string> names;
  for (const auto& [name, path] : shipped_) names.push_back(name);
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    const bool is_table = path.extension() == kExtension || path.extension() == kLegacyExtension;
    if (is_table && is_name(path.stem().string())) names.push_back(path.stem().string());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<Error> Library::check() {
  std::vector<Error> errors;
  std::error_code error;
  if (has_folder() && !fs::is_directory(folder_, error)) {
    errors.push_back(
        {Code::not_found,
         folder_.string() + (fs::exists(folder_, error) ? ": expected a folder of tables, found something else"
                                                        : ": there is no such folder yet; what is learned makes it")});
  }
  for (const std::string& name : names()) {
    if (auto opened = table(name); !opened) errors.push_back(opened.error());
  }
  if (!has_folder()) return errors;
  for (fs::directory_iterator it(folder_ / "users", error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != kExtension) continue;
    if (auto opened = open(it->path()); !opened) errors.push_back(opened.error());
  }
  return errors;
}

Result<std::shared_ptr<const Table>> Library::table(const std::string& name) {
  if (const fs::path path = file_of(name); !path.empty()) return open(path);
  std::string known;
  for (const std::string& other : names()) known += (known.empty() ? "" : ", ") + other;
  return Error{Code::not_found, "no table is called '" + name.substr(0, kMaxNameBytes) + "'; there is " +
                                    (known.empty() ? "none" : known)};
}

fs::path Library::file_of(const std::string& name) const {
  if (!is_name(name)) return {};
  std::error_code error;
  for (const char* extension : {kExtension, kLegacyExtension}) {
    const fs::path path = folder_ / (name + extension);
    if (has_folder() && fs::is_regular_file(path, error)) return path;
  }
  const auto shipped = shipped_.find(name);
  return shipped != shipped_.end() ? shipped->second : fs::path();
}

Result<std::shared_ptr<const Table>> Library::table_of_user(const std::string& user) {
  std::error_code error;
  const fs::path path = user_file(folder_, user);
  if (!has_folder() || !is_owner(user) || !fs::is_regular_file(path, error)) {
    return std::shared_ptr<const Table>();
  }
  return open(path);
}

bool Library::is_owner(const std::string& user) { return !user.empty() && user.size() <= kMaxNameBytes; }

Status Library::check_owner(const std::string& user) {
  if (is_owner(user)) return Ok{};
  return Error{Code::invalid_argument, "user: expected a name of 1 to " + std::to_string(kMaxNameBytes) +
                                           " bytes, found one of " + std::to_string(user.size())};
}

Result<Removed> Library::forget_of_user(const std::string& user, const std::string& source) {
  const fs::path path = user_file(folder_, user);
  std::error_code error;
  if (!is_owner(user) || !fs::is_regular_file(path, error)) {
    return Error{Code::not_found, "user: has taught nothing"};
  }
  auto removed = forget_source(path.string(), vocabulary_, source, Readers::owner);
  if (!removed && removed.error().code == Code::not_found) {
    return Error{Code::not_found, "source: this user taught nothing under '" + source.substr(0, kMaxNameBytes) + "'"};
  }
  reopen_later(path);
  return removed;
}

Result<Removed> Library::remove_of_user(const std::string& user) {
  TRY_ASSIGN(const std::shared_ptr<const Table> table, table_of_user(user));
  if (!table) return Error{Code::not_found, "user: has taught nothing"};
  const fs::path path = user_file(folder_, user);
  std::error_code error;
  if (!fs::remove(path, error)) return Error{Code::io, path.string() + ": can not be removed"};
  reopen_later(path);
  return Removed{table->sources().size(), table->header().n_keys};
}

void Library::reopen_later(const fs::path& path) {
  std::lock_guard lock(mutex_);
  opened_.erase(path);
}

Result<std::shared_ptr<const Table>> Library::open(const fs::path& path) {
  std::error_code error;
  const fs::file_time_type written = fs::last_write_time(path, error);
  const uintmax_t bytes = fs::file_size(path, error);
  const uint32_t day = today();
  {
    std::lock_guard lock(mutex_);
    const auto it = opened_.find(path);
    if (it != opened_.end() && it->second.written == written && it->second.bytes == bytes && it->second.day == day) {
      return it->second.table;
    }
  }
  // Not under the lock: a large table takes a while, and those that are open go on.
  TRY_ASSIGN(std::shared_ptr<const Table> table, Table::open(path.string(), vocabulary_, day));
  std::lock_guard lock(mutex_);
  if (opened_.size() >= kMaxOpenTables) opened_.clear();
  opened_[path] = {table, written, bytes, day};
  return Result<std::shared_ptr<const Table>>{std::move(table)};
}

}  // namespace chimere::engram
