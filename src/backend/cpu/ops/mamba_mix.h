// mamba_mix.h  Mamba-2 and Mamba-1 on the CPU: op::Mamba2Mix, op::CausalConv, op::SelectiveScan.
//
// Mamba-2 in three phases: conv, SiLU and time steps by (row, block of channels) into scratch; the recurrence by
// (slice, heads of one group); gate and norm by (row, group), whose statistics span the heads. B and C belong to whole
// groups, often to all heads, so computing them once for all heads is worth the barrier.
//
// Decode class: token by token, one pass over each head's state (vec.h, decay_step).
// Prefill class: chunks that end at multiples of kChunkTokens. With L the running sum of dt a inside the chunk, S the
// state that enters it:
//   Y = (lower(C B^T) .* M) diag(dt) X + diag(exp L) C S + D X,   M[i][j] = exp(L_i - L_j)
//   S <- exp(L_last) S + B^T diag(exp(L_last - L) dt) X
// C B^T is computed once for the heads of a task.
//
// Mamba-1 has a decay for every element of its state, so there is no chunked form of it: token by token in both
// classes, divided by blocks of channels.
//
// Bytes     decode: 2 x 4 x n_heads x d_state x d_head a token (state read and written)
// Numerics  float32, the chunk's running sum in double
#pragma once

#include <cstddef>

#include "backend/cpu/ops/recurrent.h"

namespace chimere::cpu {

// Called by every worker of the team; each ends with a barrier.
void mamba2_mix(Team& team, const Context& context, const op::Mamba2Mix& op, RecurrentScratch& scratch);
void causal_conv(Team& team, const Context& context, const op::CausalConv& op, RecurrentScratch& scratch);
void selective_scan(Team& team, const Context& context, const op::SelectiveScan& op, RecurrentScratch& scratch);

// Advance one layer over recorded inputs, bit for bit as decode-class slices did. `recurrent` is the sequence's blob,
// `recorded` the first token's record. Called by every worker; each ends with a barrier.
void mamba2_replay(Team& team, const Program& program, const StateLayout& layout, const op::Mamba2Mix& op,
                   float* recurrent, const float* recorded, int n_tokens, RecurrentScratch& scratch);
void conv_replay(Team& team, const StateLayout& layout, const op::CausalConv& op, float* recurrent,
                 const float* recorded, int n_tokens, RecurrentScratch& scratch);
void scan_replay(Team& team, const Program& program, const StateLayout& layout, const op::SelectiveScan& op,
                 float* recurrent, const float* recorded, int n_tokens, RecurrentScratch& scratch);

// Working memory of one worker.
size_t mamba2_worker_floats(const op::Mamba2Mix& op);
size_t scan_worker_floats(const op::SelectiveScan& op);

}  // namespace chimere::cpu
