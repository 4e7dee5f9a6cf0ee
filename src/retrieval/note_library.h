// note_library.h  The notes of all owners: a file each, `users/OWNER.notes` of a folder, beside their tables.
//
// What may be kept is limited for one file, for a key and the users below it, and for all together; sizes are those of
// the files, notes and tables, as they lie there. Use it from any thread; those who change notes wait for each other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "retrieval/notebook.h"

namespace chimere::retrieval {

struct NoteLimits {
  uint64_t file_bytes = uint64_t{1} << 20;  // the notes of one owner
  size_t file_notes = 10'000;
  uint64_t key_bytes = uint64_t{16} << 20;  // of a key and all users below it
  size_t key_files = 64;
  uint64_t all_bytes = uint64_t{256} << 20;
  size_t all_files = 1000;
};

// What lies there.
struct NoteUsage {
  uint64_t bytes = 0;
  size_t files = 0;
};

class NoteLibrary {
 public:
  NoteLibrary(std::filesystem::path folder, NoteLimits limits);

  // Looks at every file once, so that what is wrong with one is said at the start.
  std::vector<Error> check() const;

  // Null when this owner has none.
  Result<std::shared_ptr<const Notebook>> open(const std::string& owner, const Encode& encode);

  // Gives the id of the note. Fails as exhausted when it does not fit, and says which limit that is.
  Result<uint64_t> add(const std::string& owner, Note note, const Encode& encode);
  // Removes the notes that `matches` picks; gives how many.
  Result<size_t> forget(const std::string& owner, const std::function<bool(const Note&)>& matches);
  Result<std::vector<Note>> list(const std::string& owner) const;

  const NoteLimits& limits() const { return limits_; }
  // Of this owner's file, of its key, and of all.
  struct Usages {
    NoteUsage file, key, all;
  };
  Usages usages(const std::string& owner) const;
  // Of all, as of the last change: cheap.
  NoteUsage known_usage() const;

  static std::filesystem::path file_of(const std::filesystem::path& folder, const std::string& owner);

 private:
  struct Opened {
    std::shared_ptr<const Notebook> notebook;
    std::filesystem::file_time_type written;  // before it was read
    uintmax_t bytes = 0;
    uint32_t day = 0;
    uint64_t used = 0;  // when it was last asked for
  };
  Status check_room(const std::string& owner, size_t more_bytes, size_t n_notes) const;
  void remember(const std::filesystem::path& path, Opened opened);
  void note_usage();

  const std::filesystem::path folder_;
  const NoteLimits limits_;
  std::mutex changing_;  // held while a file is changed, with the lock of other processes
  mutable std::mutex mutex_;
  std::map<std::filesystem::path, Opened> opened_;
  uint64_t clock_ = 0;
  NoteUsage usage_;
};

}  // namespace chimere::retrieval
