// gdn_mix.h  Gated DeltaNet on the CPU: op::GdnMix.
//
// Work is divided by key head: one task owns the conv channels of its query, key and value heads, so conv, delta
// rule and gated norm run in one phase with nothing computed twice and no barrier but the last. When that would leave
// workers idle, by value head, and the conv windows advance in a second phase. The bits are the same.
//
// Decode class: token by token, n + 1 passes over each head's state for n tokens (vec.h, delta_steps).
// Prefill class: chunks that end at multiples of kChunkTokens. With G the running sum of g inside the chunk, S the
// state that enters it, K and Q the normalised rows:
//   R = diag(beta) (V - diag(exp G) K S)
//   X solves (I + strictly_lower(diag(beta) K K^T .* D)) X = R,   D[i][j] = exp(G_i - G_j)
//   O = diag(exp G) Q S + (lower(Q K^T) .* D) X
//   S <- exp(G_last) S + K^T diag(exp(G_last - G)) X
// X equals the usual U - W S, by one triangular solve after S is known instead of an inverse and two products before
// it: the heads alone give enough parallelism, and a third of the operations is saved.
//
// Bytes     decode: 2 x 4 x n_value_heads x d_head^2 a token (state read and written); 1 MiB for 8 heads of 128
// Numerics  float32, the chunk's running sum of g in double; state within 1e-5 of a double recurrence (test)
// Measured  one Zen 4 core with AVX-512 (108 GFLOP/s in matmul), heads of 128: decode 63 GB/s of state from L3 and
//           28 GB/s from memory; prefill 78 GFLOP/s counting triangles as half, 13 us a token for 8 value heads
//           (AVX2 14, portable 44)
// Rejected  U, W and T as separate products (a third more operations); a phase of its own for the conv (a barrier and
//           a round trip through memory more)
#pragma once

#include <cstddef>

#include "backend/cpu/ops/recurrent.h"

namespace chimere::cpu {

// Called by every worker of the team; ends with a barrier.
void gdn_mix(Team& team, const Context& context, const op::GdnMix& op, RecurrentScratch& scratch);

// Advances one layer's conv window and state matrices over recorded inputs, bit for bit as decode-class slices did.
// `recurrent` is the sequence's blob, `recorded` the first token's record. Called by every worker; ends with a barrier.
void gdn_replay(Team& team, const Program& program, const StateLayout& layout, const op::GdnMix& op, float* recurrent,
                const float* recorded, int n_tokens, RecurrentScratch& scratch);

// Working memory of one worker.
size_t gdn_worker_floats(const op::GdnMix& op);

}  // namespace chimere::cpu
