#include "base/platform/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace chimere {

Result<FileLock> FileLock::acquire(const std::string& path) {
  const int handle = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (handle < 0) {
    return Error{Code::io, path + ": cannot open the lock: " + std::generic_category().message(errno)};
  }
  FileLock lock(handle);
  while (::flock(handle, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    return Error{Code::io, path + ": cannot lock: " + std::generic_category().message(errno)};
  }
  return Result<FileLock>{std::move(lock)};
}

FileLock::FileLock(FileLock&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}

FileLock::~FileLock() {
  if (handle_ >= 0) ::close(handle_);
}

}  // namespace chimere
