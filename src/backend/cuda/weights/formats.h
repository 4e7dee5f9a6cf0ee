// formats.h  How quantised rows lie in device memory, and how 32 weights become bytes for dp4a.
//
// A row of the file is a list of small blocks, each with its scale beside its codes: lanes that take neighbouring
// blocks would read scattered bytes. In device memory a row is one record of `row_bytes` (a multiple of 16), and the
// record is planar: first all 16-byte pieces of the groups of 32 weights, then all 8-byte pieces, 4, 2, 1. Lane l of a
// warp takes group l, so that each load of a warp is one contiguous run. No information is lost and none added: the
// sizes are those of the file, up to a few percent where 6-bit scales become bytes; IQ3_S_wide alone gives a fifth for
// speed.
//
// A group is unpacked into eight words of four signed bytes, element 4j + b in byte b of word j, and scales:
//     weight(e) = scale[e / 16] * q[e] + min[e / 16]
// with kScales (1 or 2) and kMins (0, 1 or 2) different values. Two tricks keep the unpacking short:
//   - signed codes of n bits are stored in two's complement and put at the *top* of their byte: no sign extension, and
//     the scale carries the 2^-(8-n), exactly;
//   - a bit per element (signs, fifth bits) is stored as bit 8b + j of a word, element 4j + b: one shift and one mask
//     bring it beside word j.
// G is the number of groups of a row, g the group.
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

// Where the code-books lie for the thread that unpacks. Of IQ3_S, the one whose speed matters, a block may keep
// kIq3Copies copies in shared memory, entry by entry, so that the lanes of a warp, which look up different entries,
// seldom meet in a bank: with 16 copies two lanes share a bank pair, with one copy 3.5 lookups of 32 collide.
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
CHIMERE_BOTH constexpr NibbleTable nibble_table(const int8_t (&values)[16]) {
  NibbleTable table{};
  for (int i = 0; i < 16; ++i) {
    table.t[i / 4] |= static_cast<uint32_t>(static_cast<uint8_t>(values[i])) << (8 * (i % 4));
  }
  return table;
}
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

