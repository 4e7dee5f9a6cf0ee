#include "retrieval/passage_library.h"

#include <algorithm>
#include <system_error>

#include "engram/library.h"

namespace chimere::retrieval {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExtension = ".passages";
constexpr size_t kMaxOpenFiles = 16;  // each holds its vectors in memory

void add_names(const fs::path& folder, std::vector<std::string>& names) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().stem().string();
    if (it->path().extension() == kExtension && engram::Library::is_name(name)) names.push_back(name);
  }
}

}  // namespace

fs::path PassageLibrary::user_folder(const fs::path& folder, const std::string& user) {
  return engram::Library::user_file(folder, user).replace_extension();
}

std::vector<std::string> PassageLibrary::names(const std::string& owner) const {
  std::vector<std::string> names;
  add_names(folder_, names);
  if (!owner.empty()) add_names(user_folder(folder_, owner), names);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<std::shared_ptr<const PassageIndex>> PassageLibrary::open(const std::string& name, const std::string& owner) {
  if (engram::Library::is_name(name)) {
    std::error_code error;
    const fs::path file = name + kExtension;
    if (const fs::path own = user_folder(folder_, owner) / file; !owner.empty() && fs::is_regular_file(own, error)) {
      return open_file(own);
    }
    if (fs::is_regular_file(folder_ / file, error)) return open_file(folder_ / file);
  }
  std::string known;
  for (const std::string& other : names(owner)) known += (known.empty() ? "" : ", ") + other;
  return Error{Code::not_found, "no file of passages is called '" + name.substr(0, 64) + "'; there is " +
                                    (known.empty() ? "none" : known)};
}

Result<std::shared_ptr<const PassageIndex>> PassageLibrary::open_file(const fs::path& path) {
  std::error_code error;
  const fs::file_time_type written = fs::last_write_time(path, error);
  const uintmax_t bytes = fs::file_size(path, error);
  {
    std::lock_guard lock(mutex_);
    const auto it = opened_.find(path);
    if (it != opened_.end() && it->second.written == written && it->second.bytes == bytes) return it->second.index;
  }
  TRY_ASSIGN(const PassageHeader header, passage_header(path.string()));
  TRY_ASSIGN(PassageIndex index, PassageIndex::open(path.string(), header.model, static_cast<int>(header.dimensions)));
  auto shared = std::make_shared<const PassageIndex>(std::move(index));
  std::lock_guard lock(mutex_);
  if (opened_.size() >= kMaxOpenFiles) opened_.clear();
  opened_[path] = {shared, written, bytes};
  return std::shared_ptr<const PassageIndex>(std::move(shared));
}

}  // namespace chimere::retrieval
