#include "base/platform/resumable_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include "base/check.h"
#include "base/platform/atomic_file.h"
#include "base/platform/io_error.h"

namespace chimere {
namespace {

constexpr char kStateFormat[] = "chimere part 1 %016" PRIx64 " %" PRIu64 "\n";

// Bytes the last run of this identity left safely on the disk; 0 when there was none.
uint64_t noted_size(const std::string& state, uint64_t identity) {
  std::FILE* file = std::fopen(state.c_str(), "r");
  if (!file) return 0;
  uint64_t whose = 0, size = 0;
  const int found = std::fscanf(file, "chimere part 1 %" SCNx64 " %" SCNu64, &whose, &size);
  std::fclose(file);
  return found == 2 && whose == identity ? size : 0;
}

}  // namespace

Result<ResumableFile> ResumableFile::open(const std::string& path, uint64_t identity) {
  const std::string part = path + ".part";
  const int handle = ::open(part.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (handle < 0) return io_error(part, "cannot create", errno);
  ResumableFile file(path, identity, handle);
  if (::flock(handle, LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? Error{Code::io, part + ": another program is writing it"}
                                : io_error(part, "cannot lock", errno);
  }
  struct stat info = {};
  if (::fstat(handle, &info) != 0) return io_error(part, "cannot read its size", errno);
  file.size_ = static_cast<uint64_t>(info.st_size);
  const uint64_t noted = noted_size(file.state(), identity);
  TRY(file.cut(noted <= file.size_ ? noted : 0));
  return Result<ResumableFile>{std::move(file)};
}

ResumableFile::ResumableFile(std::string path, uint64_t identity, int handle)
    : path_(std::move(path)), identity_(identity), handle_(handle) {}

ResumableFile::ResumableFile(ResumableFile&& other) noexcept
    : path_(std::move(other.path_)),
      identity_(other.identity_),
      handle_(std::exchange(other.handle_, -1)),
      size_(other.size_) {}

ResumableFile::~ResumableFile() {
  if (handle_ >= 0) ::close(handle_);
}

Status ResumableFile::check_room(uint64_t size) const {
  struct statvfs disk = {};
  // A file system that cannot say is asked by writing.
  if (size <= size_ || ::fstatvfs(handle_, &disk) != 0) return Ok{};
  const uint64_t room = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize, needed = size - size_;
  if (needed <= room) return Ok{};
  return Error{Code::exhausted, part() + ": the disk has " + std::to_string(room) + " bytes left, and " +
                                    std::to_string(needed) + " are needed"};
}

Status ResumableFile::cut(uint64_t size) {
  CHECK(handle_ >= 0 && size <= size_);
  if (::ftruncate(handle_, static_cast<off_t>(size)) != 0) return io_error(part(), "cannot cut", errno);
  if (::lseek(handle_, static_cast<off_t>(size), SEEK_SET) < 0) return io_error(part(), "cannot seek", errno);
  size_ = size;
  return Ok{};
}

Status ResumableFile::write(std::span<const std::byte> bytes) {
  CHECK(handle_ >= 0);
  while (!bytes.empty()) {
    const ssize_t written = ::write(handle_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return io_error(part(), "cannot write", errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
    size_ += static_cast<uint64_t>(written);
  }
  return Ok{};
}

Status ResumableFile::checkpoint() {
  CHECK(handle_ >= 0);
  if (::fsync(handle_) != 0) return io_error(part(), "cannot flush", errno);
  char text[96];
  const int length = std::snprintf(text, sizeof(text), kStateFormat, identity_, size_);
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(state()));
  TRY(file.write(std::as_bytes(std::span(text, static_cast<size_t>(length)))));
  return file.commit();
}

Status ResumableFile::commit() {
  CHECK(handle_ >= 0);
  if (::fsync(handle_) != 0) return io_error(part(), "cannot flush", errno);
  if (::rename(part().c_str(), path_.c_str()) != 0) return io_error(path_, "cannot rename onto it", errno);
  (void)::unlink(state().c_str());
  ::close(std::exchange(handle_, -1));
  return Ok{};
}

}  // namespace chimere
