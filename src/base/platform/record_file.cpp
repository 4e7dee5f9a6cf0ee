#include "base/platform/record_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/platform/io_error.h"

namespace chimere {

Result<RecordFile> RecordFile::open(const std::string& path) {
  const int handle = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (handle < 0) return io_error(path, "cannot open", errno);
  return Result<RecordFile>{RecordFile(path, handle)};
}

RecordFile::RecordFile(std::string path, int handle) : path_(std::move(path)), handle_(handle) {}

RecordFile::RecordFile(RecordFile&& other) noexcept
    : path_(std::move(other.path_)), handle_(std::exchange(other.handle_, -1)), at_(other.at_) {}

RecordFile::~RecordFile() {
  if (handle_ >= 0) ::close(handle_);
}

Result<size_t> RecordFile::read(std::span<std::byte> to) {
  size_t done = 0;
  while (done < to.size()) {
    const ssize_t n = ::pread(handle_, to.data() + done, to.size() - done, static_cast<off_t>(at_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path_, "cannot read", errno);
    if (n == 0) break;
    done += static_cast<size_t>(n);
    at_ += static_cast<uint64_t>(n);
  }
  return done;
}

Status RecordFile::cut(uint64_t size) {
  if (::ftruncate(handle_, static_cast<off_t>(size)) != 0) return io_error(path_, "cannot cut", errno);
  at_ = size;
  return Ok{};
}

Status RecordFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(handle_, bytes.data(), bytes.size(), static_cast<off_t>(at_));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return io_error(path_, "cannot write", n < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(n));
    at_ += static_cast<uint64_t>(n);
  }
  return Ok{};
}

Status RecordFile::flush() {
  if (::fdatasync(handle_) != 0) return io_error(path_, "cannot flush", errno);
  return Ok{};
}

}  // namespace chimere
