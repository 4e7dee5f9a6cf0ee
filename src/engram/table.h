// table.h  A table of n-grams, mapped from its file: the n-grams that end a context, and what followed them.
//
// Reads version 2 (table_format.h) and the older version 1 (legacy_table.h). Immutable: use it from any thread. A file
// that is replaced by rename, as our writer does, leaves open tables as they were.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/platform/mapped_file.h"
#include "base/result.h"
#include "engram/cuckoo_filter.h"
#include "engram/legacy_table.h"
#include "engram/ngram_source.h"
#include "engram/record.h"
#include "engram/table_format.h"
#include "engram/table_writer.h"

namespace chimere::engram {

class Table : public NgramSource {
 public:
  // Continuations of one key that are read. Beyond them only the total counts: a key with so many says little.
  static constexpr size_t kMaxNext = 256;

  // Refuses damaged files as corrupt, and as invalid_argument those of another vocabulary. `today` is what ages are
  // counted from. Reads the whole file once, for its checksum.
  static Result<std::shared_ptr<const Table>> open(const std::string& path, const Vocabulary& vocabulary,
                                                   uint32_t today);

  // A table that lies in memory, as table_image() makes it. `name`: for messages.
  static Result<std::shared_ptr<const Table>> from_image(std::vector<uint64_t> image, const std::string& name,
                                                         const Vocabulary& vocabulary, uint32_t today);

  using Context = NgramContext;
  static Context context_of(std::span<const int32_t> tokens);

  // Of one key at most kMaxNext continuations.
  bool find(const Context& context, int order, Hit& hit) const override;
  std::optional<Record> find_record(const Context& context, int order) const;
  void prefetch(const Context& context) const override;

  int min_order() const override { return min_order_; }
  int max_order() const override { return max_order_; }
  int version() const { return legacy_ ? 1 : 2; }
  const FileHeader& header() const { return header_; }  // of a version 1 file: numbers of keys and orders only
  const std::vector<Source>& sources() const { return sources_; }
  Vocabulary vocabulary() const { return {header_.tokenizer, header_.n_vocab}; }
  // All records in their order. REQUIRES: version 2, and the table outlives the stream.
  std::unique_ptr<RecordStream> records() const;

 private:
  static Result<std::shared_ptr<const Table>> read(std::shared_ptr<Table> table, const std::string& path,
                                                   const Vocabulary& vocabulary, uint32_t today);
  Status read_header(const std::string& path);
  Status read_sources(const std::string& path);
  // The slots of both buckets are on their way while the filter is read.
  CuckooFilter::Matches matches(uint64_t hash) const {
    const CuckooFilter::Matches matches = filter_.matches(hash);
    __builtin_prefetch(&slots_[matches.first * CuckooFilter::kLanes]);
    __builtin_prefetch(&slots_[matches.second * CuckooFilter::kLanes]);
    return matches;
  }
  std::optional<Record> record_at(uint64_t word) const;
  std::span<const std::byte> section(uint64_t offset, uint64_t bytes) const;
  friend class TableRecords;

  MappedFile file_;                   // of a table that was opened
  std::vector<uint64_t> image_;       // of one in memory
  std::span<const std::byte> bytes_;  // of either
  FileHeader header_;
  int min_order_ = 0, max_order_ = 0;
  CuckooFilter filter_;
  std::span<const uint32_t> slots_;  // of each lane of the filter, where its record begins
  std::span<const uint64_t> records_;
  std::vector<Source> sources_;
  std::vector<float> source_weights_;  // by age; one more than sources_, 0, for indices beyond
  std::optional<LegacyTable> legacy_;
};

// Days since 1970-01-01.
uint32_t today();

}  // namespace chimere::engram
