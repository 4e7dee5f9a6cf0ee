// pack.cpp  Takes every block apart into codes and scales and writes them where formats.h reads them. Padding is zero.
#include "backend/cuda/weights/pack.h"

#include <cstring>
#include <type_traits>
#include <vector>

#include "backend/cuda/weights/formats.h"
#include "base/check.h"
#include "tensor/dequantize.h"

namespace chimere::cuda {
namespace {

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

// The pieces of formats.h out of 32 codes.

struct Codes {
  uint32_t c[kGroup];  // only the low bits count
};

// Bits [from, from + 4) of the codes, element i beside element i + 16.
void put_split_nibbles(std::byte* at, const Codes& codes, int from) {
  for (int i = 0; i < 16; ++i) {
    put(at + i, static_cast<uint8_t>(((codes.c[i] >> from) & 15u) | ((codes.c[i + 16] >> from) & 15u) << 4));
  }
}

void put_natural_nibbles(std::byte* at, const Codes& codes) {
  for (int i = 0; i < 16; ++i) {
    put(at + i, static_cast<uint8_t>((codes.c[2 * i] & 15u) | (codes.c[2 * i + 1] & 15u) << 4));
  }
}

void put_crumbs(std::byte* at, const Codes& codes, int from) {
  uint8_t bytes[8] = {};
  for (int e = 0; e < kGroup; ++e) {
    const int j = e / 4;
    bytes[4 * (j / 4) + e % 4] |= static_cast<uint8_t>(((codes.c[e] >> from) & 3u) << (2 * (j % 4)));
  }
  std::memcpy(at, bytes, 8);
}

// Bit `from` of the codes, element 4j + b at bit 8b + j.
uint32_t bit_plane(const Codes& codes, int from) {
  uint32_t plane = 0;
  for (int e = 0; e < kGroup; ++e) plane |= ((codes.c[e] >> from) & 1u) << (8 * (e % 4) + e / 4);
  return plane;
}

Codes codes_of_signs(const uint8_t (&signs)[4]) {
  Codes codes;
  for (int e = 0; e < kGroup; ++e) codes.c[e] = (signs[e / 8] >> (e % 8)) & 1u;
  return codes;
}

// Four 7-bit sign codes with four other bits in the places of the eighth signs.
uint32_t short_signs(const uint32_t (&codes7)[4], uint32_t spare) {
  uint8_t signs[4];
  for (int l = 0; l < 4; ++l) signs[l] = static_cast<uint8_t>((codes7[l] & 127u) | ((spare >> l) & 1u) << 7);
  return bit_plane(codes_of_signs(signs), 0);
}

// The file's codes of group j of a block.

template <class Block>
Codes split_codes(const Block& b) {
  Codes codes;
  for (int e = 0; e < kGroup; ++e) codes.c[e] = (b.q[e % 16] >> (4 * (e / 16))) & 15u;
  return codes;
}
template <class Block>
Codes five_bit_codes(const Block& b) {
  Codes codes = split_codes(b);
  for (int e = 0; e < kGroup; ++e) codes.c[e] |= ((b.h >> e) & 1u) << 4;
  return codes;
}
Codes sub_block_codes(const uint8_t* q, int j) {
  Codes codes;
  for (int e = 0; e < kGroup; ++e) codes.c[e] = (q[16 * j + e % 16] >> (4 * (e / 16))) & 15u;
  return codes;
}
Codes paired_codes(const uint8_t* q, int j) {
  Codes codes;
  for (int e = 0; e < kGroup; ++e) codes.c[e] = (q[32 * (j / 2) + e] >> (4 * (j % 2))) & 15u;
  return codes;
}
Codes crumb_codes(const uint8_t* q, int j) {
  Codes codes;
  for (int e = 0; e < kGroup; ++e) codes.c[e] = (q[32 * (j / 4) + e] >> (2 * (j % 4))) & 3u;
  return codes;
}
void flip(Codes& codes, uint32_t bits) {
  for (uint32_t& c : codes.c) c ^= bits;
}

// put_group: group j of block b is group g of the row.

void put_group(const BlockQ8_0& b, int, std::byte* row, uint32_t G, uint32_t g) {
  std::memcpy(row + 16 * g, b.q, 16);
  std::memcpy(row + 16 * G + 16 * g, b.q + 16, 16);
  put(row + 32 * G + 2 * g, b.d);
}

void put_group(const BlockQ4_0& b, int, std::byte* row, uint32_t G, uint32_t g) {
  Codes codes = split_codes(b);
  flip(codes, 8);
  put_split_nibbles(row + 16 * g, codes, 0);
  put(row + 16 * G + 2 * g, b.d);
}

void put_group(const BlockQ4_1& b, int, std::byte* row, uint32_t G, uint32_t g) {
  put_split_nibbles(row + 16 * g, split_codes(b), 0);
  put(row + 16 * G + 4 * g, b.d);
  put(row + 16 * G + 4 * g + 2, b.m);
}

void put_group(const BlockQ5_0& b, int, std::byte* row, uint32_t G, uint32_t g) {
  Codes codes = five_bit_codes(b);
  flip(codes, 16);
  put_split_nibbles(row + 16 * g, codes, 1);
  put(row + 16 * G + 4 * g, bit_plane(codes, 0));
  put(row + 20 * G + 2 * g, b.d);
}

void put_group(const BlockQ5_1& b, int, std::byte* row, uint32_t G, uint32_t g) {
  const Codes codes = five_bit_codes(b);
  put_split_nibbles(row + 16 * g, codes, 0);
  put(row + 16 * G + 4 * g, bit_plane(codes, 4));
  put(row + 20 * G + 4 * g, b.d);
  put(row + 20 * G + 4 * g + 2, b.m);
}

template <class Block>
void put_scale_min(const Block& b, int j, std::byte* at, uint32_t G, uint32_t g) {
  put(at + g / 8 * 4, b.d);
  put(at + g / 8 * 4 + 2, b.dmin);
  const ScaleMin s = k_scale_min(b.scales, j);
  put(at + G / 2 + 2 * g, s.scale);
  put(at + G / 2 + 2 * g + 1, s.min);
}

void put_group(const BlockQ4_K& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  put_split_nibbles(row + 16 * g, paired_codes(b.q, j), 0);
  put_scale_min(b, j, row + 16 * G, G, g);
}

void put_group(const BlockQ5_K& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  Codes fifth;
  for (int e = 0; e < kGroup; ++e) fifth.c[e] = (b.h[e] >> j) & 1u;
  put_split_nibbles(row + 16 * g, paired_codes(b.q, j), 0);
  put(row + 16 * G + 4 * g, bit_plane(fifth, 0));
  put_scale_min(b, j, row + 20 * G, G, g);
}

void put_group(const BlockQ6_K& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  const int n = j / 4, k = j % 4;
  Codes codes;
  for (int e = 0; e < kGroup; ++e) {
    const uint32_t low = (b.ql[64 * n + 32 * (k % 2) + e] >> (4 * (k / 2))) & 15u;
    codes.c[e] = (low | ((b.qh[32 * n + e] >> (2 * k)) & 3u) << 4) ^ 32u;
  }
  put_split_nibbles(row + 16 * g, codes, 2);
  put_crumbs(row + 16 * G + 8 * g, codes, 0);
  std::memcpy(row + 24 * G + 2 * g, b.scales + 2 * j, 2);
  put(row + 26 * G + g / 8 * 2, b.d);
}

void put_group(const BlockQ3_K& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  Codes codes = crumb_codes(b.q, j);
  for (int e = 0; e < kGroup; ++e) codes.c[e] |= (b.hmask[e] >> j) & 1u ? 0u : 4u;  // minus 4 in three bits
  put_crumbs(row + 8 * g, codes, 1);
  put(row + 8 * G + 4 * g, bit_plane(codes, 0));
  for (int i = 0; i < 2; ++i) {
    put(row + 12 * G + 2 * g + i, static_cast<int8_t>(q3_k_scale(b.scales, 2 * j + i)));
  }
  put(row + 14 * G + g / 8 * 2, b.d);
}

void put_group(const BlockQ2_K& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  put_crumbs(row + 8 * g, crumb_codes(b.q, j), 0);
  put(row + 8 * G + g / 8 * 4, b.d);
  put(row + 8 * G + g / 8 * 4 + 2, b.dmin);
  std::memcpy(row + 8 * G + G / 2 + 2 * g, b.scales + 2 * j, 2);
}

// Ternary codes as 1 - c.
void put_ternary(Codes codes, uint16_t d, std::byte* row, uint32_t G, uint32_t g, uint32_t groups_per_scale) {
  for (uint32_t& c : codes.c) c = 1u - c;
  put_crumbs(row + 8 * g, codes, 0);
  put(row + 8 * G + g / groups_per_scale * 2, d);
}

void put_group(const BlockTQ2_0& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  put_ternary(crumb_codes(b.q, j), b.d, row, G, g, 8);
}

void put_group(const BlockTQ1_0& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  Codes codes;
  for (int e = 0; e < kGroup; ++e) {
    const int i = 32 * j + e;
    const int digit = i < 160   ? tq1_0_digit(b.q[i % 32], i / 32)
                      : i < 240 ? tq1_0_digit(b.q[32 + (i - 160) % 16], (i - 160) / 16)
                                : tq1_0_digit(b.qh[(i - 240) % 4], (i - 240) / 4);
    codes.c[e] = static_cast<uint32_t>(digit + 1);
  }
  put_ternary(codes, b.d, row, G, g, 8);
}

void put_group(const BlockQ2_0& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  Codes codes;
  for (int e = 0; e < kGroup; ++e) codes.c[e] = (b.q[8 * j + e / 4] >> (2 * (e % 4))) & 3u;
  put_ternary(codes, b.d, row, G, g, 2);
}

void put_group(const BlockQ1_0& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  Codes codes;
  for (int e = 0; e < kGroup; ++e) codes.c[e] = (~b.q[4 * j + e / 8] >> (e % 8)) & 1u;
  put(row + 4 * g, bit_plane(codes, 0));
  put(row + 4 * G + g / 4 * 2, b.d);
}

void put_group(const BlockIQ4_NL& b, int, std::byte* row, uint32_t G, uint32_t g) {
  put_natural_nibbles(row + 16 * g, split_codes(b));
  put(row + 16 * G + 2 * g, b.d);
}

void put_group(const BlockIQ4_XS& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  put_natural_nibbles(row + 16 * g, sub_block_codes(b.q, j));
  put(row + 16 * G + g / 8 * 2, b.d);
  put(row + 16 * G + G / 4 + g, static_cast<int8_t>(iq4_xs_scale(b.scales_high, b.scales_low, j)));
}

void put_group(const BlockMXFP4& b, int, std::byte* row, uint32_t G, uint32_t g) {
  put_natural_nibbles(row + 16 * g, split_codes(b));
  put(row + 16 * G + g, b.e);
}

void put_group(const BlockNVFP4& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  Codes codes;
  for (int e = 0; e < kGroup; ++e) {
    const int i = 32 * j + e;
    codes.c[e] = (b.q[8 * (i / 16) + i % 8] >> (4 * ((i % 16) / 8))) & 15u;
  }
  put_natural_nibbles(row + 16 * g, codes);
  std::memcpy(row + 16 * G + 2 * g, b.scales + 2 * j, 2);
}

void put_group(const BlockIQ3_S& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  uint32_t index[8];
  for (int k = 0; k < 8; ++k) index[k] = b.q[8 * j + k] | ((b.qh[j] >> k) & 1u) << 8;
  put(row + 8 * g, index[0] | index[1] << 9 | index[2] << 18 | (index[6] & 31u) << 27);
  put(row + 8 * g + 4, index[3] | index[4] << 9 | index[5] << 18 | (index[6] >> 5) << 27 | (index[7] >> 8) << 31);
  const uint8_t signs[4] = {b.signs[4 * j], b.signs[4 * j + 1], b.signs[4 * j + 2], b.signs[4 * j + 3]};
  put(row + 8 * G + 4 * g, bit_plane(codes_of_signs(signs), 0));
  std::byte* d = row + 12 * G;
  put(d + g / 8 * 2, b.d);
  put(d + G / 4 + g, static_cast<uint8_t>(index[7]));
  put(d + G / 4 + G + g / 2, b.scales[j / 2]);
}

// The same block for the wide form.
struct WideBlockIQ3_S {
  static constexpr int kElems = BlockIQ3_S::kElems;
  BlockIQ3_S block;
};

// Four weights at a time: of a complement, as of the odd number itself, bits 1 to 4 of the byte are t.
void put_group(const WideBlockIQ3_S& wide, int j, std::byte* row, uint32_t G, uint32_t g) {
  const BlockIQ3_S& b = wide.block;
  uint32_t t[8];
  for (int k = 0; k < 8; ++k) {
    const uint32_t index = b.q[8 * j + k] | ((b.qh[j] >> k) & 1u) << 8;
    const uint32_t signs = (b.signs[4 * j + k / 2] >> (4 * (k % 2))) & 15u;
    const uint32_t negative = ((signs * 0x204081u) & 0x01010101u) * 255u;
    uint32_t magnitudes;
    std::memcpy(&magnitudes, kIqGrids.iq3_s[index], 4);
    t[k] = ((magnitudes ^ negative) >> 1) & 0x0F0F0F0Fu;
  }
  for (int k = 0; k < 4; ++k) put(row + 16 * g + 4 * k, t[k] | t[k + 4] << 4);
  std::byte* d = row + 16 * G;
  put(d + g / 8 * 2, b.d);
  put(d + G / 4 + g / 2, b.scales[j / 2]);
}

void put_group(const BlockIQ3_XXS& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  const uint32_t a = b.a[j];
  std::memcpy(row + 8 * g, b.q + 8 * j, 8);
  put(row + 8 * G + 4 * g, short_signs({a, a >> 7, a >> 14, a >> 21}, a >> 28));
  put(row + 12 * G + g / 8 * 2, b.d);
}

void put_group(const BlockIQ2_XXS& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  const uint32_t a = b.sub[j].a;
  std::memcpy(row + 4 * g, b.sub[j].index, 4);
  put(row + 4 * G + 4 * g, short_signs({a, a >> 7, a >> 14, a >> 21}, a >> 28));
  put(row + 8 * G + g / 8 * 2, b.d);
}

void put_group(const BlockIQ2_XS& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  uint32_t signs[4], ninth = 0;
  for (int l = 0; l < 4; ++l) {
    const uint32_t v = b.q[4 * j + l];
    put(row + 4 * g + l, static_cast<uint8_t>(v));
    signs[l] = v >> 9;
    ninth |= ((v >> 8) & 1u) << l;
  }
  put(row + 4 * G + 4 * g, short_signs(signs, ninth));
  put(row + 8 * G + g / 8 * 2, b.d);
  put(row + 8 * G + G / 4 + g, b.scales[j]);
}

void put_group(const BlockIQ2_S& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  const uint8_t signs[4] = {b.signs[4 * j], b.signs[4 * j + 1], b.signs[4 * j + 2], b.signs[4 * j + 3]};
  std::memcpy(row + 4 * g, b.q + 4 * j, 4);
  put(row + 4 * G + 4 * g, bit_plane(codes_of_signs(signs), 0));
  put(row + 8 * G + g / 8 * 2, b.d);
  put(row + 8 * G + G / 4 + g, b.qh[j]);
  put(row + 8 * G + G / 4 + G + g, b.scales[j]);
}

void put_group(const BlockIQ1_S& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  std::memcpy(row + 4 * g, b.q + 4 * j, 4);
  put(row + 4 * G + 2 * g, static_cast<uint16_t>(b.h[j]));
  put(row + 6 * G + g / 8 * 2, b.d);
}

void put_group(const BlockIQ1_M& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  std::memcpy(row + 4 * g, b.q + 4 * j, 4);
  std::memcpy(row + 4 * G + 2 * g, b.qh + 2 * j, 2);
  put(row + 6 * G + g / 8 * 2, iq1_m_d(b));
  put(row + 6 * G + G / 4 + g, static_cast<uint8_t>((b.scales[j / 2] >> (6 * (j % 2))) & 63u));
}

// Types of ik_llama.cpp: half and moving bits of a block side by side, scales as signed bytes.
template <class Block>
void put_d_extra(const Block& b, std::byte* at, uint32_t g) {
  put(at + g / 8 * 4, b.d);
  put(at + g / 8 * 4 + 2, b.extra);
}
template <class Block>
void put_iqk_tail(const Block& b, int j, std::byte* at, uint32_t G, uint32_t g) {
  put_d_extra(b, at, g);
  for (int i = 0; i < 2; ++i) {
    put(at + G / 2 + 2 * g + i, static_cast<int8_t>(iq4_k_scale(b.scales_high, b.scales_low, 2 * j + i)));
  }
}

void put_group(const BlockIQ2_K& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  put_crumbs(row + 8 * g, crumb_codes(b.q, j), 0);
  put_d_extra(b, row + 8 * G, g);
  put(row + 8 * G + G / 2 + g, b.scales[j]);
}

void put_group(const BlockIQ3_K& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  Codes codes;
  for (int e = 0; e < kGroup; ++e) codes.c[e] = static_cast<uint32_t>(iq3_k_code(b, kGroup * j + e));
  put_crumbs(row + 8 * g, codes, 0);
  put(row + 8 * G + 4 * g, bit_plane(codes, 2));
  std::byte* d = row + 12 * G;
  put_d_extra(b, d, g);
  put(d + G / 2 + g / 8 * 2, b.scales_sign);
  put(d + G / 2 + G / 4 + g, b.scales[j]);
}

void put_group(const BlockIQ4_K& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  put_natural_nibbles(row + 16 * g, sub_block_codes(b.q, j));
  put_iqk_tail(b, j, row + 16 * G, G, g);
}

void put_group(const BlockIQ4_KS& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  put_natural_nibbles(row + 16 * g, sub_block_codes(b.q, j));
  put(row + 16 * G + g, b.scales[j]);
}

void put_group(const BlockIQ5_K& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  Codes codes;
  for (int e = 0; e < kGroup; ++e) codes.c[e] = static_cast<uint32_t>(iq5_k_code(b, kGroup * j + e));
  put_natural_nibbles(row + 16 * g, codes);
  put(row + 16 * G + 4 * g, bit_plane(codes, 4));
  put_iqk_tail(b, j, row + 20 * G, G, g);
}

void put_group(const BlockIQ6_K& b, int j, std::byte* row, uint32_t G, uint32_t g) {
  Codes codes;
  for (int e = 0; e < kGroup; ++e) codes.c[e] = static_cast<uint32_t>(iq6_k_code(b, kGroup * j + e));
  put_natural_nibbles(row + 16 * g, codes);
  put(row + 16 * G + 8 * g, bit_plane(codes, 4));
  put(row + 16 * G + 8 * g + 4, bit_plane(codes, 5));
  put_d_extra(b, row + 24 * G, g);
  std::memcpy(row + 24 * G + G / 2 + 2 * g, b.scales + 2 * j, 2);
}

template <class Block>
void pack_row(const std::byte* from, uint64_t width, std::byte* to) {
  const auto G = static_cast<uint32_t>(width / kGroup);
  if constexpr (std::is_same_v<Block, BlockIQ4_KS>) {  // the row's scale goes to its end
    std::memcpy(to + 17 * G, from, 4);
    from += 4;
  }
  for (uint32_t g = 0; g < G; from += sizeof(Block)) {
    Block block;
    std::memcpy(&block, from, sizeof(Block));
    for (int j = 0; j < Block::kElems / kGroup; ++j, ++g) put_group(block, j, to, G, g);
  }
}

using RowPacker = void (*)(const std::byte* from, uint64_t width, std::byte* to);

// Null for the types whose rows are copied or converted.
RowPacker row_packer(DType type, PackForm form) {
  if (packed_type(type, form) == kIq3Wide) return pack_row<WideBlockIQ3_S>;
  switch (type) {
    case DType::Q8_0: return pack_row<BlockQ8_0>;
    case DType::Q4_0: return pack_row<BlockQ4_0>;
    case DType::Q4_1: return pack_row<BlockQ4_1>;
    case DType::Q5_0: return pack_row<BlockQ5_0>;
    case DType::Q5_1: return pack_row<BlockQ5_1>;
    case DType::Q2_K: return pack_row<BlockQ2_K>;
    case DType::Q3_K: return pack_row<BlockQ3_K>;
    case DType::Q4_K: return pack_row<BlockQ4_K>;
    case DType::Q5_K: return pack_row<BlockQ5_K>;
    case DType::Q6_K: return pack_row<BlockQ6_K>;
    case DType::IQ1_S: return pack_row<BlockIQ1_S>;
    case DType::IQ1_M: return pack_row<BlockIQ1_M>;
    case DType::IQ2_XXS: return pack_row<BlockIQ2_XXS>;
    case DType::IQ2_XS: return pack_row<BlockIQ2_XS>;
    case DType::IQ2_S: return pack_row<BlockIQ2_S>;
    case DType::IQ3_XXS: return pack_row<BlockIQ3_XXS>;
    case DType::IQ3_S: return pack_row<BlockIQ3_S>;
    case DType::IQ4_NL: return pack_row<BlockIQ4_NL>;
    case DType::IQ4_XS: return pack_row<BlockIQ4_XS>;
    case DType::TQ1_0: return pack_row<BlockTQ1_0>;
    case DType::TQ2_0: return pack_row<BlockTQ2_0>;
    case DType::MXFP4: return pack_row<BlockMXFP4>;
    case DType::NVFP4: return pack_row<BlockNVFP4>;
    case DType::Q1_0: return pack_row<BlockQ1_0>;
    case DType::Q2_0: return pack_row<BlockQ2_0>;
    case DType::IQ2_K: return pack_row<BlockIQ2_K>;
    case DType::IQ3_K: return pack_row<BlockIQ3_K>;
    case DType::IQ4_K: return pack_row<BlockIQ4_K>;
    case DType::IQ4_KS: return pack_row<BlockIQ4_KS>;
    case DType::IQ5_K: return pack_row<BlockIQ5_K>;
    case DType::IQ6_K: return pack_row<BlockIQ6_K>;
    default: return nullptr;
  }
}

}  // namespace

DType packed_type(DType type, PackForm form) {
  if (type == DType::IQ3_S && form == PackForm::wide) return kIq3Wide;
  switch (type) {
    case DType::TQ1_0: return DType::TQ2_0;
    case DType::I8:
    case DType::I16:
    case DType::I32:
    case DType::I64:
    case DType::F64: return DType::F32;
    default: return type;
  }
}

uint32_t packed_row_bytes(DType type, uint64_t width, PackForm form) {
  CHECK(width % info(type).block_elems == 0);
  const DType packed = packed_type(type, form);
  if (info(type).block_elems == 1) return round_up_16(static_cast<uint32_t>(width) * info(packed).block_bytes);
  uint32_t bytes = 0;
  with_format(packed, [&](auto f) { bytes = decltype(f)::row_bytes(static_cast<uint32_t>(width / kGroup)); });
  CHECK(bytes > 0);
  return bytes;
}

uint64_t packed_bytes(const TensorView& tensor, PackForm form) {
  return tensor.rows() * packed_row_bytes(tensor.type, tensor.ne[0], form);
}

void pack_rows(const TensorView& tensor, uint64_t first, uint64_t n, std::byte* to, PackForm form) {
  const uint64_t width = tensor.ne[0];
  const uint32_t bytes = packed_row_bytes(tensor.type, width, form);
  const RowPacker pack = row_packer(tensor.type, form);
  std::vector<float> floats(pack || packed_type(tensor.type) == tensor.type ? 0 : width);
  for (uint64_t r = first; r < first + n; ++r, to += bytes) {
    if (pack) {
      std::memset(to + bytes - 16, 0, 16);
      pack(tensor.row(r), width, to);
      continue;
    }
    const std::byte* row = tensor.row(r);
    uint64_t used = tensor.row_bytes();
    if (!floats.empty()) {
      dequantize_row(tensor.type, row, floats.data(), static_cast<int64_t>(width));
      row = reinterpret_cast<const std::byte*>(floats.data());
      used = width * sizeof(float);
    }
    std::memcpy(to, row, used);
    std::memset(to + used, 0, bytes - used);
  }
}

Weight packed_weight(const TensorView& tensor, const void* data, const IqGrids* grids, PackForm form) {
  Weight w;
  w.data = static_cast<const uint8_t*>(data);
  w.grids = grids;
  w.type = packed_type(tensor.type, form);
  w.width = static_cast<int32_t>(tensor.ne[0]);
  w.rows = static_cast<int32_t>(tensor.ne[1]);
  w.experts = static_cast<int32_t>(tensor.ne[2] * tensor.ne[3]);
  w.row_bytes = packed_row_bytes(tensor.type, tensor.ne[0], form);
  return w;
}

}  // namespace chimere::cuda
