#include "base/platform/file_lock.h"

#include <utility>

#include "base/platform/windows/files.h"

namespace chimere {

using namespace windows;

Result<FileLock> FileLock::open(const std::string& path) {
  const int handle = open_file(path, {GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS});
  if (handle == -1) return system_error(path, "cannot open the lock");
  return FileLock(handle);
}

Result<bool> FileLock::take(const std::string& path, bool waits) const { return lock(handle_, path, waits); }

Result<FileLock> FileLock::acquire(const std::string& path) {
  TRY_ASSIGN(FileLock held, open(path));
  held.fast_.emplace();
  TRY(held.take(path, true));
  return Result<FileLock>{std::move(held)};
}

Result<std::optional<FileLock>> FileLock::try_acquire(const std::string& path) {
  TRY_ASSIGN(FileLock held, open(path));
  TRY_ASSIGN(const bool is_ours, held.take(path, false));
  if (!is_ours) return std::optional<FileLock>();
  return std::optional<FileLock>(std::move(held));
}

FileLock::FileLock(FileLock&& other) noexcept
    : handle_(std::exchange(other.handle_, -1)), fast_(std::move(other.fast_)) {}

FileLock::~FileLock() { close_file(handle_); }

}  // namespace chimere
