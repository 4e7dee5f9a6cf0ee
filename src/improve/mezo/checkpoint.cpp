#include "improve/mezo/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/hash.h"
#include "base/platform/atomic_file.h"

namespace chimere::improve {
namespace {

constexpr uint64_t kLogMagic = 0x31474f4c4e524843;    // "CHRNLOG1", little-endian
constexpr uint64_t kStateMagic = 0x314154534e524843;  // "CHRNSTA1"
constexpr size_t kMaxRecords = 10'000'000;

Error failed(const std::string& path, const char* what) {
  return Error{Code::io, path + ": " + what + ": " + std::strerror(errno)};
}

Error of_another_run(const std::string& path) {
  return Error{Code::invalid_argument,
               path +
                   ": a checkpoint of another run: its model, examples or options were different. Remove it, or name "
                   "another file"};
}

uint64_t checksum(StepRecord record) {
  record.checksum = 0;
  return hash64(std::as_bytes(std::span(&record, 1)), kLogMagic);
}

Status write_all(int handle, const std::string& path, const void* data, size_t n) {
  const char* from = static_cast<const char*>(data);
  while (n > 0) {
    const ssize_t written = ::write(handle, from, n);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed(path, "can not be written");
    from += written;
    n -= static_cast<size_t>(written);
  }
  return Ok{};
}

struct StateHeader {
  uint64_t magic, identity, n_values, checksum;
  double seconds;
  int64_t step;
};

}  // namespace

Result<StepLog> StepLog::open(const std::string& path, uint64_t identity) {
  StepLog log;
  log.path_ = path;
  if (path.empty()) return Result<StepLog>{std::move(log)};
  log.handle_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (log.handle_ < 0) return failed(path, "can not be opened");
  std::array<uint64_t, 2> head{};
  const ssize_t n = ::read(log.handle_, head.data(), sizeof head);
  if (n < 0) return failed(path, "can not be read");
  off_t end = 0;
  if (n == sizeof head) {
    if (head[0] != kLogMagic || head[1] != identity) return of_another_run(path);
    end = sizeof head;
    StepRecord record;
    while (log.records_.size() < kMaxRecords && ::read(log.handle_, &record, sizeof record) == sizeof record &&
           record.checksum == checksum(record)) {
      log.records_.push_back(record);
      end += sizeof record;
    }
  }
  // What a killed process did not write whole goes away.
  if (::ftruncate(log.handle_, end) != 0 || ::lseek(log.handle_, end, SEEK_SET) != end) {
    return failed(path, "can not be cut to its last whole record");
  }
  if (end == 0) {
    head = {kLogMagic, identity};
    TRY(write_all(log.handle_, path, head.data(), sizeof head));
  }
  return Result<StepLog>{std::move(log)};
}

StepLog::~StepLog() {
  if (handle_ >= 0) ::close(handle_);
}

Status StepLog::append(StepRecord record) {
  record.checksum = checksum(record);
  records_.push_back(record);
  if (handle_ < 0) return Ok{};
  TRY(write_all(handle_, path_, &record, sizeof record));
  if (::fdatasync(handle_) != 0) return failed(path_, "can not be flushed");
  return Ok{};
}

Status save_state(const std::string& path, uint64_t identity, const SavedState& state) {
  const auto values = std::as_bytes(std::span(state.values));
  const StateHeader header{kStateMagic,   identity,  state.values.size(), hash64(values, identity),
                           state.seconds, state.step};
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path, Readers::owner));
  TRY(file.write(std::as_bytes(std::span(&header, 1))));
  TRY(file.write(values));
  return file.commit();
}

Result<std::optional<SavedState>> load_state(const std::string& path, uint64_t identity, size_t n_values) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::optional<SavedState>{};
  StateHeader header{};
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!in || header.magic != kStateMagic || header.identity != identity || header.n_values != n_values) {
    return of_another_run(path);
  }
  SavedState state{static_cast<int>(header.step), header.seconds, std::vector<float>(n_values)};
  in.read(reinterpret_cast<char*>(state.values.data()), static_cast<std::streamsize>(n_values * sizeof(float)));
  if (!in || hash64(std::as_bytes(std::span(state.values)), identity) != header.checksum) {
    return Error{Code::corrupt, path + ": a checkpoint whose checksum is wrong; remove it to begin anew"};
  }
  return std::optional<SavedState>{std::move(state)};
}

}  // namespace chimere::improve