namespace format {

struct Q8_0 {  // planes: 16 first, 16 last codes, u16 d
  static constexpr DType kType = DType::Q8_0;
  static constexpr int kScales = 1, kMins = 0;
  struct Raw {
    Words4 a, b;
    uint32_t d;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(34 * G); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
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
};

// d of a block times the signed bytes of two scales, and a power of two.
CHIMERE_BOTH void two_scales(uint32_t d, uint32_t bytes, float by, Group& out) {
  const float scale = half_to_float(d);
  out.scale[0] = times(scale, signed_byte(bytes, 0)) * by;
  out.scale[1] = times(scale, signed_byte(bytes, 1)) * by;
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

struct IQ3_S {  // nine-bit indices in 64 + 8 bits, signs, scale nibbles; u16 d a block. Fields of the two words:
                //   A = i0 | i1 << 9 | i2 << 18 | low five bits of i6 << 27
                //   B = i3 | i4 << 9 | i5 << 18 | high four bits of i6 << 27 | bit 8 of i7 << 31,  C = low byte of i7
  static constexpr DType kType = DType::IQ3_S;
  static constexpr int kScales = 1, kMins = 0;
  struct Raw {
    Words2 ab;
    uint32_t signs, d, c, s;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(13 * G + G / 2 + G / 8 * 2); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    const uint32_t d = 12 * G;
    const uint32_t c = d + G / 4;
    return {load_words2(row, 8 * g), load_u32(row, 8 * G + 4 * g), load_u16(row, d + g / 8 * 2), load_u8(row, c + g),
            load_u8(row, c + G + g / 2) >> (4 * (g % 2))};
  }
  template <class Row>
  CHIMERE_BOTH static Pair<IQ3_S> load_pair(Row row, uint32_t G, uint32_t p) {
    const uint32_t at_d = 12 * G, at_c = at_d + G / 4;
    const Words4 ab = load_words4(row, 16 * p);
    const Words2 signs = load_words2(row, 8 * G + 8 * p);
    const uint32_t d = load_u16(row, at_d + p / 4 * 2), c = load_u16(row, at_c + 2 * p), s = load_u8(row, at_c + G + p);
    return {
        {{{{ab.w[0], ab.w[1]}}, signs.w[0], d, c & 255u, s}, {{{ab.w[2], ab.w[3]}}, signs.w[1], d, c >> 8, s >> 4}}};
  }
  // Entries are odd, so that a complement and a set lowest bit negate them. The table has an entry every 2^kShift
  // bytes; `lane` is the byte offset of the lane's copy: shift, mask and offset are two instructions.
  template <int kShift>
  CHIMERE_BOTH static uint32_t entry(const uint8_t* table, uint32_t offset, uint32_t signs, int j) {
#ifdef __CUDA_ARCH__
    const uint32_t value = *reinterpret_cast<const uint32_t*>(table + offset);
#else
    const uint32_t value = load_u32(table, offset);
#endif
    return (value ^ sign_mask(signs, j)) | 0x01010101u;
  }
  // Bits [from, from + 9) of a word, times 2^kShift.
  template <int kShift>
  CHIMERE_BOTH static uint32_t index(uint32_t word, int from) {
    return (from < kShift ? word << (kShift - from) : word >> (from - kShift)) & (511u << kShift);
  }
  template <int kShift>
  CHIMERE_BOTH static void unpack_table(const Raw& r, const uint8_t* table, uint32_t lane, Group& out) {
    const uint32_t a = r.ab.w[0], b = r.ab.w[1];
    CHIMERE_UNROLL
    for (int j = 0; j < 3; ++j) {
      out.q[j] = entry<kShift>(table, index<kShift>(a, 9 * j) | lane, r.signs, j);
      out.q[j + 3] = entry<kShift>(table, index<kShift>(b, 9 * j) | lane, r.signs, j + 3);
    }
    const uint32_t i6 = ((a >> (27 - kShift)) & (31u << kShift)) | ((b >> (22 - kShift)) & (15u << (kShift + 5)));
    const uint32_t i7 = (r.c << kShift) | ((b >> (23 - kShift)) & (1u << (kShift + 8)));
    out.q[6] = entry<kShift>(table, i6 | lane, r.signs, 6);
    out.q[7] = entry<kShift>(table, i7 | lane, r.signs, 7);
    out.scale[0] = times(half_to_float(r.d), static_cast<float>(1u + 2u * (r.s & 15u)));
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks& books, Group& out) {
    static_assert(kIq3Copies == 16);
    unpack_table<6>(r, books.iq3_s, books.iq3_s_lane, out);
  }
  // From a table of kCopies copies, a power of two, advanced to the lane's.
  template <int kCopies>
  CHIMERE_BOTH static void unpack_from(const Raw& r, const uint32_t* table, Group& out) {
    static_assert(kCopies == 1 || kCopies == 2 || kCopies == 4 || kCopies == 8 || kCopies == 16 || kCopies == 32);
    constexpr int kLog2 = kCopies >= 32 ? 5 : kCopies >= 16 ? 4 : kCopies >= 8 ? 3 : kCopies / 2;
    unpack_table<2 + kLog2>(r, reinterpret_cast<const uint8_t*>(table), 0, out);
  }
};

// IQ3_S looked up at load: every weight of its code-book, with its sign, is an odd number of -15 .. 15, that is 2t + 1
// with t a signed nibble. 4.19 bits a weight and not 3.44, for far fewer instructions and no table in shared
// memory. The weights are the same, and so are the bits of every product.
struct IQ3_S_wide {  // t as the top nibble; u16 d a block; scale nibbles
  static constexpr DType kType = kIq3Wide;
  static constexpr int kScales = 1, kMins = 0;
  static constexpr uint32_t kHalfStep = 0x08080808u;  // 16 t + 8 = 8 (2t + 1)
  struct Raw {
    Words4 a;
    uint32_t d, s;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(16 * G + G / 8 * 2 + G / 2); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    const uint32_t d = 16 * G;
    return {load_words4(row, 16 * g), load_u16(row, d + g / 8 * 2), load_u8(row, d + G / 4 + g / 2) >> (4 * (g % 2))};
  }
  template <class Row>
  CHIMERE_BOTH static Pair<IQ3_S_wide> load_pair(Row row, uint32_t G, uint32_t p) {
    const uint32_t d = load_u16(row, 16 * G + p / 4 * 2), s = load_u8(row, 16 * G + G / 4 + p);
    return {{{load_half_sector(row, 32 * p), d, s}, {load_half_sector(row, 32 * p + 16), d, s >> 4}}};
  }
  // d (1 + 2k) / 8: the nibble k becomes the upper bits of a float's mantissa, 1 + k / 16. Nothing is rounded.
  CHIMERE_BOTH static float scale(uint32_t d, uint32_t s) {
    return times(half_to_float(d), 4.0f * bits_to_float(((s << 19) & 0x780000u) | 0x3F800000u) - 3.875f);
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    split_nibbles<0xF0F0F0F0u>(r.a, out.q);
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) out.q[j] |= kHalfStep;
    out.scale[0] = scale(r.d, r.s);
  }
};

// Entry `index` of a code-book of four-byte entries, or half of one of eight bytes.
CHIMERE_BOTH uint32_t grid_word(const void* grid, uint32_t word) {
  return load_u32(static_cast<const uint8_t*>(grid), 4 * word);
}

struct IQ3_XXS {  // eight index bytes; u32 seven-bit signs and a scale nibble; u16 d a block
  static constexpr DType kType = DType::IQ3_XXS;
  static constexpr int kScales = 1, kMins = 0;
  struct Raw {
    Words2 index;
    uint32_t a, d;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(12 * G + G / 8 * 2); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words2(row, 8 * g), load_u32(row, 8 * G + 4 * g), load_u16(row, 12 * G + g / 8 * 2)};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks& books, Group& out) {
    const uint32_t signs = complete_signs(r.a);
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) {
      const uint32_t index = (r.index.w[j / 4] >> (8 * (j % 4))) & 255u;
      out.q[j] = negate(grid_word(books.grids->iq3_xxs, index), sign_mask(signs, j));
    }
    out.scale[0] = times(half_to_float(r.d), 0.5f + static_cast<float>(spare_bits(r.a))) * 0.5f;
  }
};

