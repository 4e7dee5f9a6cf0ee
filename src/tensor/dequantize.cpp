// dequantize.cpp  One decoder for each block type, written like the formulas of quant_blocks.h: scalar, one multiply
// order, no tables beyond the format's own. Parentheses fix the order of roundings, which the golden values share.
#include "tensor/dequantize.h"

#include <cstring>

#include "base/check.h"
#include "tensor/half.h"
#include "tensor/iq_grids.h"
#include "tensor/quant_blocks.h"

namespace chimere {
namespace {

// Plain types: one element is one block.

struct F16Bits {
  uint16_t bits;
};
struct BF16Bits {
  uint16_t bits;
};

float decode(F16Bits x) { return f16_to_f32(x.bits); }
float decode(BF16Bits x) { return bf16_to_f32(x.bits); }
float decode(float x) { return x; }
float decode(double x) { return static_cast<float>(x); }
template <class Integer>
float decode(Integer x) {
  return static_cast<float>(x);
}

// 32-element types.

// Element i of 2 * kHalf nibbles in split halves.
template <int kHalf>
int split_nibble(const uint8_t* q, int i) {
  return (q[i % kHalf] >> (4 * (i / kHalf))) & 15;
}

void decode(const BlockQ4_0& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < b.kElems; ++i) y[i] = d * static_cast<float>(split_nibble<16>(b.q, i) - 8);
}

void decode(const BlockQ4_1& b, float* y) {
  const float d = f16_to_f32(b.d), m = f16_to_f32(b.m);
  for (int i = 0; i < b.kElems; ++i) y[i] = d * static_cast<float>(split_nibble<16>(b.q, i)) + m;
}

template <class Block>
int five_bits(const Block& b, int i) {
  return split_nibble<16>(b.q, i) | static_cast<int>((b.h >> i) & 1u) << 4;
}

void decode(const BlockQ5_0& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < b.kElems; ++i) y[i] = d * static_cast<float>(five_bits(b, i) - 16);
}

void decode(const BlockQ5_1& b, float* y) {
  const float d = f16_to_f32(b.d), m = f16_to_f32(b.m);
  for (int i = 0; i < b.kElems; ++i) y[i] = d * static_cast<float>(five_bits(b, i)) + m;
}

void decode(const BlockQ8_0& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < b.kElems; ++i) y[i] = d * static_cast<float>(b.q[i]);
}

void decode(const BlockIQ4_NL& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < b.kElems; ++i) y[i] = d * static_cast<float>(kIq4Values[split_nibble<16>(b.q, i)]);
}

void decode(const BlockMXFP4& b, float* y) {
  const float d = mxfp4_scale(b.e);
  for (int i = 0; i < b.kElems; ++i) y[i] = d * static_cast<float>(kFp4Values[split_nibble<16>(b.q, i)]);
}

// Other lengths.

void decode(const BlockNVFP4& b, float* y) {
  for (int i = 0; i < b.kElems; ++i) {
    const int j = i / 16;
    y[i] = nvfp4_scale(b.scales[j]) * static_cast<float>(kFp4Values[split_nibble<8>(b.q + 8 * j, i % 16)]);
  }
}

void decode(const BlockQ1_0& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < b.kElems; ++i) y[i] = (b.q[i / 8] >> (i % 8)) & 1 ? d : -d;
}

void decode(const BlockQ2_0& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < b.kElems; ++i) y[i] = d * static_cast<float>(((b.q[i / 4] >> (2 * (i % 4))) & 3) - 1);
}

// 256-element K and ternary types.

int crumb(const uint8_t* q, int i) { return (q[32 * (i / 128) + i % 32] >> (2 * ((i % 128) / 32))) & 3; }

void decode(const BlockQ2_K& b, float* y) {
  const float d = f16_to_f32(b.d), dmin = f16_to_f32(b.dmin);
  for (int i = 0; i < b.kElems; ++i) {
    const int s = b.scales[i / 16];
    y[i] = (d * static_cast<float>(s & 15)) * static_cast<float>(crumb(b.q, i)) - dmin * static_cast<float>(s >> 4);
  }
}

void decode(const BlockQ3_K& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < b.kElems; ++i) {
    const int code = crumb(b.q, i) - ((b.hmask[i % 32] >> (i / 32)) & 1 ? 0 : 4);
    y[i] = (d * static_cast<float>(q3_k_scale(b.scales, i / 16))) * static_cast<float>(code);
  }
}

// The nibble of Q4_K and Q5_K.
int paired_nibble(const uint8_t* q, int i) { return (q[32 * (i / 64) + i % 32] >> (4 * ((i / 32) % 2))) & 15; }

