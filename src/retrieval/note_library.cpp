#include "retrieval/note_library.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/platform/file_lock.h"
#include "base/platform/private_file.h"
#include "engram/library.h"
#include "engram/table.h"

namespace chimere::retrieval {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNotesExtension = ".notes";
constexpr uintmax_t kMaxOpenBytes = uintmax_t{32} << 20;  // of files; in memory they take some eight times as much

// A user below a key is called KEY/USER.
std::string key_of(const std::string& owner) { return owner.substr(0, owner.find('/')); }

Error no_room(const std::string& what, uint64_t limit, uint64_t needed, const char* unit) {
  return {Code::exhausted, "the memory of " + what + " is full: expected at most " + std::to_string(limit) + " " +
                               unit + ", found " + std::to_string(needed) + " with this text; forget some first"};
}

Status check_limit(const std::string& what, const NoteUsage& limit, const NoteUsage& needed) {
  if (needed.bytes > limit.bytes) return no_room(what, limit.bytes, needed.bytes, "bytes");
  if (needed.files > limit.files) return no_room(what, limit.files, needed.files, "users");
  return Ok{};
}

}  // namespace

fs::path NoteLibrary::file_of(const fs::path& folder, const std::string& owner) {
  return engram::Library::user_file(folder, owner).replace_extension(kNotesExtension);
}

NoteLibrary::NoteLibrary(fs::path folder, NoteLimits limits) : folder_(std::move(folder)), limits_(limits) {
  note_usage();
}

std::vector<Error> NoteLibrary::check() const {
  std::vector<Error> errors;
  std::error_code error;
  for (fs::directory_iterator it(folder_ / "users", error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != kNotesExtension) continue;
    const auto file = read_notes(it->path().string());
    if (!file) {
      errors.push_back(file.error());
    } else if (file->n_damaged > 0) {
      errors.push_back({Code::corrupt, it->path().string() + ": " + std::to_string(file->n_damaged) +
                                           " lines are no notes and are passed over"});
    }
  }
  return errors;
}

