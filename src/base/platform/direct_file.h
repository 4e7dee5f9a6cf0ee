// direct_file.h  Reading large pieces of a file past the system's page cache.
//
// What is read this way is kept by the reader or not at all: the page cache would hold a second copy and push out what
// others need. File systems that cannot do it (some network and memory ones) are read as usual, and told to forget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace chimere {

class DirectFile {
 public:
  static constexpr uint64_t kPage = 4096;  // what offsets, sizes and addresses are multiples of

  static Result<DirectFile> open(const std::string& path);

  DirectFile(DirectFile&& other) noexcept;
  DirectFile& operator=(DirectFile&&) = delete;
  ~DirectFile();

  // Any thread. REQUIRES: offset, size and address of `to` are multiples of kPage. A file that ends before is an error.
  Status read(uint64_t offset, std::span<std::byte> to) const;

  uint64_t size_bytes() const { return size_bytes_; }
  // The page cache is not used.
  bool is_direct() const { return is_direct_; }

 private:
  DirectFile(std::string path, int handle, uint64_t size_bytes, bool is_direct);

  std::string path_;
  int handle_;  // -1 once moved from
  uint64_t size_bytes_;
  bool is_direct_;
};

}  // namespace chimere
