// gdn_mix.h  Gated DeltaNet on the CPU: op::GdnMix.
//
// Work is shared out by key head: one task owns the conv channels of its query, key and value heads, so conv, delta
// rule and gated norm run in one phase with nothing computed twice and no barrier but the last. When that would leave
// workers idle, by value head, and the conv windows advance in a second phase. The bits are the same.
//
// Decode class: token by token, two passes over each head's state (vec.h, delta_step).
// Prefill class: chunks that end at multiples of kChunkTokens. With G the running sum of g inside the chunk, S the
// state that enters it, K and Q the normalised rows:
//   R = diag(beta) (V - diag(exp G) K S)
//   X solves (I + strictly_lower(diag(beta) K K^T .* D)) X = R,   D[i][j] = exp(G_i - G_j)
//   O = diag(exp G) Q S + (lower(Q K^T) .* D) X
//   S <- exp(G_last) S + K^T diag(exp(G_last - G)) X
// X is what the usual U - W S comes to, by one triangular solve after S is known instead of an inverse and two products
// before: heads give parallelism enough, and a third of the operations is saved.
//
// Bytes     decode: 2 x 4 x n_value_heads x d_head^2 a token (state read and written); 1 MiB for 8 heads of 128
// Numerics  float32, the chunk's running sum of g in double; state within 1e-5 of a double recurrence (test)
// Measured  one Zen 4 core with AVX-512 (108 GFLOP/s in matmul), heads of 128: decode 63 GB/s of state from L3 and
//           28 GB/s from memory; prefill 78 GFLOP/s counting triangles as half, 13 us a token for 8 value heads
//           (AVX2 14, portable 44)
// Rejected  U, W and T as separate products (a third more operations); a phase of its own for the conv (a barrier and
//           a round trip through memory more)
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/context.h"
#include "backend/cpu/ops/aligned_floats.h"

namespace chimere::cpu {

// Working memory of all GdnMix ops of a program, one set of buffers per worker, and the conv weights, head by head
// [channels / d_head][taps][d_head]: rows of a power-of-two stride would fight for the same cache sets.
class GdnScratch {
 public:
  // Once, at load.
  void reserve(const Program& program, const StateLayout& layout, int n_threads);

  uint64_t size_bytes() const;
  const float* conv(int recurrent_layer) const { return conv_[recurrent_layer].data(); }
  int64_t replay_offset(int recurrent_layer) const { return replay_offset_[recurrent_layer]; }
  int64_t replay_stride() const { return replay_stride_; }

  struct Worker {
    AlignedFloats memory;
    std::vector<const float*> taps;
  };
  Worker& worker(int rank) { return workers_[rank]; }

 private:
  std::vector<std::vector<float>> conv_;
  std::vector<int64_t> replay_offset_;
  int64_t replay_stride_ = 0;
  std::vector<Worker> workers_;
};

// Called by every worker of the team; ends with a barrier.
void gdn_mix(Team& team, const Context& context, const op::GdnMix& op, GdnScratch& scratch);

// Advances one layer's conv window and state matrices over recorded inputs, bit for bit as decode-class slices did.
// `recurrent` is the sequence's blob, `recorded` the first token's record. Called by every worker; ends with a barrier.
void gdn_replay(Team& team, const Program& program, const StateLayout& layout, const op::GdnMix& op, float* recurrent,
                const float* recorded, int n_tokens, GdnScratch& scratch);

}  // namespace chimere::cpu
