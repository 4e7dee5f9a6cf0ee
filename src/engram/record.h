// record.h  What a table knows about one key, and streams of such records in the order of the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace chimere::engram {

// A view into a mapped file or into a stream's own memory; of a stream it lives until the next call.
struct Record {
  std::span<const uint32_t> key;      // newest token first; its size is the order
  uint32_t total = 0;                 // of the counts of all entries
  std::span<const uint64_t> entries;  // Entry, most frequent first

  int order() const { return static_cast<int>(key.size()); }
};

struct Source {
  std::string id;
  uint32_t day = 0;  // since 1970-01-01, or kNeverAges
  float score = 0;
  uint64_t n_tokens = 0;
};

// Records by ascending order, then ascending key; every key once.
class RecordStream {
 public:
  virtual ~RecordStream() = default;
  // False at the end.
  virtual Result<bool> next(Record& record) = 0;
};

// Below zero, zero or above: where `a` stands in a file, compared with `b`.
int compare_keys(std::span<const uint32_t> a, std::span<const uint32_t> b);

// One of the streams that are merged. Sources get the index `source_map` gives them; kForgotten drops what they taught.
struct MergeInput {
  static constexpr uint32_t kForgotten = UINT32_MAX;
  RecordStream* stream = nullptr;
  std::vector<uint32_t> source_map;
};

class MergedRecords : public RecordStream {
 public:
  explicit MergedRecords(std::vector<MergeInput> inputs);
  // Keys of which nothing is left are passed over. Fails as corrupt when an input is out of order.
  Result<bool> next(Record& record) override;

 private:
  struct Head {
    MergeInput input;
    Record record;
    bool is_at_end = false;
  };
  Status advance(Head& head);
  Status add_entries(const Head& head);
  void combine();

  std::vector<Head> heads_;
  bool started_ = false;
  std::vector<uint32_t> key_;
  std::vector<uint64_t> entries_;
  uint32_t total_ = 0;
};

}  // namespace chimere::engram
