// checkpoint.h  What a run that was stopped or killed goes on from.
//
//   StepLog    one record a step, appended and flushed to the disk; a record that was not written whole is dropped. For
//              mezo: the numbers of its steps are all that there is to know, the rest is replayed.
//   StateFile  a state as a whole, written anew every so often. For head.
// Both begin with the identity of the run, and refuse one of another.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/platform/record_file.h"
#include "base/result.h"

namespace chimere::improve {

struct StepRecord {
  double plus = 0, minus = 0;  // losses at theta + eps z and theta - eps z
  double seconds = 0;
  uint64_t tokens = 0;
  uint64_t checksum = 0;
};

class StepLog {
 public:
  // An empty path: nothing is kept.
  static Result<StepLog> open(const std::string& path, uint64_t identity);

  const std::vector<StepRecord>& records() const { return records_; }
  Status append(StepRecord record);

 private:
  StepLog() = default;
  std::vector<StepRecord> records_;
  std::optional<RecordFile> file_;
};

struct SavedState {
  int step = 0;
  double seconds = 0;
  std::vector<float> values;
};

Status save_state(const std::string& path, uint64_t identity, const SavedState& state);
// Nothing where there is no such file.
Result<std::optional<SavedState>> load_state(const std::string& path, uint64_t identity, size_t n_values);

}  // namespace chimere::improve
