#include "base/platform/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/platform/io_error.h"

namespace chimere {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

size_t page_size() {
  static const size_t size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // Non-blocking, because opening a pipe for reading would otherwise wait for a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) {
    const int number = errno;
    Error error = io_error(path, "cannot open", number);
    if (number == ENOENT) error.code = Code::not_found;
    return error;
  }
  struct stat status;
  if (::fstat(file.fd, &status) != 0) return io_error(path, "cannot read its size", errno);
  if (S_ISDIR(status.st_mode)) return Error{Code::io, path + ": is a folder, expected a file"};
  if (!S_ISREG(status.st_mode)) return Error{Code::io, path + ": is not a regular file"};
  if (static_cast<uint64_t>(status.st_size) > SIZE_MAX) {
    return Error{Code::unsupported, path + ": does not fit the address space"};
  }

  MappedFile mapped;
  const size_t size = static_cast<size_t>(status.st_size);
  if (size > 0) {
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
    if (data == MAP_FAILED) return io_error(path, "cannot map", errno);
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
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::advise(size_t offset, size_t length, Access access) const {
  if (offset >= size_) return;
  const size_t first = offset / page_size() * page_size();
  const size_t last = offset + std::min(length, size_ - offset);
  int advice = MADV_NORMAL;
  switch (access) {
    case Access::normal: advice = MADV_NORMAL; break;
    case Access::sequential: advice = MADV_SEQUENTIAL; break;
    case Access::random: advice = MADV_RANDOM; break;
    case Access::will_need: advice = MADV_WILLNEED; break;
  }
  // A refused hint costs speed, not correctness.
  (void)::madvise(const_cast<std::byte*>(data_) + first, last - first, advice);
}

void MappedFile::drop(size_t offset, size_t length) const {
  if (offset >= size_) return;
  const size_t page = page_size();
  const size_t end = offset + std::min(length, size_ - offset);
  const size_t first = (offset + page - 1) / page * page;
  // The tail page of the file belongs to nobody else.
  const size_t last = end == size_ ? size_ : end / page * page;
  if (first < last) (void)::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
}

}  // namespace chimere