struct IQ2_XXS {  // four index bytes; u32 seven-bit signs and a scale nibble; u16 d a block
  static constexpr DType kType = DType::IQ2_XXS;
  static constexpr int kScales = 1, kMins = 0;
  struct Raw {
    uint32_t index, a, d;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(8 * G + G / 8 * 2); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_u32(row, 4 * g), load_u32(row, 4 * G + 4 * g), load_u16(row, 8 * G + g / 8 * 2)};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks& books, Group& out) {
    const uint32_t signs = complete_signs(r.a);
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) {
      const uint32_t index = (r.index >> (8 * (j / 2))) & 255u;
      out.q[j] = negate(grid_word(books.grids->iq2_xxs, 2 * index + j % 2), sign_mask(signs, j));
    }
    out.scale[0] = times(half_to_float(r.d), 0.5f + static_cast<float>(spare_bits(r.a))) * 0.25f;
  }
};

CHIMERE_BOTH void iq2_scales(uint32_t d, uint32_t nibbles, Group& out) {
  CHIMERE_UNROLL
  for (int i = 0; i < 2; ++i) {
    out.scale[i] = times(half_to_float(d), 0.5f + static_cast<float>((nibbles >> (4 * i)) & 15u)) * 0.25f;
  }
}

struct IQ2_XS {  // four low index bytes; u32 seven-bit signs and the ninth index bits; u16 d a block; scale nibbles
  static constexpr DType kType = DType::IQ2_XS;
  static constexpr int kScales = 2, kMins = 0;
  struct Raw {
    uint32_t index, a, d, s;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(9 * G + G / 8 * 2); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    const uint32_t d = 8 * G;
    return {load_u32(row, 4 * g), load_u32(row, 4 * G + 4 * g), load_u16(row, d + g / 8 * 2),
            load_u8(row, d + G / 4 + g)};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks& books, Group& out) {
    const uint32_t signs = complete_signs(r.a), high = spare_bits(r.a);
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) {
      const uint32_t index = ((r.index >> (8 * (j / 2))) & 255u) | ((high >> (j / 2)) & 1u) << 8;
      out.q[j] = negate(grid_word(books.grids->iq2_xs, 2 * index + j % 2), sign_mask(signs, j));
    }
    iq2_scales(r.d, r.s, out);
  }
};

struct IQ2_S {  // four low index bytes; u32 signs; u16 d a block; u8 high index crumbs, u8 scale nibbles
  static constexpr DType kType = DType::IQ2_S;
  static constexpr int kScales = 2, kMins = 0;
  struct Raw {
    uint32_t index, signs, d, h, s;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(10 * G + G / 8 * 2); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    const uint32_t d = 8 * G;
    const uint32_t h = d + G / 4;
    return {load_u32(row, 4 * g), load_u32(row, 4 * G + 4 * g), load_u16(row, d + g / 8 * 2), load_u8(row, h + g),
            load_u8(row, h + G + g)};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks& books, Group& out) {
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) {
      const uint32_t index = ((r.index >> (8 * (j / 2))) & 255u) | ((r.h >> (j / 2 * 2)) & 3u) << 8;
      out.q[j] = negate(grid_word(books.grids->iq2_s, 2 * index + j % 2), sign_mask(r.signs, j));
    }
    iq2_scales(r.d, r.s, out);
  }
};

struct IQ1_S {  // four low index bytes; u16 high index bits, scale and sign of delta; u16 d a block
  static constexpr DType kType = DType::IQ1_S;
  static constexpr int kScales = 1, kMins = 1;
  struct Raw {
    uint32_t index, h, d;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(6 * G + G / 8 * 2); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_u32(row, 4 * g), load_u16(row, 4 * G + 2 * g), load_u16(row, 6 * G + g / 8 * 2)};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks& books, Group& out) {
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) {
      const uint32_t index = ((r.index >> (8 * (j / 2))) & 255u) | ((r.h >> (j / 2 * 3)) & 7u) << 8;
      out.q[j] = grid_word(books.grids->iq1, 2 * index + j % 2);
    }
    out.scale[0] = times(half_to_float(r.d), static_cast<float>(2u * ((r.h >> 12) & 7u) + 1u));
    out.min[0] = out.scale[0] * (r.h & 0x8000u ? -0.125f : 0.125f);
  }
};

