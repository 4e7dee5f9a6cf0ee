// table_writer.h  A stream of records becomes a file: all of it or nothing, whatever happens on the way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/platform/atomic_file.h"
#include "engram/record.h"

namespace chimere::engram {

// Which tokens a table speaks of. Ids mean nothing under another vocabulary.
struct Vocabulary {
  uint64_t fingerprint = 0;
  uint32_t n_vocab = 0;

  bool operator==(const Vocabulary&) const = default;
};

struct TableShape {
  Vocabulary vocabulary;
  int min_order = 2, max_order = 8;
};

// The records must be sorted, with the most frequent entries first, as MergedRecords gives them. Everything is put
// together in memory: about the size of the file.
Status write_table(const std::string& path, const TableShape& shape, RecordStream& records,
                   const std::vector<Source>& sources, Readers readers = Readers::all);
// The bytes of that file, in words, for a table that lives no longer than a request.
Result<std::vector<uint64_t>> table_image(const TableShape& shape, RecordStream& records,
                                          const std::vector<Source>& sources);

}  // namespace chimere::engram
