// record_file.h  A file that grows by records at its end, and is cut back to its last whole one.
//
// Its owner's alone. What reads and writes it is one thread of one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace chimere {

class RecordFile {
 public:
  // Makes it when there is none.
  static Result<RecordFile> open(const std::string& path);

  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&&) = delete;
  ~RecordFile();

  // From the beginning on; how many bytes were there, fewer than asked for at the end alone.
  Result<size_t> read(std::span<std::byte> to);
  // Forgets what lies beyond; what is written then follows.
  Status cut(uint64_t size);
  Status write(std::span<const std::byte> bytes);
  // Waits for the disk.
  Status flush();

 private:
  RecordFile(std::string path, int handle);

  std::string path_;
  int handle_;  // -1 once moved from
  uint64_t at_ = 0;
};

}  // namespace chimere
