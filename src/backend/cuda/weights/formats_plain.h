// formats_plain.h  Codes with a scale for each group: legacy types, small codes, and tables of sixteen values.
#pragma once

#include "backend/cuda/weights/quarters.h"

namespace chimere::cuda::format {

struct Q8_0 {  // planes: 16 first, 16 last codes, u16 d
  static constexpr DType kType = DType::Q8_0;
  static constexpr int kScales = 1, kMins = 0;
  struct Raw {
    Words4 a, b;
    uint32_t d;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(34 * G); }
  template <class Row>
  CHIMERE_BOTH static Raw load(Row row, uint32_t G, uint32_t g) {
    return {load_words4(row, 16 * g), load_words4(row, 16 * G + 16 * g), load_u16(row, 32 * G + 2 * g)};
  }
  template <class Row>
  CHIMERE_BOTH static Pair<Q8_0> load_pair(Row row, uint32_t G, uint32_t p) {
    const uint32_t d = load_u32(row, 32 * G + 4 * p);
    return {{{load_half_sector(row, 32 * p), load_half_sector(row, 16 * G + 32 * p), d & 0xFFFFu},
             {load_half_sector(row, 32 * p + 16), load_half_sector(row, 16 * G + 32 * p + 16), d >> 16}}};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    CHIMERE_UNROLL
    for (int j = 0; j < 4; ++j) {
      out.q[j] = r.a.w[j];
      out.q[j + 4] = r.b.w[j];
    }
    out.scale[0] = half_to_float(r.d);
  }
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load_quarters(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const uint32_t d = load_u32(row, 32 * G + 4 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      out[i].q[0] = load_u32(row, 32 * p + 16 * i + 4 * q);
      out[i].q[1] = load_u32(row, 16 * G + 32 * p + 16 * i + 4 * q);
      out[i].scale[0] = half_to_float((d >> (16 * i)) & 0xFFFFu);
    }
  }
};

struct Q4_0 {  // code - 8 as the top nibble; u16 d
  static constexpr DType kType = DType::Q4_0;
  static constexpr int kScales = 1, kMins = 0;
  struct Raw {
    Words4 a;
    uint32_t d;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(18 * G); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words4(row, 16 * g), load_u16(row, 16 * G + 2 * g)};
  }
  template <class Row>
  CHIMERE_BOTH static Pair<Q4_0> load_pair(Row row, uint32_t G, uint32_t p) {
    const uint32_t d = load_u32(row, 16 * G + 4 * p);
    return {{{load_half_sector(row, 32 * p), d & 0xFFFFu}, {load_half_sector(row, 32 * p + 16), d >> 16}}};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    split_nibbles<0xF0F0F0F0u>(r.a, out.q);
    out.scale[0] = half_to_float(r.d) * 0x1p-4f;
  }
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load_quarters(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const Words2 codes = code_words(row, p, q);
    const uint32_t d = load_u32(row, 16 * G + 4 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      split_word<0xF0F0F0F0u>(codes.w[i], out[i]);
      out[i].scale[0] = half_to_float((d >> (16 * i)) & 0xFFFFu) * 0x1p-4f;
    }
  }
};

struct Q4_1 {  // nibbles; u32 d, m
  static constexpr DType kType = DType::Q4_1;
  static constexpr int kScales = 1, kMins = 1;
  struct Raw {
    Words4 a;
    uint32_t dm;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(20 * G); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words4(row, 16 * g), load_u32(row, 16 * G + 4 * g)};
  }
  template <class Row>
  CHIMERE_BOTH static Pair<Q4_1> load_pair(Row row, uint32_t G, uint32_t p) {
    return {{{load_half_sector(row, 32 * p), load_u32(row, 16 * G + 8 * p)},
             {load_half_sector(row, 32 * p + 16), load_u32(row, 16 * G + 8 * p + 4)}}};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    split_nibbles<0x0F0F0F0Fu>(r.a, out.q);
    out.scale[0] = half_to_float(r.dm & 0xFFFFu);
    out.min[0] = half_to_float(r.dm >> 16);
  }
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load_quarters(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const Words2 codes = code_words(row, p, q), dm = load_words2(row, 16 * G + 8 * p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      split_word<0x0F0F0F0Fu>(codes.w[i], out[i]);
      out[i].scale[0] = half_to_float(dm.w[i] & 0xFFFFu);
      out[i].min[0] = half_to_float(dm.w[i] >> 16);
    }
  }
};

