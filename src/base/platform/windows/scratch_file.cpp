#include "base/platform/scratch_file.h"

#include <atomic>
#include <utility>

#include "base/platform/windows/files.h"

namespace chimere {

using namespace windows;

Result<ScratchFile> ScratchFile::create(const std::string& folder) {
  static std::atomic<unsigned> serial{0};
  const std::string name =
      folder + "/.chimere-disk-" + std::to_string(GetCurrentProcessId()) + "-" + std::to_string(serial++);
  // The system removes it with its last handle.
  const int written = open_file(name, {GENERIC_WRITE | DELETE, CREATE_NEW, FILE_FLAG_DELETE_ON_CLOSE, true});
  if (written == -1) return system_error(folder, "no file can be written there");
  const int read = open_file(name, {GENERIC_READ, OPEN_EXISTING, FILE_FLAG_NO_BUFFERING});
  const DWORD number = GetLastError();
  ScratchFile file(folder, written, read, true);
  if (read == -1) return system_error(folder, "what was written there can not be read", number);
  return Result<ScratchFile>{std::move(file)};
}

ScratchFile::ScratchFile(std::string folder, int written, int read, bool is_direct)
    : folder_(std::move(folder)), written_(written), read_(read), is_direct_(is_direct) {}

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      written_(std::exchange(other.written_, -1)),
      read_(std::exchange(other.read_, -1)),
      is_direct_(other.is_direct_) {}

ScratchFile::~ScratchFile() {
  close_file(read_);
  close_file(written_);
}

Status ScratchFile::write(std::span<const std::byte> bytes, uint64_t at) {
  return write_at(written_, folder_, bytes, at);
}

Status ScratchFile::flush() { return windows::flush(written_, folder_); }

Status ScratchFile::read(std::span<std::byte> to, uint64_t at) const {
  TRY_ASSIGN(const size_t n, read_at(read_, folder_, to, at));
  if (n != to.size()) return Error{Code::io, folder_ + ": the file to measure with is shorter than it was"};
  return Ok{};
}

void ScratchFile::forget() const {}

}  // namespace chimere
