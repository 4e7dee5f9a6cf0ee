#include "base/platform/atomic_file.h"

#include <atomic>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/platform/windows/files.h"

namespace chimere {

using namespace windows;

namespace {

bool runs(uint32_t process) {
  const HANDLE handle = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, process);
  // Nobody has this number; whatever else refuses us is a process.
  if (!handle) return GetLastError() != ERROR_INVALID_PARAMETER;
  DWORD code = STILL_ACTIVE;
  const bool is_known = GetExitCodeProcess(handle, &code) != 0;
  CloseHandle(handle);
  return !is_known || code == STILL_ACTIVE;
}

uint64_t number_of(FILETIME time) { return uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime; }

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path, Readers readers) {
  static std::atomic<unsigned> serial{0};
  // Process and serial number make the name ours; a leftover of a killed process with the same number is passed over.
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string temporary = path + ".tmp-" + std::to_string(GetCurrentProcessId()) + "-" + std::to_string(serial++);
    const int handle = open_file(temporary, {GENERIC_WRITE | DELETE, CREATE_NEW, 0, readers == Readers::owner});
    if (handle != -1) return Result<AtomicFile>{AtomicFile(path, std::move(temporary), handle)};
    if (GetLastError() != ERROR_FILE_EXISTS) return system_error(temporary, "cannot create");
  }
  return system_error(path, "cannot create a temporary file beside it", ERROR_FILE_EXISTS);
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int handle)
    : path_(std::move(path)), temporary_(std::move(temporary)), handle_(handle) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      handle_(std::exchange(other.handle_, -1)) {}

AtomicFile::~AtomicFile() {
  if (handle_ == -1) return;
  close_file(handle_);
  DeleteFileW(wide(temporary_).c_str());
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  CHECK(handle_ != -1);
  return write_all(handle_, temporary_, bytes);
}

Status AtomicFile::commit() {
  CHECK(handle_ != -1);
  TRY(flush(handle_, temporary_));
  Status renamed = rename_onto(handle_, temporary_, path_);
  if (!renamed) DeleteFileW(wide(temporary_).c_str());
  return renamed;
}

bool is_abandoned(const std::string& temporary) {
  const size_t at = temporary.rfind(".tmp-");
  if (at == std::string::npos) return false;
  uint32_t process = 0;
  const auto [end, bad] = std::from_chars(temporary.data() + at + 5, temporary.data() + temporary.size(), process);
  WIN32_FILE_ATTRIBUTE_DATA found{};
  if (bad != std::errc() || *end != '-' || process == 0 ||
      !GetFileAttributesExW(wide(temporary).c_str(), GetFileExInfoStandard, &found)) {
    return false;
  }
  FILETIME now{};
  GetSystemTimeAsFileTime(&now);
  constexpr uint64_t kDay = uint64_t{24} * 60 * 60 * 10'000'000;  // in steps of 100 ns
  return !runs(process) || number_of(now) > number_of(found.ftLastWriteTime) + kDay;
}

}  // namespace chimere
