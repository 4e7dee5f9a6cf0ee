// mamba2_device.h  What the kernels of Mamba-2 share: which channels a group reads, and where slices and records are.
#pragma once

#include "backend/cuda/kernels/recurrence/mamba2.h"
#include "backend/cuda/simt/simt.h"

namespace chimere::cuda::mamba2 {

__device__ __forceinline__ DeviceSlice slice_of(const Mamba2Args& p, const DeviceSlice& own, int i) {
  return p.batch.slices != nullptr ? p.batch.slices[i] : own;
}

// Channel of element i of [B | C] of a group.
__device__ __forceinline__ int bc_channel(const Mamba2Args& p, int group, int i) {
  const int first =
      i < p.d_state ? p.d_inner() + group * p.d_state : p.d_inner() + (p.n_groups + group - 1) * p.d_state;
  return first + i;
}

__device__ __forceinline__ float* replay_record(const Mamba2Args& p, const DeviceSlice& slice, int t) {
  return slice.replay + t * p.replay_stride + p.replay_offset;
}

}  // namespace chimere::cuda::mamba2
