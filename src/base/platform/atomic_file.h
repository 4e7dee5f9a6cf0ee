// atomic_file.h  Writing a file so that its name shows either the old content or the whole new one.
//
// Bytes go to a temporary file in the same folder; commit() flushes it to the disk and renames it over the target.
// Destroyed without commit, the temporary file is removed and the target is untouched.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace chimere {

// Who may read a new file, as far as the umask lets them.
enum class Readers { all, owner };

class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path, Readers readers = Readers::all);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status write(std::span<const std::byte> bytes);
  // REQUIRES: called once, last.
  Status commit();

 private:
  AtomicFile(std::string path, std::string temporary, int handle);

  std::string path_;
  std::string temporary_;
  int handle_;  // -1 once committed or moved from
};

// Whether a temporary file of this kind was left by a process that did not live to commit it: one that no longer runs,
// or, since process numbers are given again, one that wrote nothing to it for a day. False for every other file.
bool is_abandoned(const std::string& temporary);

}  // namespace chimere
