// files.h  What the files of this folder share: names as Windows takes them, errors in its words, and open files.
//
// Handles are kept as int, as the headers of platform/ have them: Windows uses 32 bits of a handle, and promises to go on
// doing so for the sake of 32-bit programs; sign-extended, -1 is INVALID_HANDLE_VALUE. All files are opened so that others
// may read, write, rename and remove them meanwhile, as elsewhere.
#pragma once

#ifndef NOMINMAX  // libstdc++ does it, too
#define NOMINMAX
#endif
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace chimere::windows {

std::wstring wide(std::string_view utf8);
std::string narrow(std::wstring_view utf16);

// The file, what was tried, and Windows' own words.
Error system_error(const std::string& path, const char* what, DWORD number = GetLastError());

inline HANDLE system_handle(int handle) { return reinterpret_cast<HANDLE>(static_cast<intptr_t>(handle)); }

// Of files and folders that their owner alone may use (and the system and its administrators, who can not be kept out).
// Null where the user can not be told: then what the folder above gives holds.
class OwnerOnly {
 public:
  OwnerOnly();
  ~OwnerOnly() { LocalFree(descriptor_); }
  OwnerOnly(const OwnerOnly&) = delete;
  SECURITY_ATTRIBUTES* attributes() { return descriptor_ ? &attributes_ : nullptr; }

 private:
  PSECURITY_DESCRIPTOR descriptor_ = nullptr;
  SECURITY_ATTRIBUTES attributes_{};
};

struct Opening {
  DWORD access;       // GENERIC_READ, ...
  DWORD disposition;  // CREATE_NEW, OPEN_ALWAYS, OPEN_EXISTING
  DWORD flags = 0;    // FILE_FLAG_...
  bool is_private = false;
};
// -1 with GetLastError() when it can not be opened.
int open_file(const std::string& path, const Opening& opening);
// Closes it; -1 is none.
void close_file(int& handle);

// Where the handle stands, or at `offset`, which leaves no trace for other threads.
Status write_all(int handle, const std::string& path, std::span<const std::byte> bytes);
Status write_at(int handle, const std::string& path, std::span<const std::byte> bytes, uint64_t offset);
// How many bytes were there: fewer than asked for at the end of the file alone.
Result<size_t> read_at(int handle, const std::string& path, std::span<std::byte> to, uint64_t offset);
Result<uint64_t> size_of(int handle, const std::string& path);
// Cuts or extends it and stands there.
Status set_end(int handle, const std::string& path, uint64_t size);
Status flush(int handle, const std::string& path);

// Locks it for this handle alone, until that is closed; false where another has it and `waits` is false. What is locked is
// a byte far behind every end: a lock keeps others from the bytes themselves, and those are for everyone.
Result<bool> lock(int handle, const std::string& path, bool waits);

// Renames an open file onto `to`, in one step; one that is there may be open or mapped. REQUIRES: opened with DELETE.
Status rename_onto(int& handle, const std::string& from, const std::string& to);

}  // namespace chimere::windows
