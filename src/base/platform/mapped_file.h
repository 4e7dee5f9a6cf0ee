// mapped_file.h  A file mapped read-only into memory.
//
// The file must not be changed or truncated by anyone while it is mapped: touching a page beyond the new end raises
// SIGBUS, which no check on our side can prevent. Replacing it by rename is safe, the mapping keeps the old file.
// This header names no system type, so that another system needs only its own mapped_file.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace chimere {

enum class Access { normal, sequential, random, will_need };

class MappedFile {
 public:
  // Regular files only; an empty file gives an empty span.
  static Result<MappedFile> open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Hints for the bytes [offset, offset + length), cut to the file. They never change what is read.
  void advise(size_t offset, size_t length, Access access) const;
  // Gives back the resident pages that lie wholly inside the range; they are read again when touched.
  void drop(size_t offset, size_t length) const;

 private:
  void unmap();

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace chimere
