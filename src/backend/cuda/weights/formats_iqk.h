// formats_iqk.h  The types of ik_llama.cpp: values of a table, moved up where a bit of the sub-block says so.
#pragma once

#include "backend/cuda/weights/quarters.h"

namespace chimere::cuda::format {

// Four codes of at most three bits, a byte each, as the selectors of pick_bytes.
CHIMERE_BOTH uint32_t selectors_of(uint32_t codes) { return pick_bytes(codes | codes >> 4, 0u, 0x4420u) & 0x7777u; }

// Bytes a + b, none of which carries into the next.
CHIMERE_BOTH uint32_t add_bytes(uint32_t a, uint32_t b) {
  return ((a & 0x7F7F7F7Fu) + (b & 0x7F7F7F7Fu)) ^ ((a ^ b) & 0x80808080u);
}

// Moves the values of both halves of a group whose bits 2(g % 8) and 2(g % 8) + 1 of `extra` are set.
CHIMERE_BOTH void move_values(uint32_t extra, uint32_t g, uint32_t by, uint32_t (&q)[8]) {
  CHIMERE_UNROLL
  for (int j = 0; j < 8; ++j) {
    const uint32_t bit = (extra >> (2 * (g % 8) + j / 4)) & 1u;
    q[j] = add_bytes(q[j], bit * by * 0x01010101u);
  }
}

// Bytes of one of two words where the bit of element e in the plane is not set, or is.
CHIMERE_BOTH uint32_t select_bytes(uint32_t unset, uint32_t set, uint32_t mask) {
  return (unset & ~mask) | (set & mask);
}

struct IQ2_K {  // crumbs; u32 d, extra a block; two scale nibbles
  static constexpr DType kType = DType::IQ2_K;
  static constexpr int kScales = 2, kMins = 0;
  struct Raw {
    Words2 b;
    uint32_t d, s, g;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(9 * G + G / 8 * 4); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words2(row, 8 * g), load_u32(row, 8 * G + g / 8 * 4), load_u8(row, 8 * G + G / 2 + g), g};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    constexpr uint32_t kTable = bytes_of(kIq2kValues, 0);
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) out.q[j] = pick_bytes(kTable, 0u, selectors_of(crumb_word<0>(r.b, j)));
    move_values(r.d >> 16, r.g, kIq2kMove, out.q);
    const float d = half_to_float(r.d & 0xFFFFu);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      out.scale[i] = times(d, static_cast<float>(static_cast<int>((r.s >> (4 * i)) & 15u) - 8));
    }
  }
};

struct IQ3_K {  // crumbs; u32 third bits; u32 d, extra a block; u16 signs of scales a block; two scale nibbles
  static constexpr DType kType = DType::IQ3_K;
  static constexpr int kScales = 2, kMins = 0;
  struct Raw {
    Words2 b;
    uint32_t h, d, signs, s, g;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(13 * G + G / 8 * 6); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    const uint32_t d = 12 * G;
    return {load_words2(row, 8 * g),
            load_u32(row, 8 * G + 4 * g),
            load_u32(row, d + g / 8 * 4),
            load_u16(row, d + G / 2 + g / 8 * 2),
            load_u8(row, d + G / 2 + G / 4 + g),
            g};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    constexpr uint32_t kLow = bytes_of(kIq3kValues, 0), kHigh = bytes_of(kIq3kValues, 4);
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) {
      out.q[j] = pick_bytes(kLow, kHigh, selectors_of(crumb_word<0>(r.b, j) | spread_bit<2>(r.h, j)));
    }
    move_values(r.d >> 16, r.g, kIq3kMove, out.q);
    const float d = half_to_float(r.d & 0xFFFFu);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int size = 2 * static_cast<int>((r.s >> (4 * i)) & 15u) + 1;
      out.scale[i] = times(d, static_cast<float>((r.signs >> (2 * (r.g % 8) + i)) & 1u ? -size : size));
    }
  }
};

// d of a block and two signed bytes.
CHIMERE_BOTH void iqk_scales(uint32_t d_extra, uint32_t bytes, Group& out) {
  const float d = half_to_float(d_extra & 0xFFFFu);
  out.scale[0] = times(d, signed_byte(bytes, 0));
  out.scale[1] = times(d, signed_byte(bytes, 1));
}

