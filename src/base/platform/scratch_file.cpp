#include "base/platform/scratch_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/platform/io_error.h"

namespace chimere {

// Its name is gone before the first byte is written: nothing stays when the program is killed.
Result<ScratchFile> ScratchFile::create(const std::string& folder) {
  std::string name = folder + "/.chimere-disk-XXXXXX";
  const int written = ::mkostemp(name.data(), O_CLOEXEC);
  if (written < 0) return io_error(folder, "no file can be written there", errno);
  int read = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  const bool is_direct = read >= 0;
  if (!is_direct) read = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  const int opened = errno;
  ::unlink(name.c_str());
  ScratchFile file(folder, written, read, is_direct);
  if (read < 0) return io_error(folder, "what was written there can not be read", opened);
  return Result<ScratchFile>{std::move(file)};
}

ScratchFile::ScratchFile(std::string folder, int written, int read, bool is_direct)
    : folder_(std::move(folder)), written_(written), read_(read), is_direct_(is_direct) {}

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      written_(std::exchange(other.written_, -1)),
      read_(std::exchange(other.read_, -1)),
      is_direct_(other.is_direct_) {}

ScratchFile::~ScratchFile() {
  for (const int handle : {written_, read_}) {
    if (handle >= 0) ::close(handle);
  }
}

Status ScratchFile::write(std::span<const std::byte> bytes, uint64_t at) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(written_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return io_error(folder_, "the file to measure with can not be written", n < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(n));
    at += static_cast<uint64_t>(n);
  }
  return Ok{};
}

Status ScratchFile::flush() {
  if (::fsync(written_) != 0) return io_error(folder_, "the file to measure with can not be written", errno);
  static_cast<void>(::posix_fadvise(written_, 0, 0, POSIX_FADV_DONTNEED));
  return Ok{};
}

Status ScratchFile::read(std::span<std::byte> to, uint64_t at) const {
  while (!to.empty()) {
    const ssize_t n = ::pread(read_, to.data(), to.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return io_error(folder_, "the file to measure with can not be read", n < 0 ? errno : EIO);
    to = to.subspan(static_cast<size_t>(n));
    at += static_cast<uint64_t>(n);
  }
  return Ok{};
}

void ScratchFile::forget() const {
  if (!is_direct_) static_cast<void>(::posix_fadvise(read_, 0, 0, POSIX_FADV_DONTNEED));
}

}  // namespace chimere
