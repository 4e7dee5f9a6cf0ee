#include "tensor/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tensor/half.h"
#include "tensor/quant_blocks.h"

namespace chimere {
namespace {

// Round to nearest even for |x| < 2^22, without a library call: adding 1.5 * 2^23 leaves the integer in the mantissa.
int round_to_int(float x) {
  return static_cast<int>(std::bit_cast<uint32_t>(x + 0x1.8p23f)) - static_cast<int>(0x4B400000u);
}

// The largest half stands in for what is larger: an outlier is then cut off instead of turning its block into NaN.
uint16_t scale_bits(float d) { return f32_to_f16(std::clamp(d, -65504.0f, 65504.0f)); }

// 0 where d is: all elements are zero, or too small for any half. The inverse of the smallest half is still a float.
float inverse(uint16_t d) {
  const float value = f16_to_f32(d);
  return value == 0.0f ? 0.0f : 1.0f / value;
}

float largest_magnitude(const float* x, int n) {
  float largest = 0.0f;
  for (int i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
  }
  return largest;
}

void encode(const float* x, BlockQ8_0& b) {
  b.d = scale_bits(std::fabs(largest_magnitude(x, b.kElems)) / 127.0f);
  const float inv = inverse(b.d);
  // The clamp matters for tiny blocks, where rounding d to a denormal half moves it by up to half its value.
  for (int i = 0; i < b.kElems; ++i) {
    b.q[i] = static_cast<int8_t>(round_to_int(std::clamp(x[i] * inv, -127.0f, 127.0f)));
  }
}

void encode(const float* x, BlockQ4_0& b) {
  b.d = scale_bits(largest_magnitude(x, b.kElems) / -8.0f);
  const float inv = inverse(b.d);
  const auto code = [&](int i) { return round_to_int(std::clamp(x[i] * inv, -8.0f, 7.0f)) + 8; };
  for (int i = 0; i < 16; ++i) b.q[i] = static_cast<uint8_t>(code(i) | code(i + 16) << 4);
}

template <class Block>
void encode_blocks(const float* src, std::byte* dst, int64_t elems) {
  for (int64_t i = 0; i < elems; i += Block::kElems, dst += sizeof(Block)) {
    Block block;
    encode(src + i, block);
    std::memcpy(dst, &block, sizeof(Block));
  }
}

template <class Encode>
void encode_halves(const float* src, std::byte* dst, int64_t elems, Encode encode_one) {
  for (int64_t i = 0; i < elems; ++i) {
    const uint16_t bits = encode_one(src[i]);
    std::memcpy(dst + 2 * i, &bits, 2);
  }
}

}  // namespace

bool can_quantize(DType type) {
  return type == DType::F32 || type == DType::F16 || type == DType::BF16 || type == DType::Q8_0 || type == DType::Q4_0;
}

void quantize_row(DType type, const float* src, std::byte* dst, int64_t elems) {
  CHECK(elems % info(type).block_elems == 0);
  switch (type) {
    case DType::F32: std::memcpy(dst, src, static_cast<size_t>(elems) * sizeof(float)); return;
    case DType::F16: return encode_halves(src, dst, elems, [](float x) { return f32_to_f16(x); });
    case DType::BF16: return encode_halves(src, dst, elems, [](float x) { return f32_to_bf16(x); });
    case DType::Q8_0: return encode_blocks<BlockQ8_0>(src, dst, elems);
    case DType::Q4_0: return encode_blocks<BlockQ4_0>(src, dst, elems);
    default: CHECK(!"a type that quantize_row cannot encode");
  }
}

}  // namespace chimere
