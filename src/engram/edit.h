// edit.h  Changing tables. Each function replaces a file in one step: whoever opens it sees the old table or the new
// one, also when the power fails, and writers of the same table wait for each other. A table that is somebody's own is
// written for Readers::owner: file and folder are theirs alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/platform/atomic_file.h"
#include "base/result.h"
#include "engram/record.h"
#include "engram/table.h"
#include "engram/table_writer.h"

namespace chimere::engram {

// What a source teaches.
struct Lesson {
  Source source;                            // n_tokens is filled in here
  std::vector<std::vector<int32_t>> texts;  // token ids; no n-gram reaches across two texts
};

// Makes a new table and the folder it lies in, or replaces one. Continuations that were seen fewer than `least` times
// after their key are left out, and keys of which nothing is left: a small table of what is common.
Status build_table(const std::string& path, const TableShape& shape, const std::vector<Lesson>& lessons,
                   uint32_t least = 1, Readers readers = Readers::all);

// A table of one text, in memory alone. REQUIRES: ids of the vocabulary.
Result<std::shared_ptr<const Table>> table_of_text(const TableShape& shape, std::span<const int32_t> tokens);

// Adds to a table; makes it with `shape` when there is none, else its own shape must be the same. A lesson whose score
// is below `threshold` is refused as invalid_argument and nothing is changed.
Status add_lessons(const std::string& path, const TableShape& shape, const std::vector<Lesson>& lessons,
                   float threshold, Readers readers = Readers::all);

// The sum of tables. Sources keep their names and ages; one of the same name and age in several tables becomes one.
Status merge_tables(const std::string& path, const std::vector<std::string>& inputs, const Vocabulary& vocabulary);

struct Removed {
  uint64_t sources = 0;
  uint64_t keys = 0;  // of which nothing is left
};
// Removes what is older than kGoneAfterDays.
Result<Removed> decay_table(const std::string& path, const Vocabulary& vocabulary, uint32_t today,
                            Readers readers = Readers::all);
// Removes everything that sources of this name taught; not_found when there is none.
Result<Removed> forget_source(const std::string& path, const Vocabulary& vocabulary, const std::string& id,
                              Readers readers = Readers::all);

}  // namespace chimere::engram
