#include "improve/mezo/checkpoint.h"

#include <array>
#include <fstream>

#include "base/hash.h"
#include "base/platform/atomic_file.h"

namespace chimere::improve {
namespace {

constexpr uint64_t kLogMagic = 0x31474f4c4e524843;    // "CHRNLOG1", little-endian
constexpr uint64_t kStateMagic = 0x314154534e524843;  // "CHRNSTA1"
constexpr size_t kMaxRecords = 10'000'000;

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

struct StateHeader {
  uint64_t magic, identity, n_values, checksum;
  double seconds;
  int64_t step;
};

}  // namespace

Result<StepLog> StepLog::open(const std::string& path, uint64_t identity) {
  StepLog log;
  if (path.empty()) return Result<StepLog>{std::move(log)};
  TRY_ASSIGN(RecordFile file, RecordFile::open(path));
  std::array<uint64_t, 2> head{};
  TRY_ASSIGN(const size_t n, file.read(std::as_writable_bytes(std::span(head))));
  uint64_t end = 0;
  if (n == sizeof head) {
    if (head[0] != kLogMagic || head[1] != identity) return of_another_run(path);
    end = sizeof head;
    for (StepRecord record; log.records_.size() < kMaxRecords; end += sizeof record) {
      TRY_ASSIGN(const size_t n_record, file.read(std::as_writable_bytes(std::span(&record, 1))));
      if (n_record != sizeof record || record.checksum != checksum(record)) break;
      log.records_.push_back(record);
    }
  }
  // What a killed process did not write whole goes away.
  TRY(file.cut(end));
  if (end == 0) {
    head = {kLogMagic, identity};
    TRY(file.write(std::as_bytes(std::span(head))));
  }
  log.file_.emplace(std::move(file));
  return Result<StepLog>{std::move(log)};
}

Status StepLog::append(StepRecord record) {
  record.checksum = checksum(record);
  records_.push_back(record);
  if (!file_) return Ok{};
  TRY(file_->write(std::as_bytes(std::span(&record, 1))));
  return file_->flush();
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
