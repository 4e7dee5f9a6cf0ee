// file_lock.h  One writer at a time: a lock on a file beside the one that is changed, held by processes and threads.
//
// The system drops it when its holder ends, however that happens. The lock file stays; it is empty.
#pragma once

#include <string>

#include "base/result.h"

namespace chimere {

class FileLock {
 public:
  // Waits for other holders. Makes the file `path` when there is none.
  static Result<FileLock> acquire(const std::string& path);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int handle) : handle_(handle) {}
  int handle_;  // -1 once moved from
};

}  // namespace chimere
