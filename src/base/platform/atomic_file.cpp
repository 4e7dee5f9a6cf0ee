#include "base/platform/atomic_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>

#include "base/check.h"
#include "base/platform/io_error.h"

namespace chimere {

Result<AtomicFile> AtomicFile::create(const std::string& path, Readers readers) {
  static std::atomic<unsigned> serial{0};
  const mode_t mode = readers == Readers::owner ? 0600 : 0666;
  // Process and serial number make the name ours; a leftover of a killed process with the same number is passed over.
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string temporary = path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(serial++);
    const int handle = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (handle >= 0) return Result<AtomicFile>{AtomicFile(path, std::move(temporary), handle)};
    if (errno != EEXIST) return io_error(temporary, "cannot create", errno);
  }
  return io_error(path, "cannot create a temporary file beside it", EEXIST);
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int handle)
    : path_(std::move(path)), temporary_(std::move(temporary)), handle_(handle) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      handle_(std::exchange(other.handle_, -1)) {}

AtomicFile::~AtomicFile() {
  if (handle_ < 0) return;
  ::close(handle_);
  ::unlink(temporary_.c_str());
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  CHECK(handle_ >= 0);
  while (!bytes.empty()) {
    const ssize_t written = ::write(handle_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return io_error(temporary_, "cannot write", errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return Ok{};
}

Status AtomicFile::commit() {
  CHECK(handle_ >= 0);
  if (::fsync(handle_) != 0) return io_error(temporary_, "cannot flush", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return io_error(path_, "cannot rename onto it", errno);
  ::close(std::exchange(handle_, -1));
  return Ok{};
}

bool is_abandoned(const std::string& temporary) {
  const size_t at = temporary.rfind(".tmp-");
  if (at == std::string::npos) return false;
  pid_t process = 0;
  const auto [end, bad] = std::from_chars(temporary.data() + at + 5, temporary.data() + temporary.size(), process);
  struct stat found {};
  if (bad != std::errc() || *end != '-' || process <= 0 || ::lstat(temporary.c_str(), &found) != 0) return false;
  const bool runs = ::kill(process, 0) == 0 || errno != ESRCH;
  constexpr std::time_t kDaySeconds = 24 * 60 * 60;
  return !runs || std::time(nullptr) - found.st_mtime > kDaySeconds;
}

}  // namespace chimere