struct IQ1_M {  // four low index bytes; u16 nibbles of high index bits and sign of delta; u16 d a block; u8 two scales
  static constexpr DType kType = DType::IQ1_M;
  static constexpr int kScales = 2, kMins = 0;
  struct Raw {
    uint32_t index, h, d, s;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(7 * G + G / 8 * 2); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    const uint32_t d = 6 * G;
    return {load_u32(row, 4 * g), load_u16(row, 4 * G + 2 * g), load_u16(row, d + g / 8 * 2),
            load_u8(row, d + G / 4 + g)};
  }
  // Eight times the weight: 8 grid +- 1, the bytes biased by 16 so that nothing borrows from its neighbour.
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks& books, Group& out) {
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) {
      const uint32_t nibble = (r.h >> (j / 2 * 4)) & 15u;
      const uint32_t index = ((r.index >> (8 * (j / 2))) & 255u) | (nibble & 7u) << 8;
      const uint32_t grid = grid_word(books.grids->iq1, 2 * index + j % 2);  // -1, 0, 1
      const uint32_t above = ((grid & 0x03030303u) ^ 0x02020202u) << 3;      // 8 (grid + 2)
      const uint32_t moved = nibble & 8u ? above - 0x01010101u : above + 0x01010101u;
      out.q[j] = ((moved | 0x80808080u) - 0x10101010u) ^ 0x80808080u;
    }
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      out.scale[i] = times(half_to_float(r.d), static_cast<float>(2u * ((r.s >> (3 * i)) & 7u) + 1u)) * 0.125f;
    }
  }
};

}  // namespace format

// Calls f with the format of a packed quantised type. The type of a matrix is one for all lanes: no divergence.
template <class F>
CHIMERE_BOTH void with_format(DType type, F&& f) {
  if (type == kIq3Wide) return f(format::IQ3_S_wide{});
  switch (type) {
    case DType::Q8_0: return f(format::Q8_0{});
    case DType::Q4_0: return f(format::Q4_0{});
    case DType::Q4_1: return f(format::Q4_1{});
    case DType::Q5_0: return f(format::Q5_0{});
    case DType::Q5_1: return f(format::Q5_1{});
    case DType::Q2_K: return f(format::Q2_K{});
    case DType::Q3_K: return f(format::Q3_K{});
    case DType::Q4_K: return f(format::Q4_K{});
    case DType::Q5_K: return f(format::Q5_K{});
    case DType::Q6_K: return f(format::Q6_K{});
    case DType::IQ1_S: return f(format::IQ1_S{});
    case DType::IQ1_M: return f(format::IQ1_M{});
    case DType::IQ2_XXS: return f(format::IQ2_XXS{});
    case DType::IQ2_XS: return f(format::IQ2_XS{});
    case DType::IQ2_S: return f(format::IQ2_S{});
    case DType::IQ3_XXS: return f(format::IQ3_XXS{});
    case DType::IQ3_S: return f(format::IQ3_S{});
    case DType::IQ4_NL: return f(format::IQ4_NL{});
    case DType::IQ4_XS: return f(format::IQ4_XS{});
    case DType::TQ2_0: return f(format::TQ2_0{});
    case DType::MXFP4: return f(format::MXFP4{});
    case DType::NVFP4: return f(format::NVFP4{});
    case DType::Q1_0: return f(format::Q1_0{});
    case DType::Q2_0: return f(format::Q2_0{});
    default: return;
  }
}

// Group g of a row of any packed quantised type, both scales and minima filled in. Code-books straight from `grids`.
CHIMERE_BOTH void unpack_any(DType type, const uint8_t* row, uint32_t G, uint32_t g, const IqGrids* grids, Group& out) {
  with_format(type, [&](auto f) {
    using F = decltype(f);
    const auto raw = F::load(row, G, g);
    if constexpr (F::kType == DType::IQ3_S) {
      F::template unpack_from<1>(raw, reinterpret_cast<const uint32_t*>(grids->iq3_s), out);
    } else {
      F::unpack(raw, CodeBooks{grids}, out);
    }
    if (F::kScales == 1) out.scale[1] = out.scale[0];
    if (F::kMins == 0) out.min[0] = 0.0f;
    if (F::kMins < 2) out.min[1] = out.min[0];
  });
}

}  // namespace chimere::cuda
