// ring.h  A ring buffer of weights per warp: slots in shared memory that one warp alone fills and reads.
//
// Registers hold too little to keep the memory busy: a warp that loads what it multiplies next has a few kilobytes in
// flight, and is bound by latency. A ring keeps as much in flight as its slots hold, and needs no block-wide barrier.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/card_facts.h"
#include "backend/cuda/weights/bits.h"

namespace chimere::cuda {

// How a warp uses it: first it fills every slot (send() for each run of bytes, then close()). Then per unit: take()
// the next slot, read it, release() it, and send() and close() the unit that is n_slots further on. Past the last unit,
// slots are closed without a run.
struct WarpRing {
  static constexpr int kLeastSlots = kLeastRingSlots, kMostSlots = kMostRingSlots;

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

// The units of a warp among those of its block, [first, end): every kWarps-th. A unit is a tile of a chunk, `tiles` of
// them to a chunk.
template <int kWarps>
struct WarpUnits {
  int left = 0, chunk = 0, tile = 0;

  __device__ __forceinline__ void begin(int first, int end, int tiles) {
    first += simt::warp_id();
    left = max(0, (end - first + kWarps - 1) / kWarps);
    chunk = first / tiles;
    tile = first - chunk * tiles;
  }
  __device__ __forceinline__ void advance(int tiles) {
    --left;
    tile += kWarps;
    while (tile >= tiles) {
      tile -= tiles;
      ++chunk;
    }
  }
};

}  // namespace chimere::cuda
