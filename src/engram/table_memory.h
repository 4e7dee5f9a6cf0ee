// table_memory.h  Tables as the memory of a request: how much of the distribution they may claim, and for which tokens.
//
// Interpolation with back-off. The longest known key claims a share, the next shorter one a share of the rest, and so
// on down; what nobody claims stays with the model:
//
//   share_n = left_n * kTrust[n] * C / (C + kDoubt[n] * D)        C: evidence, D: distinct continuations of the key
//   p'(x)   = (1 - sum of shares) p(x) + sum over n of share_n * count_n(x) / C
//
// A key seen often that always went on the same way is believed; one seen once, or that went on in many ways, less. So
// memory raises what it knows and never punishes what it does not: a token without an entry keeps its proportion to all
// others of the kind.
//
// All shares are scaled by alpha and by how much memory is needed now and how well it did lately:
//   need       from the model's own entropy over the last tokens: a model that is sure needs no help
//   standing   from log(p'(x) / p(x)) of the tokens taken so far, a sum that forgets: text of another domain, where the
//              n-grams match by chance, turns it down within a few tokens
//
// Several tables: A = 1 - product of (1 - weight * A_k) is claimed in all, in proportion to weight * A_k.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "engram/table.h"
#include "sampling/memory_source.h"

namespace chimere::engram {

struct WeightedTable {
  std::shared_ptr<const NgramSource> table;
  float weight = 1;  // 0 to 1
};

struct MixOptions {
  float alpha = 1;           // 0: no memory; 1: as much as the constants below, fitted on text, say; at most 2
  bool in_thoughts = false;  // also before the end of a thought
};

// Fitted on development text (docs/engram.md); a test set shows what they are worth.
struct MixConstants {
  std::array<float, kMaxOrder + 1> trust{};
  std::array<float, kMaxOrder + 1> doubt{};
  float entropy_half;     // nats at which a model is given half of the help
  float entropy_memory;   // how much of the running mean of the entropy is kept a token
  float standing_start;   // before anything was seen
  float standing_memory;  // how much of the sum is kept a token
  float standing_slope;
};
extern const MixConstants kFitted;

class TableMemory : public MemorySource {
 public:
  TableMemory(std::vector<WeightedTable> tables, MixOptions options, const MixConstants& constants = kFitted);
  std::unique_ptr<MemorySource> clone() const override { return std::make_unique<TableMemory>(*this); }
  std::span<const MemoryEntry> expect(std::span<const int32_t> tokens, bool in_thought) override;
  void accept(const Sampled& token) override;

 private:
  // Appends the claims of one table to entries_; returns the share it claims.
  float add_claims(const WeightedTable& table, const NgramContext& context);
  float strength() const;

  std::vector<WeightedTable> tables_;
  MixOptions options_;
  MixConstants constants_;
  float entropy_ = -1;  // running mean; below 0: nothing was seen yet
  float standing_ = 0;  // sum of log(p' / p)
  std::vector<MemoryEntry> entries_;
  std::vector<std::pair<size_t, float>> ends_;  // of each table's entries, and the factor of their weights
  Hit hit_;
};

}  // namespace chimere::engram
