// file_lock.h  One writer at a time: a lock on a file beside the one that is changed, held by processes and threads.
//
// The system drops it when its holder ends, however that happens. The lock file stays; it is empty. While one that
// others wait for is held, the process is not asked to stand still (stand_still.h).
#pragma once

#include <optional>
#include <string>

#include "base/platform/stand_still.h"
#include "base/result.h"

namespace chimere {

class FileLock {
 public:
  // Waits for other holders. Makes the file `path` when there is none.
  static Result<FileLock> acquire(const std::string& path);
  // Nullopt where another holds it.
  static Result<std::optional<FileLock>> try_acquire(const std::string& path);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int handle) : handle_(handle) {}
  static Result<FileLock> open(const std::string& path);
  // False where another holds it and it `waits` not.
  Result<bool> take(const std::string& path, bool waits) const;
  int handle_;  // -1 once moved from
  std::optional<StandFast> fast_;
};

}  // namespace chimere
