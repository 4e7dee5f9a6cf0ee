// card_facts.h  What the choice of a decode kernel depends on beside the shapes. Plain numbers: it can be tested without
// a card.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace chimere::cuda {

struct CardFacts {
  bool has_bulk_copy = false;
  size_t shared_limit = 0;  // bytes of shared memory that a thread block may have
  int n_sms = 0;
};

inline constexpr int kDotThreads = 256;  // per block, always: the norm's order of additions depends on it
inline constexpr int kDotWarps = kDotThreads / 32;
inline constexpr int kOneWarps = 16, kOneThreads = 32 * kOneWarps;  // of the kernels for one row (staged.h)

// Up to so many rows of activations the kernels for one row, or their like for a few, keep weights in shared memory.
inline constexpr int kFewDecodeRows = 8;

// Slots of a warp's ring (ring.h).
inline constexpr int kLeastRingSlots = 2, kMostRingSlots = 4;

// How many blocks fit on an SM and how many slots each warp gets, beside `fixed` bytes of shared memory. No blocks when
// not even two slots fit.
struct RingRoom {
  int blocks = 0, slots = 0;

  RingRoom(size_t shared_limit, size_t fixed, uint32_t slot_bytes, int n_warps) {
    constexpr size_t kOfTheSystem = 1024, kStatic = 6 * 1024;
    const auto bytes = [&](int n) { return fixed + kStatic + static_cast<size_t>(n * n_warps) * slot_bytes; };
    for (const int n_blocks : {2, 1}) {
      const size_t most = (shared_limit + kOfTheSystem) / static_cast<size_t>(n_blocks) - kOfTheSystem;
      for (int n = kMostRingSlots; n >= kLeastRingSlots; --n) {
        if (bytes(n) > most) continue;
        blocks = n_blocks;
        slots = n;
        return;
      }
    }
  }
};

}  // namespace chimere::cuda
