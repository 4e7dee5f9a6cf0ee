// attention.h  Grouped-query attention over paged KV on the CPU: op::Attention.
//
// Phase 1, by (row, KV head): norm, RoPE, rotation; queries go to scratch as [kv_head][row][query of the group],
// already times the scale; keys and values go to their pages. Decode class, by (rows of a slice, KV head, split): a
// row's context is cut into splits that depend on its position alone. Each split yields a running maximum, a sum and an
// unnormalised output; they are joined in order. So a row's bits depend neither on the batch nor on the threads.
// Rows of one slice share the conversion of K and V. Prefill class, by (block of rows, KV head): page by page, K and V
// of a page are converted to float once for all query rows of the block, then two matrix products with the online
// softmax between them.
//
// Bytes     decode: the stored rows of the context, once for all query heads of a KV head
// Numerics  float32 throughout, angles in double; within 2e-5 of doubles over the same stored rows (test)
// Measured  one Zen 4 core with AVX-512, 16 heads on 2 KV heads of 256, f16: decode at 4096 tokens 0.81 ms
//           (83 GFLOP/s), q8_0 0.94, q4_0 1.01; prefill of 512 tokens 71 GFLOP/s, at depth 4096 91
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/context.h"
#include "backend/cpu/ops/aligned_floats.h"

namespace chimere::cpu {

class AttentionScratch {
 public:
  // Once, at load.
  void reserve(const Program& program, const StateLayout& layout, int max_rows, int n_threads);
  // Before each batch, by one thread: what all attention layers share of it. Allocates only when a batch needs more
  // splits than any before it.
  void begin(const Program& program, const Batch& batch);

  uint64_t size_bytes() const;

  // Consecutive decode-class rows of a slice whose context has the same splits, and one of these.
  struct DecodeItem {
    int32_t slice;
    int32_t row;  // first
    int32_t n_rows;
    int32_t pos;    // of the first row
    int32_t split;  // index
    int32_t begin;  // first token of the split
    int32_t end;    // one past the last token that any of the rows sees in it
  };
  struct DecodeRow {
    int32_t row;
    int32_t pos;
    int32_t split_tokens;
    int32_t n_splits;
    int64_t partial;  // of its first split
  };

  struct Worker {
    AlignedFloats memory;
  };

  const std::vector<DecodeItem>& decode_items() const { return decode_items_; }
  const std::vector<DecodeRow>& decode_rows() const { return decode_rows_; }
  // False when every decode row has a single split: then nothing has to be joined.
  bool needs_join() const { return needs_join_; }
  int64_t partial_of_row(int row) const { return partial_of_row_[row]; }
  float* partial(int64_t index) { return partials_.data() + index * partial_floats_; }
  float* queries() { return queries_.data(); }
  Worker& worker(int rank) { return workers_[rank]; }
  // cos [n_rot / 2] then sin, with the magnitude.
  const float* angles(RopeId rope, int row) const { return angles_[rope].data() + row * rope_floats_[rope]; }

 private:
  AlignedFloats queries_;  // [n_kv_heads][rows][group][head_dim_k]
  std::vector<AlignedFloats> angles_;
  std::vector<int64_t> rope_floats_;
  std::vector<DecodeItem> decode_items_;
  std::vector<DecodeRow> decode_rows_;
  std::vector<int64_t> partial_of_row_;
  AlignedFloats partials_;  // [partial][n_heads]{max, sum, output [head_dim_v]}
  int64_t partial_floats_ = 0;
  bool needs_join_ = false;
  bool trunk_sees_ahead_ = false, drafts_see_ahead_ = false;  // ops that are bidirectional, then all of them
  std::vector<Worker> workers_;
};

// Called by every worker of the team; ends with a barrier.
void attention(Team& team, const Context& context, const op::Attention& op, AttentionScratch& scratch);

// Tokens in a split of the context of a row at this position: at most about 64 splits, so that joining stays cheap.
int split_tokens(int pos);

}  // namespace chimere::cpu
