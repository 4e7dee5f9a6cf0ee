// ring.h  Slots in shared memory through which the weights of a warp stream: WarpRing and BulkSlots.
//
// Registers hold too little to keep the memory busy: a warp that loads what it multiplies next has a few kilobytes in
// flight, and is bound by latency. Slots keep as much in flight as they hold, and need no block-wide barrier. They are
// filled in one of two ways, which the two kinds stand for:
//
//   WarpRing    all lanes copy 16 bytes each (cp.async): every card, runs of any number. What has arrived is known by
//               the order of the copies, so a warp fills its own slots alone
//   BulkSlots   one lane asks for a whole run (bulk copies), a counter says when it is there: from sm_90 on. Any warp
//               may fill the slots of another
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/card_facts.h"
#include "backend/cuda/weights/bits.h"

namespace chimere::cuda {

// How a warp uses it: first it fills every slot (send() for each run of bytes, then close()). Then per unit: take()
// the next slot, read it, release() it, and send() and close() the unit that is n_slots further on. Past the last unit,
// slots are closed without a run.
struct WarpRing {
  uint8_t* slots;
  uint32_t slot_bytes;
  int n_slots;
  uint32_t reading = 0, filling = 0;  // offsets of slots

  // The ring of this warp; `rings` is where those of the block begin.
  __device__ __forceinline__ WarpRing(uint8_t* rings, uint32_t slot_bytes, int n_slots)
      : slots(rings + static_cast<uint32_t>(simt::warp_id() * n_slots) * slot_bytes),
        slot_bytes(slot_bytes),
        n_slots(n_slots) {}

  // REQUIRES: addresses and size are multiples of 16.
  __device__ __forceinline__ void send(uint32_t at, const uint8_t* from, uint32_t bytes) {
    uint8_t* to = slots + filling + at;
#pragma unroll 1
    for (uint32_t i = 16u * simt::lane_id(); i < bytes; i += 512u) simt::cp_async16_stream(to + i, from + i);
  }
  __device__ __forceinline__ void close() {
    simt::cp_async_commit();
    advance(filling);
  }
  __device__ __forceinline__ SharedRow take() {
    if (n_slots == 4) {
      simt::cp_async_wait<3>();
    } else if (n_slots == 3) {
      simt::cp_async_wait<2>();
    } else {
      simt::cp_async_wait<1>();
    }
    __syncwarp();
    return {slots + reading};
  }
  __device__ __forceinline__ void release() {
    __syncwarp();
    advance(reading);
  }

 private:
  __device__ __forceinline__ void advance(uint32_t& slot) const {
    slot += slot_bytes;
    if (slot == static_cast<uint32_t>(n_slots) * slot_bytes) slot = 0;
  }
};

// The slots of the warps of a block, and the counters of what has arrived in them.
struct BulkSlots {
  uint8_t* slots;
  uint64_t* arrived;  // [n_warps][kMostRingSlots]
  uint32_t slot_bytes;
  int n_slots;  // of a warp

  __device__ __forceinline__ uint8_t* slot(int warp, int s) const {
    return slots + static_cast<uint32_t>(warp * n_slots + s) * slot_bytes;
  }
  __device__ __forceinline__ uint64_t* counter(int warp, int s) const { return arrived + warp * kMostRingSlots + s; }
  // By every warp for itself.
  __device__ __forceinline__ void open() const {
    if (simt::lane_id() != 0) return;
    for (int s = 0; s < n_slots; ++s) simt::bulk_begin(counter(simt::warp_id(), s));
  }
};

// Where a warp is in its slots. Per unit: take() the slot, read it, refill() it if there is a unit n_slots further on,
// advance().
struct BulkTurn {
  int slot = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ SharedRow take(const BulkSlots& of) const {
    simt::bulk_wait(of.counter(simt::warp_id(), slot), parity);
    return {of.slot(simt::warp_id(), slot)};
  }
  // Lane 0 sends for what the slot holds next.
  template <class Send>
  __device__ __forceinline__ void refill(const BulkSlots& of, const Send& send) const {
    __syncwarp();
    if (simt::lane_id() != 0) return;
    simt::bulk_again(of.counter(simt::warp_id(), slot));
    send(slot);
  }
  __device__ __forceinline__ void advance(const BulkSlots& of) {
    __syncwarp();
    if (++slot < of.n_slots) return;
    slot = 0;
    parity ^= 1u;
  }
};

}  // namespace chimere::cuda
