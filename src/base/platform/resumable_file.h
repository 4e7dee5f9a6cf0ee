// resumable_file.h  Writing a large file in several runs: a run that was killed is continued, not repeated.
//
//   FILE.part         the bytes so far
//   FILE.part.state   whose bytes they are (`identity`), and how many of them are safely on the disk
//
// checkpoint() flushes and notes the size; what was written after it is cut off by the next open(). commit() renames
// the file to its name, which never shows a part of it. One process at a time: the part is locked while it is open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace chimere {

class ResumableFile {
 public:
  // Goes on where the last run with this identity stopped; starts again when there is none, or it was another one's.
  static Result<ResumableFile> open(const std::string& path, uint64_t identity);

  ResumableFile(ResumableFile&& other) noexcept;
  ResumableFile& operator=(ResumableFile&&) = delete;
  ~ResumableFile();  // leaves the part for the next run

  uint64_t size() const { return size_; }
  // An error when the disk has no room for a file of so many bytes: better before the first of them than hours later.
  Status check_room(uint64_t size) const;
  // Forgets what lies beyond. REQUIRES: not more than size().
  Status cut(uint64_t size);
  Status write(std::span<const std::byte> bytes);
  Status checkpoint();
  // REQUIRES: called once, last.
  Status commit();

 private:
  ResumableFile(std::string path, uint64_t identity, int handle);
  std::string part() const { return path_ + ".part"; }
  std::string state() const { return path_ + ".part.state"; }

  std::string path_;
  uint64_t identity_;
  int handle_;  // -1 once committed or moved from
  uint64_t size_ = 0;
};

}  // namespace chimere
