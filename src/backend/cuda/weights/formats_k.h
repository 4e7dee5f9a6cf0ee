// formats_k.h  The K types: blocks of 256 with a scale of scales.
#pragma once

#include "backend/cuda/weights/quarters.h"

namespace chimere::cuda::format {

// d and dmin of a block and the bytes scale, min of a group, as Q4_K and Q5_K have them.
CHIMERE_BOTH void scale_min(uint32_t d_dmin, uint32_t bytes, Group& out) {
  out.scale[0] = times(half_to_float(d_dmin & 0xFFFFu), static_cast<float>(bytes & 255u));
  out.min[0] = -times(half_to_float(d_dmin >> 16), static_cast<float>(bytes >> 8));
}

struct Q4_K {  // nibbles; u32 d, dmin a block; u16 scale, min
  static constexpr DType kType = DType::Q4_K;
  static constexpr int kScales = 1, kMins = 1;
  struct Raw {
    Words4 a;
    uint32_t d, s;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(18 * G + G / 8 * 4); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    const uint32_t d = 16 * G;
    return {load_words4(row, 16 * g), load_u32(row, d + g / 8 * 4), load_u16(row, d + G / 2 + 2 * g)};
  }
  template <class Row>
  CHIMERE_BOTH static Pair<Q4_K> load_pair(Row row, uint32_t G, uint32_t p) {
    const uint32_t d = load_u32(row, 16 * G + p / 4 * 4), s = load_u32(row, 16 * G + G / 2 + 4 * p);
    return {{{load_half_sector(row, 32 * p), d, s & 0xFFFFu}, {load_half_sector(row, 32 * p + 16), d, s >> 16}}};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    split_nibbles<0x0F0F0F0Fu>(r.a, out.q);
    scale_min(r.d, r.s, out);
  }
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load_quarters(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const Words2 codes = code_words(row, p, q);
    const uint32_t d = load_u32(row, 16 * G + p / 4 * 4), s = load_u32(row, 16 * G + G / 2 + 4 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      split_word<0x0F0F0F0Fu>(codes.w[i], out[i]);
      scale_min(d, i == 0 ? s & 0xFFFFu : s >> 16, out[i]);
    }
  }
};

struct Q5_K {  // nibbles; u32 fifth bits; u32 d, dmin a block; u16 scale, min
  static constexpr DType kType = DType::Q5_K;
  static constexpr int kScales = 1, kMins = 1;
  struct Raw {
    Words4 a;
    uint32_t h, d, s;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(22 * G + G / 8 * 4); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    const uint32_t d = 20 * G;
    return {load_words4(row, 16 * g), load_u32(row, 16 * G + 4 * g), load_u32(row, d + g / 8 * 4),
            load_u16(row, d + G / 2 + 2 * g)};
  }
  template <class Row>
  CHIMERE_BOTH static Pair<Q5_K> load_pair(Row row, uint32_t G, uint32_t p) {
    const Words2 h = load_words2(row, 16 * G + 8 * p);
    const uint32_t d = load_u32(row, 20 * G + p / 4 * 4), s = load_u32(row, 20 * G + G / 2 + 4 * p);
    return {{{load_half_sector(row, 32 * p), h.w[0], d, s & 0xFFFFu},
             {load_half_sector(row, 32 * p + 16), h.w[1], d, s >> 16}}};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    split_nibbles<0x0F0F0F0Fu>(r.a, out.q);
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) out.q[j] |= spread_bit<4>(r.h, j);
    scale_min(r.d, r.s, out);
  }
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load_quarters(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const Words2 codes = code_words(row, p, q), h = load_words2(row, 16 * G + 8 * p);
    const uint32_t d = load_u32(row, 20 * G + p / 4 * 4), s = load_u32(row, 20 * G + G / 2 + 4 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      split_word<0x0F0F0F0Fu>(codes.w[i], out[i]);
      add_plane<4>(h.w[i], q, out[i]);
      scale_min(d, i == 0 ? s & 0xFFFFu : s >> 16, out[i]);
    }
  }
};

