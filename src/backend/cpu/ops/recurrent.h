// recurrent.h  What the recurrent ops of the CPU share: conv windows, replay records, and the memory of the workers.
//
// Conv weights are kept in blocks of channels, [channels / block][taps][block]: rows of a power-of-two stride would
// compete for the same cache sets. A bias is stored as one more tap, whose input is 1.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/context.h"
#include "backend/cpu/ops/aligned_floats.h"
#include "backend/cpu/vec.h"

namespace chimere::cpu {

struct ConvWeights {
  int taps = 0;   // inputs that an output sees
  int block = 0;  // channels
  int64_t channels = 0;
  bool has_bias = false;
  std::vector<float> values;

  int rows() const { return taps + (has_bias ? 1 : 0); }
  int64_t n_blocks() const { return (channels + block - 1) / block; }
};

// Inputs of a conv over one sequence: rows of the batch or of a recording, and what came before them.
struct ConvRows {
  const float* in;  // [n_tokens][channels], rows `in_row` apart
  int64_t in_row;
  float* window;  // [taps - 1][channels], oldest first
  float* ahead;   // where tokens behind the first leave theirs; the same, or that of SequenceView::recurrent_ahead
  int n_tokens;
};

// Columns from `column` on of a buffer, for one slice.
ConvRows conv_rows(const Context& context, BufferId in, int64_t column, int recurrent_layer, const Slice& slice);

class RecurrentScratch {
 public:
  // Once, at load. `max_rows` bounds the tokens of a batch and of each step of a replay.
  void reserve(const Program& program, const StateLayout& layout, int max_rows, int n_threads);

  uint64_t size_bytes() const;
  const ConvWeights& conv(int recurrent_layer) const { return conv_[recurrent_layer]; }
  int64_t replay_offset(int recurrent_layer) const { return replay_offset_[recurrent_layer]; }
  int64_t replay_stride() const { return replay_stride_; }
  int max_rows() const { return max_rows_; }

  // Mamba-2: conv outputs and time steps of the batch, rows conv_row and n_heads apart.
  float* convolved() { return convolved_.data(); }
  static int64_t convolved_row(const op::Mamba2Mix& op);
  float* steps() { return steps_.data(); }
  // Mamba-1: decay rates [d_state][channels] of a layer.
  const float* rates(int recurrent_layer) const { return rates_[recurrent_layer].data(); }

  // Conv and SiLU of the channels of one block for token t.
  void conv_block(const VecKernels& v, const ConvWeights& weights, const ConvRows& rows, int t, int64_t block, int rank,
                  float* out);

  struct Worker {
    AlignedFloats memory;
    std::vector<const float*> taps;
  };
  Worker& worker(int rank) { return workers_[rank]; }

 private:
  void add_conv(const Program& program, const StateLayout& layout, int recurrent_layer, int64_t channels, int block,
                VectorId conv, VectorId bias);

  std::vector<ConvWeights> conv_;
  std::vector<int64_t> replay_offset_;
  int64_t replay_stride_ = 0;
  int max_rows_ = 0;
  std::vector<float> ones_;
  AlignedFloats convolved_, steps_;
  std::vector<AlignedFloats> rates_;
  std::vector<Worker> workers_;
};

// The last taps - 1 inputs of channels [channel, channel + n) become the window, or the one ahead; then those up to the
// first token become the window itself.
void advance_window(const ConvWeights& weights, const ConvRows& rows, int64_t channel, int64_t n);

}  // namespace chimere::cpu