NoteLibrary::Usages NoteLibrary::usages(const std::string& owner) const {
  Usages usages;
  const std::string own = file_of(folder_, owner).stem().string();
  const std::string key = file_of(folder_, key_of(owner)).stem().string(), below = key + "%2F";
  std::error_code error;
  std::string last;
  std::vector<std::pair<std::string, uint64_t>> files;
  for (fs::directory_iterator it(folder_ / "users", error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (path.extension() != kNotesExtension && path.extension() != ".engram") continue;
    std::error_code gone;
    const uintmax_t bytes = fs::file_size(path, gone);
    if (!gone) files.emplace_back(path.stem().string(), bytes);
  }
  std::sort(files.begin(), files.end());
  const auto count = [](NoteUsage& usage, uint64_t bytes, bool is_new) {
    usage.bytes += bytes;
    usage.files += is_new;
  };
  for (const auto& [stem, bytes] : files) {
    const bool is_new = stem != last;  // notes and a table of the same owner count once
    count(usages.all, bytes, is_new);
    if (stem == key || stem.starts_with(below)) count(usages.key, bytes, is_new);
    if (stem == own) count(usages.file, bytes, is_new);
    last = stem;
  }
  return usages;
}

NoteUsage NoteLibrary::known_usage() const {
  std::lock_guard lock(mutex_);
  return usage_;
}

void NoteLibrary::note_usage() {
  const NoteUsage all = usages("").all;
  std::lock_guard lock(mutex_);
  usage_ = all;
}

Status NoteLibrary::check_room(const std::string& owner, size_t more_bytes, size_t n_notes) const {
  if (n_notes >= limits_.file_notes) return no_room("this user", limits_.file_notes, n_notes + 1, "notes");
  Usages now = usages(owner);
  const size_t more_files = now.file.files == 0 ? 1 : 0;
  for (NoteUsage* usage : {&now.file, &now.key, &now.all}) {
    usage->bytes += more_bytes;
    usage->files += more_files;
  }
  TRY(check_limit("this user", {limits_.file_bytes, 1}, now.file));
  TRY(check_limit("this key and its users", {limits_.key_bytes, limits_.key_files}, now.key));
  return check_limit("all users together", {limits_.all_bytes, limits_.all_files}, now.all);
}

void NoteLibrary::remember(const fs::path& path, Opened opened) {
  std::lock_guard lock(mutex_);
  opened.used = ++clock_;
  opened_[path] = std::move(opened);
  uintmax_t bytes = 0;
  for (const auto& [file, other] : opened_) bytes += other.bytes;
  while (bytes > kMaxOpenBytes && opened_.size() > 1) {
    const auto oldest = std::min_element(opened_.begin(), opened_.end(),
                                         [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    bytes -= oldest->second.bytes;
    opened_.erase(oldest);
  }
}

Result<std::shared_ptr<const Notebook>> NoteLibrary::open(const std::string& owner, const Encode& encode) {
  const std::shared_ptr<const Notebook> none;
  if (!engram::Library::is_owner(owner)) return none;
  const fs::path path = file_of(folder_, owner);
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error) return none;
  const fs::file_time_type written = fs::last_write_time(path, error);
  {
    std::lock_guard lock(mutex_);
    const auto it = opened_.find(path);
    if (it != opened_.end() && it->second.written == written && it->second.bytes == bytes &&
        it->second.day == engram::today()) {
      it->second.used = ++clock_;
      return it->second.notebook;
    }
  }
  // Not under the lock: a large file takes a while, and notebooks that are open go on.
  TRY_ASSIGN(const NoteFile file, read_notes(path.string()));
  std::shared_ptr<const Notebook> notebook = Notebook::make(file.notes, engram::today(), encode);
  remember(path, {notebook, written, bytes, engram::today()});
  return Result<std::shared_ptr<const Notebook>>{std::move(notebook)};
}

Result<uint64_t> NoteLibrary::add(const std::string& owner, Note note, const Encode& encode) {
  TRY(engram::Library::check_owner(owner));
  const fs::path path = file_of(folder_, owner);
  std::lock_guard changing(changing_);
  TRY(make_private_folders(path.parent_path().string()));
  TRY_ASSIGN(const FileLock lock, FileLock::acquire((folder_ / "users" / "notes.lock").string()));
  TRY_ASSIGN(std::shared_ptr<const Notebook> notebook, open(owner, encode));
  if (!notebook) notebook = Notebook::make({}, engram::today(), encode);
  note.id = notebook->last_id() + 1;
  const std::string line = note_line(note);
  TRY(check_room(owner, line.size() + 1, notebook->size()));
  TRY(append_private_line(path.string(), line));
  const uint64_t id = note.id;
  std::error_code error;
  notebook = notebook->with(std::move(note), engram::today(), encode);
  remember(path, {notebook, fs::last_write_time(path, error), fs::file_size(path, error), engram::today()});
  note_usage();
  return id;
}

Result<size_t> NoteLibrary::forget(const std::string& owner, const std::function<bool(const Note&)>& matches) {
  std::error_code error;
  const fs::path path = file_of(folder_, owner);
  if (!engram::Library::is_owner(owner) || !fs::exists(path, error)) return size_t{0};
  std::lock_guard changing(changing_);
  TRY_ASSIGN(const FileLock lock, FileLock::acquire((folder_ / "users" / "notes.lock").string()));
  TRY_ASSIGN(const size_t removed, keep_notes(path.string(), [&](const Note& note) { return !matches(note); }));
  {
    std::lock_guard reopening(mutex_);
    opened_.erase(path);
  }
  note_usage();
  return removed;
}

Result<std::vector<Note>> NoteLibrary::list(const std::string& owner) const {
  if (!engram::Library::is_owner(owner)) return std::vector<Note>();
  TRY_ASSIGN(NoteFile file, read_notes(file_of(folder_, owner).string()));
  return Result<std::vector<Note>>{std::move(file.notes)};
}

}  // namespace chimere::retrieval
