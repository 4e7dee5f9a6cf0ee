#include "base/platform/record_file.h"

#include <utility>

#include "base/platform/windows/files.h"

namespace chimere {

using namespace windows;

Result<RecordFile> RecordFile::open(const std::string& path) {
  const int handle = open_file(path, {GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS, 0, true});
  if (handle == -1) return system_error(path, "cannot open");
  return Result<RecordFile>{RecordFile(path, handle)};
}

RecordFile::RecordFile(std::string path, int handle) : path_(std::move(path)), handle_(handle) {}

RecordFile::RecordFile(RecordFile&& other) noexcept
    : path_(std::move(other.path_)), handle_(std::exchange(other.handle_, -1)), at_(other.at_) {}

RecordFile::~RecordFile() { close_file(handle_); }

Result<size_t> RecordFile::read(std::span<std::byte> to) {
  TRY_ASSIGN(const size_t n, read_at(handle_, path_, to, at_));
  at_ += n;
  return n;
}

Status RecordFile::cut(uint64_t size) {
  TRY(set_end(handle_, path_, size));
  at_ = size;
  return Ok{};
}

Status RecordFile::write(std::span<const std::byte> bytes) {
  TRY(write_at(handle_, path_, bytes, at_));
  at_ += bytes.size();
  return Ok{};
}

Status RecordFile::flush() { return windows::flush(handle_, path_); }

}  // namespace chimere
