#include "base/platform/private_file.h"

#include <filesystem>

#include "base/platform/windows/files.h"

namespace chimere {

using namespace windows;

namespace {

Status append(int handle, const std::string& path, std::string_view line) {
  TRY_ASSIGN(const uint64_t size, size_of(handle, path));
  std::byte last{'\n'};
  if (size > 0) {
    TRY_ASSIGN(const size_t n, read_at(handle, path, {&last, 1}, size - 1));
    if (n != 1) return Error{Code::io, path + ": became shorter while it was read"};
  }
  std::string bytes = last == std::byte{'\n'} ? "" : "\n";
  bytes.append(line).append("\n");
  Status written = write_at(handle, path, std::as_bytes(std::span(bytes)), size);
  if (written) written = flush(handle, path);
  if (!written && !set_end(handle, path, size)) return system_error(path, "cannot take a line back");
  return written;
}

}  // namespace

Result<bool> make_private_folder(const std::string& path) {
  OwnerOnly owner_only;
  if (CreateDirectoryW(wide(path).c_str(), owner_only.attributes())) return true;
  if (GetLastError() == ERROR_ALREADY_EXISTS) return false;
  return system_error(path, "cannot make the folder");
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
  int handle = open_file(path, {GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS, 0, true});
  if (handle == -1) return system_error(path, "cannot open");
  // Two that append at once would both write at the same end: elsewhere O_APPEND keeps them apart.
  Status appended = Ok{};
  if (auto locked = lock(handle, path, true); !locked) {
    appended = std::move(locked.error());
  } else {
    appended = append(handle, path, line);
  }
  close_file(handle);
  return appended;
}

}  // namespace chimere