// d of a block times the signed bytes of two scales, and a power of two: first of all, where it rounds nothing and is
// done once for all groups of a block.
CHIMERE_BOTH void two_scales(uint32_t d, uint32_t bytes, float by, Group& out) {
  const float scale = times(half_to_float(d), by);
  out.scale[0] = times(scale, signed_byte(bytes, 0));
  out.scale[1] = times(scale, signed_byte(bytes, 1));
}

struct Q6_K {  // code - 32: four high bits as the top nibble, two low bits as crumbs; u16 two scales; u16 d a block
  static constexpr DType kType = DType::Q6_K;
  static constexpr int kScales = 2, kMins = 0;
  struct Raw {
    Words4 a;
    Words2 b;
    uint32_t s, d;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(26 * G + G / 8 * 2); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words4(row, 16 * g), load_words2(row, 16 * G + 8 * g), load_u16(row, 24 * G + 2 * g),
            load_u16(row, 26 * G + g / 8 * 2)};
  }
  template <class Row>
  CHIMERE_BOTH static Pair<Q6_K> load_pair(Row row, uint32_t G, uint32_t p) {
    const Words4 b = load_words4(row, 16 * G + 16 * p);
    const uint32_t s = load_u32(row, 24 * G + 4 * p), d = load_u16(row, 26 * G + p / 4 * 2);
    return {{{load_half_sector(row, 32 * p), {{b.w[0], b.w[1]}}, s & 0xFFFFu, d},
             {load_half_sector(row, 32 * p + 16), {{b.w[2], b.w[3]}}, s >> 16, d}}};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    split_nibbles<0xF0F0F0F0u>(r.a, out.q);
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) out.q[j] |= crumb_word<2>(r.b, j);
    two_scales(r.d, r.s, 0x1p-2f, out);
  }
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load_quarters(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const Words2 codes = code_words(row, p, q);
    const Words4 b = load_words4(row, 16 * G + 16 * p);
    const uint32_t s = load_u32(row, 24 * G + 4 * p), d = load_u16(row, 26 * G + p / 4 * 2);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      split_word<0xF0F0F0F0u>(codes.w[i], out[i]);
      CHIMERE_UNROLL
      for (int j = 0; j < 2; ++j) out[i].q[j] |= (b.w[2 * i + j] >> (2u * q) << 2) & 0x0C0C0C0Cu;
      two_scales(d, i == 0 ? s & 0xFFFFu : s >> 16, 0x1p-2f, out[i]);
    }
  }
};

struct Q3_K {  // code of -4..3: two high bits as top crumbs, the lowest bit in a plane; u16 two scales; u16 d a block
  static constexpr DType kType = DType::Q3_K;
  static constexpr int kScales = 2, kMins = 0;
  struct Raw {
    Words2 b;
    uint32_t h, s, d;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(14 * G + G / 8 * 2); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words2(row, 8 * g), load_u32(row, 8 * G + 4 * g), load_u16(row, 12 * G + 2 * g),
            load_u16(row, 14 * G + g / 8 * 2)};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) out.q[j] = crumb_word<6>(r.b, j) | spread_bit<5>(r.h, j);
    two_scales(r.d, r.s, 0x1p-5f, out);
  }
};

struct Q2_K {  // crumbs; u32 d, dmin a block; two bytes of scale and min nibbles
  static constexpr DType kType = DType::Q2_K;
  static constexpr int kScales = 2, kMins = 2;
  struct Raw {
    Words2 b;
    uint32_t d, s;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(10 * G + G / 8 * 4); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words2(row, 8 * g), load_u32(row, 8 * G + g / 8 * 4), load_u16(row, 8 * G + G / 2 + 2 * g)};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) out.q[j] = crumb_word<0>(r.b, j);
    const float d = half_to_float(r.d & 0xFFFFu), dmin = half_to_float(r.d >> 16);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      out.scale[i] = times(d, static_cast<float>((r.s >> (8 * i)) & 15u));
      out.min[i] = -times(dmin, static_cast<float>((r.s >> (8 * i + 4)) & 15u));
    }
  }
};

}  // namespace chimere::cuda::format