template <class Block, class Code>
void decode_scale_min(const Block& b, Code code, float* y) {
  const float d = f16_to_f32(b.d), dmin = f16_to_f32(b.dmin);
  for (int i = 0; i < b.kElems; ++i) {
    const ScaleMin s = k_scale_min(b.scales, i / 32);
    y[i] = (d * static_cast<float>(s.scale)) * static_cast<float>(code(i)) - dmin * static_cast<float>(s.min);
  }
}

void decode(const BlockQ4_K& b, float* y) {
  decode_scale_min(
      b, [&](int i) { return paired_nibble(b.q, i); }, y);
}

void decode(const BlockQ5_K& b, float* y) {
  decode_scale_min(
      b, [&](int i) { return paired_nibble(b.q, i) | ((b.h[i % 32] >> (i / 32)) & 1) << 4; }, y);
}

void decode(const BlockQ6_K& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < b.kElems; ++i) {
    const int n = i / 128, k = (i % 128) / 32, l = i % 32;
    const int low = (b.ql[64 * n + 32 * (k % 2) + l] >> (4 * (k / 2))) & 15;
    const int high = (b.qh[32 * n + l] >> (2 * k)) & 3;
    y[i] = (d * static_cast<float>(b.scales[i / 16])) * static_cast<float>((low | high << 4) - 32);
  }
}

void decode(const BlockTQ1_0& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int n = 0; n < 5; ++n) {
    for (int m = 0; m < 32; ++m) *y++ = d * static_cast<float>(tq1_0_digit(b.q[m], n));
  }
  for (int n = 0; n < 5; ++n) {
    for (int m = 32; m < 48; ++m) *y++ = d * static_cast<float>(tq1_0_digit(b.q[m], n));
  }
  for (int n = 0; n < 4; ++n) {
    for (int m = 0; m < 4; ++m) *y++ = d * static_cast<float>(tq1_0_digit(b.qh[m], n));
  }
}

void decode(const BlockTQ2_0& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < b.kElems; ++i) y[i] = d * static_cast<float>(crumb(b.q, i) - 1);
}

void decode(const BlockIQ4_XS& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < b.kElems; ++i) {
    const int j = i / 32;
    const int scale = iq4_xs_scale(b.scales_high, b.scales_low, j);
    y[i] = (d * static_cast<float>(scale)) * static_cast<float>(kIq4Values[split_nibble<16>(b.q + 16 * j, i % 32)]);
  }
}

// Codebook types. Groups of 8 elements, g = 4j + l.

void decode_signed(float scale, const int8_t* grid, int elements, int signs, float* y) {
  for (int e = 0; e < elements; ++e) {
    const float value = scale * static_cast<float>(grid[e]);
    y[e] = (signs >> e) & 1 ? -value : value;
  }
}

// The scale of group g of IQ2_XS and IQ2_S: a nibble for two groups.
float iq2_scale(float d, const uint8_t* scales, int g) {
  return (d * (0.5f + static_cast<float>((scales[g / 4] >> (4 * ((g % 4) / 2))) & 15))) * 0.25f;
}

void decode(const BlockIQ2_XXS& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int g = 0; g < 32; ++g) {
    const auto& sub = b.sub[g / 4];
    const float scale = (d * (0.5f + static_cast<float>(sub.a >> 28))) * 0.25f;
    const int signs = expand_signs((sub.a >> (7 * (g % 4))) & 127);
    decode_signed(scale, kIqGrids.iq2_xxs[sub.index[g % 4]], 8, signs, y + 8 * g);
  }
}

void decode(const BlockIQ2_XS& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int g = 0; g < 32; ++g) {
    const int v = b.q[g];
    decode_signed(iq2_scale(d, b.scales, g), kIqGrids.iq2_xs[v & 511], 8, expand_signs(v >> 9), y + 8 * g);
  }
}

void decode(const BlockIQ2_S& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int g = 0; g < 32; ++g) {
    const int index = b.q[g] | ((b.qh[g / 4] >> (2 * (g % 4))) & 3) << 8;
    decode_signed(iq2_scale(d, b.scales, g), kIqGrids.iq2_s[index], 8, b.signs[g], y + 8 * g);
  }
}

void decode(const BlockIQ3_XXS& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int g = 0; g < 32; ++g) {
    const uint32_t a = b.a[g / 4];
    const float scale = (d * (0.5f + static_cast<float>(a >> 28))) * 0.5f;
    const int signs = expand_signs((a >> (7 * (g % 4))) & 127);
    decode_signed(scale, kIqGrids.iq3_xxs[b.q[2 * g]], 4, signs, y + 8 * g);
    decode_signed(scale, kIqGrids.iq3_xxs[b.q[2 * g + 1]], 4, signs >> 4, y + 8 * g + 4);
  }
}

