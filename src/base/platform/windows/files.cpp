#include "base/platform/windows/files.h"

#include <sddl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

namespace chimere::windows {
namespace {

// One call takes a size of 32 bits; with NO_BUFFERING it has to be whole sectors.
constexpr size_t kPieceBytes = size_t{64} << 20;

OVERLAPPED place(uint64_t offset) {
  OVERLAPPED at{};
  at.Offset = static_cast<DWORD>(offset);
  at.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return at;
}

// "S-1-5-..." of who runs this process; empty when the system does not tell.
std::wstring own_user() {
  HANDLE token = nullptr;
  if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token)) return L"";
  std::vector<std::byte> bytes(256);
  DWORD size = 0;
  const bool is_known =
      GetTokenInformation(token, TokenUser, bytes.data(), static_cast<DWORD>(bytes.size()), &size) != 0;
  CloseHandle(token);
  wchar_t* text = nullptr;
  if (!is_known || !ConvertSidToStringSidW(reinterpret_cast<TOKEN_USER*>(bytes.data())->User.Sid, &text)) return L"";
  std::wstring user = text;
  LocalFree(text);
  return user;
}

// Windows 10 renames as POSIX does: onto a file that others have open or mapped, who keep the old one.
bool rename_as_posix(HANDLE handle, const std::wstring& name) {
  std::wstring to(32'768, L'\0');  // the longest there is
  to.resize(GetFullPathNameW(name.c_str(), static_cast<DWORD>(to.size()), to.data(), nullptr));
  struct Target {
    DWORD flags;
    HANDLE root;
    DWORD name_bytes;
    wchar_t name[1];
  };
  constexpr auto kFileRenameInfoEx = static_cast<FILE_INFO_BY_HANDLE_CLASS>(22);
  constexpr DWORD kReplaceIfExists = 1, kPosixSemantics = 2;
  const size_t name_bytes = to.size() * sizeof(wchar_t), bytes = sizeof(Target) + name_bytes;
  const auto memory = std::make_unique<std::byte[]>(bytes);
  auto* target =
      new (memory.get()) Target{kReplaceIfExists | kPosixSemantics, nullptr, static_cast<DWORD>(name_bytes), {}};
  std::memcpy(target->name, to.c_str(), name_bytes + sizeof(wchar_t));
  return SetFileInformationByHandle(handle, kFileRenameInfoEx, target, static_cast<DWORD>(bytes)) != 0;
}

// For file systems that do not know that (FAT, network shares, Wine's): in one step where nobody has the target open or
// mapped, else in two, between which it has no file. Its old one is removed, or stays under a name that is_abandoned()
// knows (atomic_file.h) while somebody has it.
bool replace(const std::wstring& from, const std::wstring& to) {
  constexpr DWORD kHow = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
  if (MoveFileExW(from.c_str(), to.c_str(), kHow)) return true;
  const DWORD number = GetLastError();
  static std::atomic<unsigned> serial{0};
  const std::wstring aside =
      to + L".tmp-" + std::to_wstring(GetCurrentProcessId()) + L"-old" + std::to_wstring(serial++);
  if (!MoveFileExW(to.c_str(), aside.c_str(), 0)) {
    SetLastError(number);
    return false;
  }
  const bool is_done = MoveFileExW(from.c_str(), to.c_str(), kHow) != 0;
  if (is_done) {
    DeleteFileW(aside.c_str());
  } else {
    const DWORD second = GetLastError();
    MoveFileExW(aside.c_str(), to.c_str(), 0);
    SetLastError(second);
  }
  return is_done;
}

}  // namespace

std::wstring wide(std::string_view utf8) {
  const int n = MultiByteToWideChar(CP_UTF8, 0, utf8.data(), static_cast<int>(utf8.size()), nullptr, 0);
  std::wstring text(static_cast<size_t>(n), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, utf8.data(), static_cast<int>(utf8.size()), text.data(), n);
  return text;
}

std::string narrow(std::wstring_view utf16) {
  const int from = static_cast<int>(utf16.size());
  const int n = WideCharToMultiByte(CP_UTF8, 0, utf16.data(), from, nullptr, 0, nullptr, nullptr);
  std::string text(static_cast<size_t>(n), '\0');
  WideCharToMultiByte(CP_UTF8, 0, utf16.data(), from, text.data(), n, nullptr, nullptr);
  return text;
}

Error system_error(const std::string& path, const char* what, DWORD number) {
  std::string words = std::system_category().message(static_cast<int>(number));
  while (!words.empty() && (words.back() == '\n' || words.back() == '\r' || words.back() == '.')) words.pop_back();
  return Error{Code::io, path + ": " + what + ": " + words};
}

