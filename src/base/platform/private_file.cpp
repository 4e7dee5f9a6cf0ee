#include "base/platform/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/platform/io_error.h"

namespace chimere {
namespace {

Status write_all(int handle, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(handle, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return io_error(path, "cannot write", errno);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return Ok{};
}

Status append(int handle, const std::string& path, std::string_view line) {
  struct stat info {};
  if (::fstat(handle, &info) != 0) return io_error(path, "cannot look at it", errno);
  char last = '\n';
  if (info.st_size > 0 && ::pread(handle, &last, 1, info.st_size - 1) != 1) return io_error(path, "cannot read", errno);
  std::string bytes = last == '\n' ? "" : "\n";
  bytes.append(line).append("\n");
  Status written = write_all(handle, path, bytes);
  if (written && ::fdatasync(handle) != 0) written = io_error(path, "cannot flush", errno);
  if (!written && ::ftruncate(handle, info.st_size) != 0) return io_error(path, "cannot take a line back", errno);
  return written;
}

}  // namespace

Result<bool> make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return true;
  if (errno == EEXIST) return false;
  return io_error(path, "cannot make the folder", errno);
}

Status make_private_folders(const std::string& path) {
  const std::filesystem::path folder(path);
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return Ok{};
  if (const auto parent = folder.parent_path(); parent != folder) TRY(make_private_folders(parent.string()));
  TRY(make_private_folder(path));
  return Ok{};
}

Status append_private_line(const std::string& path, std::string_view line) {
  const int handle = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (handle < 0) return io_error(path, "cannot open", errno);
  const Status appended = append(handle, path, line);
  ::close(handle);
  return appended;
}

}  // namespace chimere