void decode(const BlockIQ3_S& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int g = 0; g < 32; ++g) {
    const int j = g / 4, l = g % 4;
    const float scale = d * static_cast<float>(1 + 2 * ((b.scales[j / 2] >> (4 * (j % 2))) & 15));
    const int first = b.q[2 * g] | ((b.qh[j] >> (2 * l)) & 1) << 8;
    const int second = b.q[2 * g + 1] | ((b.qh[j] >> (2 * l + 1)) & 1) << 8;
    decode_signed(scale, kIqGrids.iq3_s[first], 4, b.signs[g], y + 8 * g);
    decode_signed(scale, kIqGrids.iq3_s[second], 4, b.signs[g] >> 4, y + 8 * g + 4);
  }
}

void decode_iq1_group(float scale, int index, bool negative_delta, float* y) {
  const float delta = negative_delta ? -0.125f : 0.125f;
  for (int e = 0; e < 8; ++e) y[e] = scale * (static_cast<float>(kIqGrids.iq1[index][e]) + delta);
}

void decode(const BlockIQ1_S& b, float* y) {
  const float d = f16_to_f32(b.d);
  for (int g = 0; g < 32; ++g) {
    const int h = b.h[g / 4];
    const int index = b.q[g] | ((h >> (3 * (g % 4))) & 7) << 8;
    decode_iq1_group(d * static_cast<float>(2 * ((h >> 12) & 7) + 1), index, h & 0x8000, y + 8 * g);
  }
}

void decode(const BlockIQ1_M& b, float* y) {
  const float d = f16_to_f32(iq1_m_d(b));
  for (int g = 0; g < 32; ++g) {
    const int j = g / 4, l = g % 4;
    const int t = (b.qh[g / 2] >> (4 * (g % 2))) & 15;
    const int scale = 2 * ((b.scales[j / 2] >> (6 * (j % 2) + 3 * (l / 2))) & 7) + 1;
    decode_iq1_group(d * static_cast<float>(scale), b.q[g] | (t & 7) << 8, t & 8, y + 8 * g);
  }
}

// Types of ik_llama.cpp: `code` gives the code of element i, `scale` the integer of its sub-block of 16.
template <class Block, int kValues, class Code, class Scale>
void decode_iqk(const Block& b, const int8_t (&values)[kValues], int move, Code code, Scale scale, float* y) {
  const float d = f16_to_f32(b.d);
  for (int i = 0; i < b.kElems; ++i) {
    const int value = values[code(i)] + ((b.extra >> (i / 16)) & 1 ? move : 0);
    y[i] = (d * static_cast<float>(scale(i / 16))) * static_cast<float>(value);
  }
}