struct IQ4_K {  // nibbles in natural order; u32 d, extra a block; u16 two scales
  static constexpr DType kType = DType::IQ4_K;
  static constexpr int kScales = 2, kMins = 0;
  struct Raw {
    Words4 a;
    uint32_t d, s, g;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(18 * G + G / 8 * 4); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    const uint32_t d = 16 * G;
    return {load_words4(row, 16 * g), load_u32(row, d + g / 8 * 4), load_u16(row, d + G / 2 + 2 * g), g};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    constexpr NibbleTable kTable = nibble_table(kIq4Values);
    look_up_nibbles(kTable, r.a, out.q);
    move_values(r.d >> 16, r.g, kIq4kMove, out.q);
    iqk_scales(r.d, r.s, out);
  }
};

struct IQ4_KS {  // nibbles in natural order; u8 scale, its lowest bit moves the values; f32 d at the end of the row
  static constexpr DType kType = DType::IQ4_KS;
  static constexpr int kScales = 1, kMins = 0;
  struct Raw {
    Words4 a;
    uint32_t s, d;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(17 * G + 4); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    return {load_words4(row, 16 * g), load_u8(row, 16 * G + g), load_u32(row, 17 * G)};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    constexpr NibbleTable kTable = nibble_table(kIq4Values);
    look_up_nibbles(kTable, r.a, out.q);
    move_values((r.s & 1u) * 3u, 0, kIq4kMove, out.q);
    out.scale[0] = times(bits_to_float(r.d), static_cast<float>(static_cast<int>(r.s & 254u) - 127));
  }
};

struct IQ5_K {  // low nibbles in natural order; u32 fifth bits; u32 d, extra a block; u16 two scales
  static constexpr DType kType = DType::IQ5_K;
  static constexpr int kScales = 2, kMins = 0;
  struct Raw {
    Words4 a;
    uint32_t h, d, s, g;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(22 * G + G / 8 * 4); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    const uint32_t d = 20 * G;
    return {load_words4(row, 16 * g), load_u32(row, 16 * G + 4 * g), load_u32(row, d + g / 8 * 4),
            load_u16(row, d + G / 2 + 2 * g), g};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    constexpr NibbleTable kLow = nibble_table_at(kIq5kValues, 0), kHigh = nibble_table_at(kIq5kValues, 16);
    uint32_t high[8];
    look_up_nibbles(kLow, r.a, out.q);
    look_up_nibbles(kHigh, r.a, high);
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) out.q[j] = select_bytes(out.q[j], high[j], sign_mask(r.h, j));
    move_values(r.d >> 16, r.g, kIq5kMove, out.q);
    iqk_scales(r.d, r.s, out);
  }
};

struct IQ6_K {  // low nibbles in natural order; two planes of bits 4 and 5; u32 d, extra a block; u16 two scales
  static constexpr DType kType = DType::IQ6_K;
  static constexpr int kScales = 2, kMins = 0;
  struct Raw {
    Words4 a;
    Words2 h;
    uint32_t d, s, g;
  };
  static constexpr uint32_t row_bytes(uint32_t G) { return round_up_16(26 * G + G / 8 * 4); }
  CHIMERE_BOTH static Raw load(const uint8_t* row, uint32_t G, uint32_t g) {
    const uint32_t d = 24 * G;
    return {load_words4(row, 16 * g), load_words2(row, 16 * G + 8 * g), load_u32(row, d + g / 8 * 4),
            load_u16(row, d + G / 2 + 2 * g), g};
  }
  CHIMERE_BOTH static void unpack(const Raw& r, const CodeBooks&, Group& out) {
    constexpr NibbleTable kTables[4] = {nibble_table_at(kIq6kValues, 0), nibble_table_at(kIq6kValues, 16),
                                        nibble_table_at(kIq6kValues, 32), nibble_table_at(kIq6kValues, 48)};
    uint32_t of[3][8];
    look_up_nibbles(kTables[0], r.a, out.q);
    CHIMERE_UNROLL
    for (int t = 0; t < 3; ++t) look_up_nibbles(kTables[t + 1], r.a, of[t]);
    CHIMERE_UNROLL
    for (int j = 0; j < 8; ++j) {
      const uint32_t fifth = sign_mask(r.h.w[0], j), sixth = sign_mask(r.h.w[1], j);
      out.q[j] = select_bytes(select_bytes(out.q[j], of[0][j], fifth), select_bytes(of[1][j], of[2][j], fifth), sixth);
    }
    move_values(r.d >> 16, r.g, kIq6kMove, out.q);
    iqk_scales(r.d, r.s, out);
  }
};

}  // namespace chimere::cuda::format
