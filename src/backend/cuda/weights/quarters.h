// quarters.h  A quarter of a group of 32 weights: the eight that one of four lanes hands to a tensor core.
//
// In a product of bytes, lanes 4r .. 4r + 3 of a warp hold row r of the weights, two words of four bytes each. Which of
// a group's eight words these are does not matter as long as the activations lie in the same order, for the sum of 32
// products of bytes is exact. So lane q takes what is nearest: the two words that come out of one word of nibbles.
//     split formats    words q and q + 4    elements i and i + 16 share a byte of the row
//     natural formats  words 2q and 2q + 1  a word of codes holds eight neighbouring elements
// load_quarters() of a format gives them as q[0] and q[1] of groups 2p and 2p + 1, with the scales and minima that its
// unpack() makes, bit for bit; kNatural says which of the two it is. A format with two scales has to be a split one:
// q[0] then is of the first 16 weights.
#pragma once

#include "backend/cuda/weights/group.h"

namespace chimere::cuda {

// Words q and q + 4 of nibbles in split halves.
template <uint32_t kMask>
CHIMERE_BOTH void split_word(uint32_t codes, Group& out) {
  constexpr bool kTop = kMask == 0xF0F0F0F0u;
  out.q[0] = (kTop ? codes << 4 : codes) & kMask;
  out.q[1] = (kTop ? codes : codes >> 4) & kMask;
}

// The bits of words q and q + 4 of a plane of one bit per element, moved to bit kTo, which is 3 or 4, of each byte.
template <int kTo>
CHIMERE_BOTH void add_plane(uint32_t plane, uint32_t q, Group& out) {
  constexpr uint32_t kBits = 0x01010101u << kTo;
  out.q[0] |= (plane << (kTo - q)) & kBits;
  out.q[1] |= (plane >> (q + 4u - kTo)) & kBits;
}

template <class Table>
CHIMERE_BOTH void look_up_word(const Table& table, uint32_t codes, Group& out) {
  const uint32_t low = codes & 0x77777777u;
  const uint32_t half = ((codes >> 1) & 0x44444444u) | 0x32103210u;
  out.q[0] = pick_bytes(pick_bytes(table.t[0], table.t[1], low), pick_bytes(table.t[2], table.t[3], low), half);
  out.q[1] = pick_bytes(pick_bytes(table.t[0], table.t[1], low >> 16), pick_bytes(table.t[2], table.t[3], low >> 16),
                        half >> 16);
}

// The lane's words of the 16-byte pieces of groups 2p and 2p + 1.
CHIMERE_BOTH Words2 code_words(SharedRow row, uint32_t p, uint32_t q) {
  return {{load_u32(row, 32 * p + 4 * q), load_u32(row, 32 * p + 16 + 4 * q)}};
}

}  // namespace chimere::cuda
