// quarters.h  A quarter of a group of 32 weights: the eight that one of four lanes hands to a tensor core.
//
// In a product of bytes, lanes 4r .. 4r + 3 of a warp hold row r of the weights, two words of four bytes each. Which of
// a group's eight words these are does not matter as long as the activations lie in the same order, for the sum of 32
// products of bytes is exact. So lane q takes what is nearest: the two words that come out of one word of nibbles.
//     split formats    words q and q + 4    elements i and i + 16 share a byte of the row
//     natural formats  words 2q and 2q + 1  a word of codes holds eight neighbouring elements
// load() gives them as q[0] and q[1] of groups 2p and 2p + 1, with the scales and minima that the format's unpack()
// makes, bit for bit. A format with two scales has to be a split one: q[0] then is of the first 16 weights.
#pragma once

#include "backend/cuda/weights/formats.h"

namespace chimere::cuda {

template <class F>
struct Quarters;

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

template <>
struct Quarters<format::Q8_0> {
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const uint32_t d = load_u32(row, 32 * G + 4 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      out[i].q[0] = load_u32(row, 32 * p + 16 * i + 4 * q);
      out[i].q[1] = load_u32(row, 16 * G + 32 * p + 16 * i + 4 * q);
      out[i].scale[0] = half_to_float((d >> (16 * i)) & 0xFFFFu);
    }
  }
};

template <>
struct Quarters<format::Q4_0> {
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const Words2 codes = code_words(row, p, q);
    const uint32_t d = load_u32(row, 16 * G + 4 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      split_word<0xF0F0F0F0u>(codes.w[i], out[i]);
      out[i].scale[0] = half_to_float((d >> (16 * i)) & 0xFFFFu) * 0x1p-4f;
    }
  }
};

template <>
struct Quarters<format::Q4_1> {
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const Words2 codes = code_words(row, p, q), dm = load_words2(row, 16 * G + 8 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      split_word<0x0F0F0F0Fu>(codes.w[i], out[i]);
      out[i].scale[0] = half_to_float(dm.w[i] & 0xFFFFu);
      out[i].min[0] = half_to_float(dm.w[i] >> 16);
    }
  }
};

template <>
struct Quarters<format::Q5_0> {
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const Words2 codes = code_words(row, p, q), h = load_words2(row, 16 * G + 8 * p);
    const uint32_t d = load_u32(row, 20 * G + 4 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      split_word<0xF0F0F0F0u>(codes.w[i], out[i]);
      add_plane<3>(h.w[i], q, out[i]);
      out[i].scale[0] = half_to_float((d >> (16 * i)) & 0xFFFFu) * 0x1p-3f;
    }
  }
};

template <>
struct Quarters<format::Q4_K> {
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const Words2 codes = code_words(row, p, q);
    const uint32_t d = load_u32(row, 16 * G + p / 4 * 4), s = load_u32(row, 16 * G + G / 2 + 4 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      split_word<0x0F0F0F0Fu>(codes.w[i], out[i]);
      format::scale_min(d, i == 0 ? s & 0xFFFFu : s >> 16, out[i]);
    }
  }
};

template <>
struct Quarters<format::Q5_K> {
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const Words2 codes = code_words(row, p, q), h = load_words2(row, 16 * G + 8 * p);
    const uint32_t d = load_u32(row, 20 * G + p / 4 * 4), s = load_u32(row, 20 * G + G / 2 + 4 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      split_word<0x0F0F0F0Fu>(codes.w[i], out[i]);
      add_plane<4>(h.w[i], q, out[i]);
      format::scale_min(d, i == 0 ? s & 0xFFFFu : s >> 16, out[i]);
    }
  }
};

template <>
struct Quarters<format::Q6_K> {
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const Words2 codes = code_words(row, p, q);
    const Words4 b = load_words4(row, 16 * G + 16 * p);
    const uint32_t s = load_u32(row, 24 * G + 4 * p), d = load_u16(row, 26 * G + p / 4 * 2);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      split_word<0xF0F0F0F0u>(codes.w[i], out[i]);
      CHIMERE_UNROLL
      for (int j = 0; j < 2; ++j) out[i].q[j] |= (b.w[2 * i + j] >> (2u * q) << 2) & 0x0C0C0C0Cu;
      format::two_scales(d, i == 0 ? s & 0xFFFFu : s >> 16, 0x1p-2f, out[i]);
    }
  }
};

template <>
struct Quarters<format::IQ3_S_wide> {
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const Words2 codes = code_words(row, p, q);
    const uint32_t d = load_u16(row, 16 * G + p / 4 * 2), s = load_u8(row, 16 * G + G / 4 + p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      split_word<0xF0F0F0F0u>(codes.w[i], out[i]);
      out[i].q[0] |= format::IQ3_S_wide::kHalfStep;
      out[i].q[1] |= format::IQ3_S_wide::kHalfStep;
      out[i].scale[0] = format::IQ3_S_wide::scale(d, s >> (4 * i));
    }
  }
};

template <>
struct Quarters<format::IQ4_NL> {
  static constexpr bool kNatural = true;
  CHIMERE_BOTH static void load(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    constexpr NibbleTable kTable = nibble_table(kIq4Values);
    const Words2 codes = code_words(row, p, q);
    const uint32_t d = load_u32(row, 16 * G + 4 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      look_up_word(kTable, codes.w[i], out[i]);
      out[i].scale[0] = half_to_float((d >> (16 * i)) & 0xFFFFu);
    }
  }
};

template <>
struct Quarters<format::IQ4_XS> {
  static constexpr bool kNatural = true;
  CHIMERE_BOTH static void load(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    constexpr NibbleTable kTable = nibble_table(kIq4Values);
    const Words2 codes = code_words(row, p, q);
    const uint32_t d = load_u16(row, 16 * G + p / 4 * 2), s = load_u16(row, 16 * G + G / 4 + 2 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      look_up_word(kTable, codes.w[i], out[i]);
      out[i].scale[0] = times(half_to_float(d), signed_byte(s, i));
    }
  }
};

template <>
struct Quarters<format::MXFP4> {
  static constexpr bool kNatural = true;
  CHIMERE_BOTH static void load(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    constexpr NibbleTable kTable = nibble_table(kFp4Values);
    const Words2 codes = code_words(row, p, q);
    const uint32_t both = load_u16(row, 16 * G + 2 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      look_up_word(kTable, codes.w[i], out[i]);
      const uint32_t e = (both >> (8 * i)) & 255u;
      out[i].scale[0] = bits_to_float(e < 2 ? 0x200000u << e : (e - 1u) << 23);
    }
  }
};

}  // namespace chimere::cuda
