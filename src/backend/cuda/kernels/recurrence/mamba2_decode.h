// mamba2_decode.h  Decode slices of Mamba-2, for states of 128 and 256, heads of a multiple of 32 and four taps.
#pragma once

#include "backend/cuda/kernels/recurrence/mamba2.h"

namespace chimere::cuda::mamba2 {

inline constexpr int kMaxDecodeTokens = 16;

// Sizes that the kernel of decode slices takes, and that of prompts.
bool has_fast_path(const Mamba2Args& args);

// REQUIRES: has_fast_path, max_tokens <= kMaxDecodeTokens. `own` stands for the slices of a batch that has none. With
// a norm, out has its weights but not 1 / rms of a group: the sums of squares are in scratch (head_squares.h).
Status launch_fast_decode(const Stream& stream, const Mamba2Args& args, const DeviceSlice& own, int n_slices);

}  // namespace chimere::cuda::mamba2