struct Q5_0 {  // code - 16: four high bits as the top nibble, the lowest bit in a plane; u32 bits, u16 d
  static constexpr DType kType = DType::Q5_0;
  static constexpr int kScales = 1, kMins = 0;
  struct Raw {
    Words4 a;
    uint32_t h, d;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(22 * G); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words4(row, 16 * g), load_u32(row, 16 * G + 4 * g), load_u16(row, 20 * G + 2 * g)};
  }
  template <class Row>
  CHIMERE_BOTH static Pair<Q5_0> load_pair(Row row, uint32_t G, uint32_t p) {
    const uint32_t d = load_u32(row, 20 * G + 4 * p);
    return {{{load_half_sector(row, 32 * p), load_u32(row, 16 * G + 8 * p), d & 0xFFFFu},
             {load_half_sector(row, 32 * p + 16), load_u32(row, 16 * G + 8 * p + 4), d >> 16}}};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    split_nibbles<0xF0F0F0F0u>(r.a, out.q);
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) out.q[j] |= spread_bit<3>(r.h, j);
    out.scale[0] = half_to_float(r.d) * 0x1p-3f;
  }
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load_quarters(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
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

struct Q5_1 {  // nibbles, a plane of fifth bits; u32 bits, u32 d, m
  static constexpr DType kType = DType::Q5_1;
  static constexpr int kScales = 1, kMins = 1;
  struct Raw {
    Words4 a;
    uint32_t h, dm;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(24 * G); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words4(row, 16 * g), load_u32(row, 16 * G + 4 * g), load_u32(row, 20 * G + 4 * g)};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    split_nibbles<0x0F0F0F0Fu>(r.a, out.q);
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) out.q[j] |= spread_bit<4>(r.h, j);
    out.scale[0] = half_to_float(r.dm & 0xFFFFu);
    out.min[0] = half_to_float(r.dm >> 16);
  }
};

// Ternary codes c = 0..3 stored as 1 - c, which two bits hold: weight = -d (1 - c).
template <int kGroupsPerScale, DType kFileType>
struct Crumbs {
  static constexpr DType kType = kFileType;
  static constexpr int kScales = 1, kMins = 0;
  struct Raw {
    Words2 b;
    uint32_t d;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(8 * G + G / kGroupsPerScale * 2); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words2(row, 8 * g), load_u16(row, 8 * G + g / kGroupsPerScale * 2)};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) out.q[j] = crumb_word<6>(r.b, j);
    out.scale[0] = half_to_float(r.d) * -0x1p-6f;
  }
};
using TQ2_0 = Crumbs<8, DType::TQ2_0>;  // also of TQ1_0, whose five digits a byte would cost a multiplication each
using Q2_0 = Crumbs<2, DType::Q2_0>;

struct Q1_0 {  // u32 set where negative; u16 d for four groups
  static constexpr DType kType = DType::Q1_0;
  static constexpr int kScales = 1, kMins = 0;
  struct Raw {
    uint32_t h, d;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(4 * G + G / 4 * 2); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_u32(row, 4 * g), load_u16(row, 4 * G + g / 4 * 2)};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) out.q[j] = sign_mask(r.h, j) | 0x01010101u;
    out.scale[0] = half_to_float(r.d);
  }
};

