#include "base/platform/resumable_file.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/platform/atomic_file.h"
#include "base/platform/windows/files.h"

namespace chimere {

using namespace windows;

namespace {

constexpr char kStateFormat[] = "chimere part 1 %016" PRIx64 " %" PRIu64 "\n";

// Bytes the last run of this identity left safely on the disk; 0 when there was none.
uint64_t noted_size(const std::string& state, uint64_t identity) {
  std::ifstream file(state);
  std::string line;
  uint64_t whose = 0, size = 0;
  if (!std::getline(file, line)) return 0;
  const int found = std::sscanf(line.c_str(), "chimere part 1 %" SCNx64 " %" SCNu64, &whose, &size);
  return found == 2 && whose == identity ? size : 0;
}

}  // namespace

Result<ResumableFile> ResumableFile::open(const std::string& path, uint64_t identity) {
  const std::string part = path + ".part";
  const int handle = open_file(part, {GENERIC_READ | GENERIC_WRITE | DELETE, OPEN_ALWAYS});
  if (handle == -1) return system_error(part, "cannot create");
  ResumableFile file(path, identity, handle);
  TRY_ASSIGN(const bool is_ours, lock(handle, part, false));
  if (!is_ours) return Error{Code::io, part + ": another program is writing it"};
  TRY_ASSIGN(file.size_, size_of(handle, part));
  const uint64_t noted = noted_size(file.state(), identity);
  TRY(file.cut(noted <= file.size_ ? noted : 0));
  return Result<ResumableFile>{std::move(file)};
}

ResumableFile::ResumableFile(std::string path, uint64_t identity, int handle)
    : path_(std::move(path)), identity_(identity), handle_(handle) {}

ResumableFile::ResumableFile(ResumableFile&& other) noexcept
    : path_(std::move(other.path_)),
      identity_(other.identity_),
      handle_(std::exchange(other.handle_, -1)),
      size_(other.size_) {}

ResumableFile::~ResumableFile() { close_file(handle_); }

Status ResumableFile::check_room(uint64_t size) const {
  ULARGE_INTEGER room{};
  const size_t end = path_.find_last_of("\\/");
  const std::string folder = end == std::string::npos ? "." : path_.substr(0, end + 1);
  // A file system that cannot say is asked by writing.
  if (size <= size_ || !GetDiskFreeSpaceExW(wide(folder).c_str(), &room, nullptr, nullptr)) return Ok{};
  const uint64_t needed = size - size_;
  if (needed <= room.QuadPart) return Ok{};
  return Error{Code::exhausted, part() + ": the disk has " + std::to_string(room.QuadPart) + " bytes left, and " +
                                    std::to_string(needed) + " are needed"};
}

Status ResumableFile::cut(uint64_t size) {
  CHECK(handle_ != -1 && size <= size_);
  TRY(set_end(handle_, part(), size));
  size_ = size;
  return Ok{};
}

Status ResumableFile::write(std::span<const std::byte> bytes) {
  CHECK(handle_ != -1);
  TRY(write_all(handle_, part(), bytes));
  size_ += bytes.size();
  return Ok{};
}

Status ResumableFile::checkpoint() {
  CHECK(handle_ != -1);
  TRY(flush(handle_, part()));
  char text[96];
  const int length = std::snprintf(text, sizeof(text), kStateFormat, identity_, size_);
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(state()));
  TRY(file.write(std::as_bytes(std::span(text, static_cast<size_t>(length)))));
  return file.commit();
}

Status ResumableFile::commit() {
  CHECK(handle_ != -1);
  TRY(flush(handle_, part()));
  TRY(rename_onto(handle_, part(), path_));
  DeleteFileW(wide(state()).c_str());
  return Ok{};
}

}  // namespace chimere
