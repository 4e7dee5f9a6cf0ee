// scratch_file.h  A file for a while, to measure a disk with: gone when the program ends, however that happens, and read past
// the system's page cache where that is possible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace chimere {

class ScratchFile {
 public:
  static constexpr uint64_t kPage = 4096;  // what offsets, sizes and addresses of reads are multiples of

  static Result<ScratchFile> create(const std::string& folder);

  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&&) = delete;
  ~ScratchFile();

  Status write(std::span<const std::byte> bytes, uint64_t at);
  // Waits for the disk, and leaves nothing of it in memory.
  Status flush();
  // Any thread. A file that ends before is an error.
  Status read(std::span<std::byte> to, uint64_t at) const;
  // Where the page cache is used: what was read once would come from memory.
  void forget() const;
  // The page cache is not used.
  bool is_direct() const { return is_direct_; }

 private:
  ScratchFile(std::string folder, int written, int read, bool is_direct);

  std::string folder_;
  int written_, read_;  // -1 once moved from
  bool is_direct_;
};

}  // namespace chimere