struct IQ4_NL {  // nibbles in natural order; u16 d
  static constexpr DType kType = DType::IQ4_NL;
  static constexpr int kScales = 1, kMins = 0;
  struct Raw {
    Words4 a;
    uint32_t d;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(18 * G); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words4(row, 16 * g), load_u16(row, 16 * G + 2 * g)};
  }
  template <class Row>
  CHIMERE_BOTH static Pair<IQ4_NL> load_pair(Row row, uint32_t G, uint32_t p) {
    const uint32_t d = load_u32(row, 16 * G + 4 * p);
    return {{{load_half_sector(row, 32 * p), d & 0xFFFFu}, {load_half_sector(row, 32 * p + 16), d >> 16}}};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    constexpr NibbleTable kTable = nibble_table(kIq4Values);
    look_up_nibbles(kTable, r.a, out.q);
    out.scale[0] = half_to_float(r.d);
  }
  static constexpr bool kNatural = true;
  CHIMERE_BOTH static void load_quarters(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
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

struct IQ4_XS {  // nibbles in natural order; u16 d a block; i8 scale
  static constexpr DType kType = DType::IQ4_XS;
  static constexpr int kScales = 1, kMins = 0;
  struct Raw {
    Words4 a;
    uint32_t d, s;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(17 * G + G / 8 * 2); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    const uint32_t d = 16 * G;
    return {load_words4(row, 16 * g), load_u16(row, d + g / 8 * 2), load_u8(row, d + G / 4 + g)};
  }
  template <class Row>
  CHIMERE_BOTH static Pair<IQ4_XS> load_pair(Row row, uint32_t G, uint32_t p) {
    const uint32_t d = load_u16(row, 16 * G + p / 4 * 2), s = load_u16(row, 16 * G + G / 4 + 2 * p);
    return {{{load_half_sector(row, 32 * p), d, s}, {load_half_sector(row, 32 * p + 16), d, s >> 8}}};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    constexpr NibbleTable kTable = nibble_table(kIq4Values);
    look_up_nibbles(kTable, r.a, out.q);
    out.scale[0] = times(half_to_float(r.d), signed_byte(r.s, 0));
  }
  static constexpr bool kNatural = true;
  CHIMERE_BOTH static void load_quarters(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
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

struct MXFP4 {  // nibbles in natural order; u8 exponent
  static constexpr DType kType = DType::MXFP4;
  static constexpr int kScales = 1, kMins = 0;
  struct Raw {
    Words4 a;
    uint32_t e;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(17 * G); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words4(row, 16 * g), load_u8(row, 16 * G + g)};
  }
  template <class Row>
  CHIMERE_BOTH static Pair<MXFP4> load_pair(Row row, uint32_t G, uint32_t p) {
    const uint32_t e = load_u16(row, 16 * G + 2 * p);
    return {{{load_half_sector(row, 32 * p), e & 255u}, {load_half_sector(row, 32 * p + 16), e >> 8}}};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    constexpr NibbleTable kTable = nibble_table(kFp4Values);
    look_up_nibbles(kTable, r.a, out.q);
    out.scale[0] = bits_to_float(r.e < 2 ? 0x200000u << r.e : (r.e - 1u) << 23);
  }
  static constexpr bool kNatural = true;
  CHIMERE_BOTH static void load_quarters(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
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

struct NVFP4 {  // nibbles in natural order; two E4M3 scales
  static constexpr DType kType = DType::NVFP4;
  static constexpr int kScales = 2, kMins = 0;
  struct Raw {
    Words4 a;
    uint32_t s;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(18 * G); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words4(row, 16 * g), load_u16(row, 16 * G + 2 * g)};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    constexpr NibbleTable kTable = nibble_table(kFp4Values);
    look_up_nibbles(kTable, r.a, out.q);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      // The seven bits of exponent and mantissa under a float's: off by 2^(127 - 7) in exponent, and half the value.
      const uint32_t code = (r.s >> (8 * i)) & 0x7Fu;
      out.scale[i] = code == 0x7Fu ? 0.0f : bits_to_float(code << 20) * 0x1p+119f;
    }
  }
};

}  // namespace chimere::cuda::format
