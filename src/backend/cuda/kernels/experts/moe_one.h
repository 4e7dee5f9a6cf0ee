// moe_one.h  The expert kernels for one row of activations: what the up- and the down-projection share.
//
// One block per SM (staged.h). Each warp has slots in shared memory that bulk copies fill. The router leaves the row
// quantised, and keys by which one warp finds the experts (moe_choice.h). In the up-projection every warp issues the
// copies of its own rows once it knows its expert; the down-projection chooses before its input is there, and one warp
// issues all copies. The up-projection leaves the hidden elements quantised: a block computes whole groups of 32 of
// them, so that the down-projection has nothing to do but products.
#pragma once

#include "backend/cuda/simt/simt.h"

#include <type_traits>

#include "backend/cuda/kernels/experts/moe_ring.h"

namespace chimere::cuda {

// The slots of the warps of a block, and the counters of what has arrived in them.
struct OneSlots {
  uint8_t* slots;
  uint64_t* arrived;  // [kOneWarps][kOneSlots]
  uint32_t slot_bytes;
  int n_slots;

  __device__ __forceinline__ uint8_t* slot(int warp, int s) const {
    return slots + static_cast<uint32_t>(warp * n_slots + s) * slot_bytes;
  }
  __device__ __forceinline__ uint64_t* counter(int warp, int s) const { return arrived + warp * kOneSlots + s; }
  // By every warp for itself.
  __device__ __forceinline__ void open() const {
    if (simt::lane_id() != 0) return;
    for (int s = 0; s < n_slots; ++s) simt::bulk_begin(counter(simt::warp_id(), s));
  }
};

// Where a warp is in its slots.
struct OneTurn {
  int slot = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ SharedRow take(const OneSlots& of) const {
    simt::bulk_wait(of.counter(simt::warp_id(), slot), parity);
    return {of.slot(simt::warp_id(), slot)};
  }
  // Lane 0 sends for what the slot holds next.
  template <class Send>
  __device__ __forceinline__ void refill(const OneSlots& of, const Send& send) const {
    __syncwarp();
    if (simt::lane_id() != 0) return;
    simt::bulk_again(of.counter(simt::warp_id(), slot));
    send(slot);
  }
  __device__ __forceinline__ void advance(const OneSlots& of) {
    __syncwarp();
    if (++slot < of.n_slots) return;
    slot = 0;
    parity ^= 1u;
  }
};

}  // namespace chimere::cuda
