#include "base/platform/direct_file.h"

#include <utility>

#include "base/check.h"
#include "base/platform/windows/files.h"

namespace chimere {

using namespace windows;

Result<DirectFile> DirectFile::open(const std::string& path) {
  const int handle = open_file(path, {GENERIC_READ, OPEN_EXISTING, FILE_FLAG_NO_BUFFERING});
  if (handle == -1) return system_error(path, "cannot open");
  DirectFile file(path, handle, 0, true);
  if (GetFileType(system_handle(handle)) != FILE_TYPE_DISK) {
    return Error{Code::invalid_argument, path + ": expected a regular file"};
  }
  TRY_ASSIGN(file.size_bytes_, size_of(handle, path));
  return Result<DirectFile>{std::move(file)};
}

DirectFile::DirectFile(std::string path, int handle, uint64_t size_bytes, bool is_direct)
    : path_(std::move(path)), handle_(handle), size_bytes_(size_bytes), is_direct_(is_direct) {}

DirectFile::DirectFile(DirectFile&& other) noexcept
    : path_(std::move(other.path_)),
      handle_(std::exchange(other.handle_, -1)),
      size_bytes_(other.size_bytes_),
      is_direct_(other.is_direct_) {}

DirectFile::~DirectFile() { close_file(handle_); }

Status DirectFile::read(uint64_t offset, std::span<std::byte> to) const {
  CHECK(offset % kPage == 0 && to.size() % kPage == 0 && reinterpret_cast<uintptr_t>(to.data()) % kPage == 0);
  TRY_ASSIGN(const size_t n, read_at(handle_, path_, to, offset));
  if (n == to.size()) return Ok{};
  return Error{Code::corrupt, path_ + ": expected bytes up to " + std::to_string(offset + to.size()) +
                                  ", found its end at " + std::to_string(offset + n)};
}

}  // namespace chimere
