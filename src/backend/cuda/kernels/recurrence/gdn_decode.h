// gdn_decode.h  Decode slices of Gated DeltaNet, for heads of 64 and 128 and four taps.
#pragma once

#include "backend/cuda/kernels/recurrence/gdn.h"

namespace chimere::cuda::gdn {

bool has_fast_decode(const GdnArgs& args);

// REQUIRES: has_fast_decode. `own` stands for the slices of a batch that has none. Slices with more tokens than
// max_decode_tokens are left alone.
Status launch_fast_decode(const Stream& stream, const GdnArgs& args, const DeviceSlice& own, int n_slices);

}  // namespace chimere::cuda::gdn
