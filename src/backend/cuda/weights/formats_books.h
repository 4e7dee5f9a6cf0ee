// formats_books.h  Types whose codes are indices into books of eight or four weights, with signs beside them.
#pragma once

#include "backend/cuda/weights/quarters.h"

namespace chimere::cuda::format {

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

// IQ3_S looked up at load: every weight of its codebook, with its sign, is an odd number of -15 .. 15, that is 2t + 1
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
  static constexpr bool kNatural = false;
  CHIMERE_BOTH static void load_quarters(SharedRow row, uint32_t G, uint32_t p, uint32_t q, Group (&out)[2]) {
    const Words2 codes = code_words(row, p, q);
    const uint32_t d = load_u16(row, 16 * G + p / 4 * 2), s = load_u8(row, 16 * G + G / 4 + p);
    CHIMERE_UNROLL
    for (int i = 0; i < 2; ++i) {
      split_word<0xF0F0F0F0u>(codes.w[i], out[i]);
      out[i].q[0] |= kHalfStep;
      out[i].q[1] |= kHalfStep;
      out[i].scale[0] = scale(d, s >> (4 * i));
    }
  }
};

// Entry `index` of a codebook of four-byte entries, or half of one of eight bytes.
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

}  // namespace chimere::cuda::format
