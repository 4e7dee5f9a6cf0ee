#include "base/platform/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace chimere {

Result<FileLock> FileLock::open(const std::string& path) {
  const int handle = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (handle < 0) {
    return Error{Code::io, path + ": cannot open the lock: " + std::generic_category().message(errno)};
  }
  return FileLock(handle);
}

Result<bool> FileLock::take(const std::string& path, bool waits) const {
  while (::flock(handle_, waits ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return false;
    return Error{Code::io, path + ": cannot lock: " + std::generic_category().message(errno)};
  }
  return true;
}

Result<FileLock> FileLock::acquire(const std::string& path) {
  TRY_ASSIGN(FileLock lock, open(path));
  lock.fast_.emplace();
  TRY(lock.take(path, true));
  return Result<FileLock>{std::move(lock)};
}

Result<std::optional<FileLock>> FileLock::try_acquire(const std::string& path) {
  TRY_ASSIGN(FileLock lock, open(path));
  TRY_ASSIGN(const bool is_ours, lock.take(path, false));
  if (!is_ours) return std::optional<FileLock>();
  return std::optional<FileLock>(std::move(lock));
}

FileLock::FileLock(FileLock&& other) noexcept
    : handle_(std::exchange(other.handle_, -1)), fast_(std::move(other.fast_)) {}

FileLock::~FileLock() {
  if (handle_ >= 0) ::close(handle_);
}

}  // namespace chimere