void decode(const BlockIQ2_K& b, float* y) {
  decode_iqk(
      b, kIq2kValues, kIq2kMove, [&](int i) { return (b.q[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3; },
      [&](int j) { return ((b.scales[j / 2] >> (4 * (j % 2))) & 15) - 8; }, y);
}

void decode(const BlockIQ3_K& b, float* y) {
  decode_iqk(
      b, kIq3kValues, kIq3kMove, [&](int i) { return iq3_k_code(b, i); }, [&](int j) { return iq3_k_scale(b, j); }, y);
}

void decode(const BlockIQ4_K& b, float* y) {
  decode_iqk(
      b, kIq4Values, kIq4kMove, [&](int i) { return split_nibble<16>(b.q + 16 * (i / 32), i % 32); },
      [&](int j) { return iq4_k_scale(b.scales_high, b.scales_low, j); }, y);
}

void decode(const BlockIQ5_K& b, float* y) {
  decode_iqk(
      b, kIq5kValues, kIq5kMove, [&](int i) { return iq5_k_code(b, i); },
      [&](int j) { return iq4_k_scale(b.scales_high, b.scales_low, j); }, y);
}

void decode(const BlockIQ6_K& b, float* y) {
  decode_iqk(
      b, kIq6kValues, kIq6kMove, [&](int i) { return iq6_k_code(b, i); },
      [&](int j) { return static_cast<int>(b.scales[j]); }, y);
}

void decode(const BlockIQ4_KS& b, float d, float* y) {
  for (int i = 0; i < b.kElems; ++i) {
    const int s = b.scales[i / 32];
    const int value = kIq4Values[split_nibble<16>(b.q + 16 * (i / 32), i % 32)] + (s & 1 ? kIq4kMove : 0);
    y[i] = (d * static_cast<float>((s & 254) - 127)) * static_cast<float>(value);
  }
}

// Rows: the copy to a local makes any source alignment valid.

template <class Plain>
void decode_plain(const std::byte* src, float* dst, int64_t elems) {
  for (int64_t i = 0; i < elems; ++i) {
    Plain x;
    std::memcpy(&x, src + i * static_cast<int64_t>(sizeof(Plain)), sizeof(Plain));
    dst[i] = decode(x);
  }
}

template <class Block>
void decode_blocks(const std::byte* src, float* dst, int64_t elems) {
  for (int64_t i = 0; i < elems; i += Block::kElems, src += sizeof(Block)) {
    Block block;
    std::memcpy(&block, src, sizeof(Block));
    decode(block, dst + i);
  }
}

// A float that scales the whole row, then its blocks.
template <class Block>
void decode_scaled_row(const std::byte* src, float* dst, int64_t elems) {
  float d;
  std::memcpy(&d, src, sizeof(d));
  src += sizeof(d);
  for (int64_t i = 0; i < elems; i += Block::kElems, src += sizeof(Block)) {
    Block block;
    std::memcpy(&block, src, sizeof(Block));
    decode(block, d, dst + i);
  }
}

}  // namespace

void dequantize_row(DType type, const std::byte* src, float* dst, int64_t elems) {
  CHECK(elems % info(type).block_elems == 0);
  switch (type) {
    case DType::F32: return decode_plain<float>(src, dst, elems);
    case DType::F16: return decode_plain<F16Bits>(src, dst, elems);
    case DType::BF16: return decode_plain<BF16Bits>(src, dst, elems);
    case DType::F64: return decode_plain<double>(src, dst, elems);
    case DType::I8: return decode_plain<int8_t>(src, dst, elems);
    case DType::I16: return decode_plain<int16_t>(src, dst, elems);
    case DType::I32: return decode_plain<int32_t>(src, dst, elems);
    case DType::I64: return decode_plain<int64_t>(src, dst, elems);
    case DType::Q4_0: return decode_blocks<BlockQ4_0>(src, dst, elems);
    case DType::Q4_1: return decode_blocks<BlockQ4_1>(src, dst, elems);
    case DType::Q5_0: return decode_blocks<BlockQ5_0>(src, dst, elems);
    case DType::Q5_1: return decode_blocks<BlockQ5_1>(src, dst, elems);
    case DType::Q8_0: return decode_blocks<BlockQ8_0>(src, dst, elems);
    case DType::Q2_K: return decode_blocks<BlockQ2_K>(src, dst, elems);
    case DType::Q3_K: return decode_blocks<BlockQ3_K>(src, dst, elems);
    case DType::Q4_K: return decode_blocks<BlockQ4_K>(src, dst, elems);
    case DType::Q5_K: return decode_blocks<BlockQ5_K>(src, dst, elems);
    case DType::Q6_K: return decode_blocks<BlockQ6_K>(src, dst, elems);
    case DType::IQ1_S: return decode_blocks<BlockIQ1_S>(src, dst, elems);
    case DType::IQ1_M: return decode_blocks<BlockIQ1_M>(src, dst, elems);
    case DType::IQ2_XXS: return decode_blocks<BlockIQ2_XXS>(src, dst, elems);
    case DType::IQ2_XS: return decode_blocks<BlockIQ2_XS>(src, dst, elems);
    case DType::IQ2_S: return decode_blocks<BlockIQ2_S>(src, dst, elems);
    case DType::IQ3_XXS: return decode_blocks<BlockIQ3_XXS>(src, dst, elems);
    case DType::IQ3_S: return decode_blocks<BlockIQ3_S>(src, dst, elems);
    case DType::IQ4_NL: return decode_blocks<BlockIQ4_NL>(src, dst, elems);
    case DType::IQ4_XS: return decode_blocks<BlockIQ4_XS>(src, dst, elems);
    case DType::TQ1_0: return decode_blocks<BlockTQ1_0>(src, dst, elems);
    case DType::TQ2_0: return decode_blocks<BlockTQ2_0>(src, dst, elems);
    case DType::MXFP4: return decode_blocks<BlockMXFP4>(src, dst, elems);
    case DType::NVFP4: return decode_blocks<BlockNVFP4>(src, dst, elems);
    case DType::Q1_0: return decode_blocks<BlockQ1_0>(src, dst, elems);
    case DType::Q2_0: return decode_blocks<BlockQ2_0>(src, dst, elems);
    case DType::IQ2_K: return decode_blocks<BlockIQ2_K>(src, dst, elems);
    case DType::IQ3_K: return decode_blocks<BlockIQ3_K>(src, dst, elems);
    case DType::IQ4_K: return decode_blocks<BlockIQ4_K>(src, dst, elems);
    case DType::IQ5_K: return decode_blocks<BlockIQ5_K>(src, dst, elems);
    case DType::IQ6_K: return decode_blocks<BlockIQ6_K>(src, dst, elems);
    case DType::IQ4_KS: return decode_scaled_row<BlockIQ4_KS>(src, dst, elems);
  }
  CHECK(!"a DType outside its table");
}

}  // namespace chimere
