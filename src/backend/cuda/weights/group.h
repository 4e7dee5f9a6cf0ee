// group.h  32 weights as kernels multiply them, and the pieces that formats unpack them from.
#pragma once

#include <cstdint>

#include "backend/cuda/weights/bits.h"
#include "backend/cuda/weights/weight.h"
#include "tensor/dtype.h"
#include "tensor/iq_grids.h"
#include "tensor/quant_blocks.h"

namespace chimere::cuda {

inline constexpr int kGroup = 32;

struct Group {
  uint32_t q[8];
  float scale[2];
  float min[2];
};

// Where the unpacking thread finds the codebooks. Of IQ3_S, the one whose speed matters, a block may keep kIq3Copies
// copies in shared memory, entry by entry, so that the lanes of a warp, which look up different entries, seldom meet
// in a bank: with 16 copies two lanes share a bank pair, with one copy 3.5 lookups of 32 collide.
inline constexpr int kIq3Copies = 16;
struct CodeBooks {
  const IqGrids* grids = nullptr;
  const uint8_t* iq3_s = nullptr;  // [512][kIq3Copies] entries of four bytes
  uint32_t iq3_s_lane = 0;         // byte offset of the lane's copy
};

// The bits of word j out of a plane of one bit per element, moved to bit `to` of each byte.
template <int kTo>
CHIMERE_BOTH uint32_t spread_bit(uint32_t plane, int j) {
  return (j <= kTo ? plane << (kTo - j) : plane >> (j - kTo)) & (0x01010101u << kTo);
}
// 0xFF in the bytes of word j whose bit is set.
CHIMERE_BOTH uint32_t sign_mask(uint32_t plane, int j) {
#ifdef __CUDA_ARCH__
  return simt::byte_signs(plane << (7 - j));
#else
  return ((plane >> j) & 0x01010101u) * 255u;
#endif
}
// Bytes negated where the mask is 0xFF. REQUIRES: no byte is 0.
CHIMERE_BOTH uint32_t negate(uint32_t word, uint32_t mask) { return (word ^ mask) + (mask & 0x01010101u); }

// Seven sign bits a group of 8 elements: the eighth makes their number even. The places of the eighths, bits 25, 27, 29
// and 31, hold four other bits of the format.
inline constexpr uint32_t kSpareBits = 0xAA000000u;
CHIMERE_BOTH uint32_t complete_signs(uint32_t plane) {
  const uint32_t seven = plane & ~kSpareBits;
  uint32_t parity = seven ^ (seven >> 16);
  parity ^= parity >> 8;  // bit j: of the four bytes' bits of word j
  parity ^= parity >> 1;  // bit 2l: of the group of words 2l and 2l + 1
  return seven | (parity & 0x55u) << 25;
}
CHIMERE_BOTH uint32_t spare_bits(uint32_t plane) {
  return ((plane >> 25) & 1u) | ((plane >> 26) & 2u) | ((plane >> 27) & 4u) | ((plane >> 28) & 8u);
}

// Sixteen signed bytes looked up by nibbles, natural order: word k of four holds elements 8k .. 8k + 7.
struct NibbleTable {
  uint32_t t[4];
};
// Four signed bytes from `first` on as a word.
template <int kValues>
CHIMERE_BOTH constexpr uint32_t bytes_of(const int8_t (&values)[kValues], int first) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= static_cast<uint32_t>(static_cast<uint8_t>(values[first + i])) << (8 * i);
  return word;
}
template <int kValues>
CHIMERE_BOTH constexpr NibbleTable nibble_table_at(const int8_t (&values)[kValues], int first) {
  return {{bytes_of(values, first), bytes_of(values, first + 4), bytes_of(values, first + 8),
           bytes_of(values, first + 12)}};
}
CHIMERE_BOTH constexpr NibbleTable nibble_table(const int8_t (&values)[16]) { return nibble_table_at(values, 0); }
CHIMERE_BOTH void look_up_nibbles(const NibbleTable& table, const Words4& codes, uint32_t (&q)[8]) {
  CHIMERE_UNROLL
  for (int k = 0; k < 4; ++k) {
    const uint32_t low = codes.w[k] & 0x77777777u;
    const uint32_t half = ((codes.w[k] >> 1) & 0x44444444u) | 0x32103210u;  // which half of the table
    q[2 * k] = pick_bytes(pick_bytes(table.t[0], table.t[1], low), pick_bytes(table.t[2], table.t[3], low), half);
    q[2 * k + 1] = pick_bytes(pick_bytes(table.t[0], table.t[1], low >> 16),
                              pick_bytes(table.t[2], table.t[3], low >> 16), half >> 16);
  }
}

// Nibbles in split halves: element i in the low nibble of byte i, element i + 16 in its high nibble.
template <uint32_t kMask>
CHIMERE_BOTH void split_nibbles(const Words4& a, uint32_t (&q)[8]) {
  constexpr bool kTop = kMask == 0xF0F0F0F0u;
  CHIMERE_UNROLL
  for (int j = 0; j < 4; ++j) {
    q[j] = (kTop ? a.w[j] << 4 : a.w[j]) & kMask;
    q[j + 4] = (kTop ? a.w[j] : a.w[j] >> 4) & kMask;
  }
}

// Crumbs: word j in bits 2(j % 4) of the bytes of word j / 4. Moved to the bits at kTo.
template <int kTo>
CHIMERE_BOTH uint32_t crumb_word(const Words2& b, int j) {
  const int from = 2 * (j % 4);
  const uint32_t x = b.w[j / 4];
  return (from <= kTo ? x << (kTo - from) : x >> (from - kTo)) & (0x03030303u << kTo);
}

CHIMERE_BOTH constexpr uint32_t round_up_16(uint32_t bytes) { return (bytes + 15u) / 16u * 16u; }
CHIMERE_BOTH float signed_byte(uint32_t bits, int which) {
  return static_cast<float>(static_cast<int8_t>(bits >> (8 * which)));
}

// Neighbouring groups 2p and 2p + 1 of a row: what decode kernels give a lane, because the small pieces of two groups
// come with one load: load_pair, from a row in device memory or a SharedRow.
template <class F>
struct Pair {
  typename F::Raw of[2];
};

}  // namespace chimere::cuda
