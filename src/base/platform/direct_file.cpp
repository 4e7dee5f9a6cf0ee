#include "base/platform/direct_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/platform/io_error.h"

namespace chimere {

Result<DirectFile> DirectFile::open(const std::string& path) {
  int handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  const bool is_direct = handle >= 0;
  if (!is_direct && errno == EINVAL) handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0) return io_error(path, "cannot open", errno);
  DirectFile file(path, handle, 0, is_direct);
  struct stat info = {};
  if (::fstat(handle, &info) != 0) return io_error(path, "cannot read its size", errno);
  if (!S_ISREG(info.st_mode)) return Error{Code::invalid_argument, path + ": expected a regular file"};
  file.size_bytes_ = static_cast<uint64_t>(info.st_size);
  return Result<DirectFile>{std::move(file)};
}

DirectFile::DirectFile(std::string path, int handle, uint64_t size_bytes, bool is_direct)
    : path_(std::move(path)), handle_(handle), size_bytes_(size_bytes), is_direct_(is_direct) {}

DirectFile::DirectFile(DirectFile&& other) noexcept
    : path_(std::move(other.path_)),
      handle_(std::exchange(other.handle_, -1)),
      size_bytes_(other.size_bytes_),
      is_direct_(other.is_direct_) {}

DirectFile::~DirectFile() {
  if (handle_ >= 0) ::close(handle_);
}

Status DirectFile::read(uint64_t offset, std::span<std::byte> to) const {
  CHECK(offset % kPage == 0 && to.size() % kPage == 0 && reinterpret_cast<uintptr_t>(to.data()) % kPage == 0);
  const uint64_t begin = offset, bytes = to.size();
  while (!to.empty()) {
    const ssize_t n = ::pread(handle_, to.data(), to.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path_, "cannot read", errno);
    if (n == 0) {
      return Error{Code::corrupt, path_ + ": expected bytes up to " + std::to_string(begin + bytes) +
                                      ", found its end at " + std::to_string(offset)};
    }
    offset += static_cast<uint64_t>(n);
    to = to.subspan(static_cast<size_t>(n));
  }
  if (!is_direct_) {
    static_cast<void>(
        posix_fadvise(handle_, static_cast<off_t>(begin), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED));
  }
  return Ok{};
}

}  // namespace chimere
