#include "base/platform/mapped_file.h"

#include <algorithm>
#include <utility>

#include "base/platform/windows/files.h"

namespace chimere {

using namespace windows;

namespace {

struct OpenFile {
  int handle;
  ~OpenFile() { close_file(handle); }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const DWORD attributes = GetFileAttributesW(wide(path).c_str());
  if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0) {
    return Error{Code::io, path + ": is a folder, expected a file"};
  }
  const OpenFile file{open_file(path, {GENERIC_READ, OPEN_EXISTING})};
  if (file.handle == -1) {
    const DWORD number = GetLastError();
    Error error = system_error(path, "cannot open", number);
    if (number == ERROR_FILE_NOT_FOUND || number == ERROR_PATH_NOT_FOUND) error.code = Code::not_found;
    return error;
  }
  if (GetFileType(system_handle(file.handle)) != FILE_TYPE_DISK) {
    return Error{Code::io, path + ": is not a regular file"};
  }
  TRY_ASSIGN(const uint64_t size, size_of(file.handle, path));
  MappedFile mapped;
  if (size > 0) {
    const HANDLE mapping = CreateFileMappingW(system_handle(file.handle), nullptr, PAGE_READONLY, 0, 0, nullptr);
    if (!mapping) return system_error(path, "cannot map");
    const void* data = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
    const DWORD number = GetLastError();
    CloseHandle(mapping);  // the view keeps it
    if (!data) return system_error(path, "cannot map", number);
    mapped.data_ = static_cast<const std::byte*>(data);
    mapped.size_ = size;
  }
  return Result<MappedFile>{std::move(mapped)};
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() { unmap(); }

void MappedFile::unmap() {
  if (data_) UnmapViewOfFile(data_);
}

void MappedFile::advise(size_t offset, size_t length, Access access) const {
  // The other hints have no counterpart for a mapping.
  if (offset >= size_ || access != Access::will_need) return;
  WIN32_MEMORY_RANGE_ENTRY range{const_cast<std::byte*>(data_) + offset, std::min(length, size_ - offset)};
  PrefetchVirtualMemory(GetCurrentProcess(), 1, &range, 0);
}

void MappedFile::drop(size_t offset, size_t length) const {
  if (offset >= size_) return;
  constexpr size_t kPage = 4096;
  const size_t end = offset + std::min(length, size_ - offset);
  const size_t first = (offset + kPage - 1) / kPage * kPage, last = end == size_ ? size_ : end / kPage * kPage;
  // Unlocking what was never locked fails, and takes it out of the working set: the documented way to do that.
  if (first < last) VirtualUnlock(const_cast<std::byte*>(data_) + first, last - first);
}

}  // namespace chimere
