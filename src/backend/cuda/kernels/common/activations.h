// activations.h  The rows that decode-class products read: where they come from, and their quantised form.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/weights/formats.h"
#include "backend/ops.h"

namespace chimere::cuda {

// n_i = norm ? RMSNorm(x_r) * norm : gate ? activation(gate_r, x_r) : x_r    with r = gather ? gather[i] : i.
// relu2 needs no gate.
struct InputRows {
  const float* x = nullptr;     // [.., width], 16-byte aligned, like norm and gate
  const float* norm = nullptr;  // [width]
  float eps = 0;
  int width = 0;
  const int32_t* gather = nullptr;
  const float* gate = nullptr;  // shaped like x; not together with norm, nor is relu2
  op::Activation activation = op::Activation::swiglu;
  // Set where x has yet to be multiplied by 1 / rms of each head, computed with eps (head_squares.h lists the head
  // widths). Not together with norm, gate or gather, and only for quantised weights.
  const float* head_squares = nullptr;  // [.., width / 32]
  int head_width = 0;

  CHIMERE_BOTH constexpr bool activates() const { return gate != nullptr || activation == op::Activation::relu2; }
};

// A quantised row is one record, so that a thread block fetches it with one copy. G = width / 32 groups, or none when
// the width is not a multiple of 32: then no quantised matrix can read it.
// In this order:
//     16 G bytes   elements 0..15 of each group, signed bytes
//     16 G bytes   elements 16..31 of each group. In both planes the even groups come before the odd ones, so that
//                  lanes which read neighbouring pairs of groups hit different banks
//     8 G bytes    { scale, scale * sum of the bytes } of each group
//     16 bytes     { 1 / rms of the row, or 1 }, by which products are multiplied: the bytes are those of x * norm, so
//                  that quantising does not wait for the sum of squares
//     32 bytes     the sums of squares of the block's warps, one float each
CHIMERE_BOTH constexpr uint32_t row_groups(int width) {
  return width % kGroup == 0 ? static_cast<uint32_t>(width / kGroup) : 0u;
}
CHIMERE_BOTH constexpr uint32_t place_in_plane(uint32_t G, uint32_t g) { return g % 2u * ((G + 1u) / 2u) + g / 2u; }
CHIMERE_BOTH constexpr uint32_t record_rms_offset(int width) { return (40u * row_groups(width) + 15u) / 16u * 16u; }
CHIMERE_BOTH constexpr uint32_t record_squares_offset(int width) { return record_rms_offset(width) + 16u; }
CHIMERE_BOTH constexpr uint32_t record_bytes(int width) { return record_squares_offset(width) + 32u; }

// Lanes that share a row of G groups: as many as leave the fewest idle, the most of those. A function of the width
// alone: it fixes the order of additions.
CHIMERE_BOTH constexpr int lanes_per_row(uint32_t G) {
  int best = 32;
  uint32_t least = (G + 31u) / 32u * 32u;
  for (int lanes = 16; lanes >= 1; lanes /= 2) {
    const auto n = static_cast<uint32_t>(lanes);
    const uint32_t taken = (G + n - 1u) / n * n;
    if (taken < least && G < 4u * n) {
      best = lanes;
      least = taken;
    }
  }
  return best;
}

CHIMERE_BOTH constexpr int log2_of(int power_of_two) {
  int n = 0;
  while (power_of_two > 1 << n) ++n;
  return n;
}

}  // namespace chimere::cuda