OwnerOnly::OwnerOnly() {
  const std::wstring user = own_user();
  // Protected from what the folder above would give; system (SY), administrators (BA) and the user: everything.
  const std::wstring rule = L"D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;" + user + L")";
  if (user.empty() ||
      !ConvertStringSecurityDescriptorToSecurityDescriptorW(rule.c_str(), SDDL_REVISION_1, &descriptor_, nullptr)) {
    descriptor_ = nullptr;
    return;
  }
  attributes_ = {sizeof(SECURITY_ATTRIBUTES), descriptor_, FALSE};
}

int open_file(const std::string& path, const Opening& opening) {
  OwnerOnly owner_only;
  constexpr DWORD kShared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  const HANDLE handle =
      CreateFileW(wide(path).c_str(), opening.access, kShared, opening.is_private ? owner_only.attributes() : nullptr,
                  opening.disposition, FILE_ATTRIBUTE_NORMAL | opening.flags, nullptr);
  return static_cast<int>(reinterpret_cast<intptr_t>(handle));
}

void close_file(int& handle) {
  if (handle != -1) CloseHandle(system_handle(handle));
  handle = -1;
}

Status write_all(int handle, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    DWORD written = 0;
    const auto piece = static_cast<DWORD>(std::min(bytes.size(), kPieceBytes));
    if (!WriteFile(system_handle(handle), bytes.data(), piece, &written, nullptr)) {
      return system_error(path, "cannot write");
    }
    bytes = bytes.subspan(written);
  }
  return Ok{};
}

Status write_at(int handle, const std::string& path, std::span<const std::byte> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    DWORD written = 0;
    OVERLAPPED at = place(offset);
    const auto piece = static_cast<DWORD>(std::min(bytes.size(), kPieceBytes));
    if (!WriteFile(system_handle(handle), bytes.data(), piece, &written, &at)) {
      return system_error(path, "cannot write");
    }
    bytes = bytes.subspan(written);
    offset += written;
  }
  return Ok{};
}

Result<size_t> read_at(int handle, const std::string& path, std::span<std::byte> to, uint64_t offset) {
  size_t done = 0;
  while (done < to.size()) {
    DWORD n = 0;
    OVERLAPPED at = place(offset + done);
    const auto piece = static_cast<DWORD>(std::min(to.size() - done, kPieceBytes));
    if (!ReadFile(system_handle(handle), to.data() + done, piece, &n, &at) && GetLastError() != ERROR_HANDLE_EOF) {
      return system_error(path, "cannot read");
    }
    if (n == 0) break;
    done += n;
  }
  return done;
}

Result<uint64_t> size_of(int handle, const std::string& path) {
  LARGE_INTEGER size{};
  if (!GetFileSizeEx(system_handle(handle), &size)) return system_error(path, "cannot read its size");
  return static_cast<uint64_t>(size.QuadPart);
}

Status set_end(int handle, const std::string& path, uint64_t size) {
  LARGE_INTEGER end{};
  end.QuadPart = static_cast<LONGLONG>(size);
  if (!SetFilePointerEx(system_handle(handle), end, nullptr, FILE_BEGIN) || !SetEndOfFile(system_handle(handle))) {
    return system_error(path, "cannot cut");
  }
  return Ok{};
}

Status flush(int handle, const std::string& path) {
  if (!FlushFileBuffers(system_handle(handle))) return system_error(path, "cannot flush");
  return Ok{};
}

Result<bool> lock(int handle, const std::string& path, bool waits) {
  OVERLAPPED beyond = place(uint64_t{1} << 62);
  const DWORD how = LOCKFILE_EXCLUSIVE_LOCK | (waits ? 0 : LOCKFILE_FAIL_IMMEDIATELY);
  if (LockFileEx(system_handle(handle), how, 0, 1, 0, &beyond)) return true;
  const DWORD number = GetLastError();
  if (number == ERROR_LOCK_VIOLATION || number == ERROR_IO_PENDING) return false;
  return system_error(path, "cannot lock", number);
}

Status rename_onto(int& handle, const std::string& from, const std::string& to) {
  const bool is_done = rename_as_posix(system_handle(handle), wide(to));
  close_file(handle);
  // A stream, or a scanner of viruses, keeps a file to itself while it has it open: a moment.
  constexpr int kAttempts = 100;
  constexpr DWORD kPauseMs = 10;
  for (int attempt = 0; !is_done && !replace(wide(from), wide(to)); ++attempt) {
    const DWORD number = GetLastError();
    const bool may_pass = number == ERROR_ACCESS_DENIED || number == ERROR_SHARING_VIOLATION;
    if (!may_pass || attempt == kAttempts) return system_error(to, "cannot rename onto it", number);
    Sleep(kPauseMs);
  }
  return Ok{};
}

}  // namespace chimere::windows
