#include "quantizer/encode.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "quantizer/encode_blocks.h"
#include "tensor/half.h"
#include "tensor/quantize.h"

namespace chimere::quantizer {
namespace {

// A column that calibration never excited still has to be stored: the least weight, as a share of the row's mean.
constexpr float kLeastWeight = 1e-4f;

bool all_alike(const float* weights, int64_t n) {
  return !weights || std::all_of(weights, weights + n, [&](float w) { return w == weights[0]; });
}

// With a mean of one, none zero.
std::vector<float> usable_weights(const float* weights, int64_t n) {
  std::vector<float> out(static_cast<size_t>(n), 1.0f);
  if (!weights) return out;
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(weights[i]);
  const double to_mean_one = static_cast<double>(n) / sum;
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = std::max(kLeastWeight, static_cast<float>(static_cast<double>(weights[i]) * to_mean_one));
  }
  return out;
}

// Below this even the smallest half makes each value zero: no type has a step under 2^-3 of its scale.
constexpr float kVanishing = 0x1p-29f;

// A power of two, 2^-126 to 2^126.
float power_of_two(int exponent) { return std::bit_cast<float>(static_cast<uint32_t>(127 + exponent) << 23); }

template <class Block>
void encode_one(BlockEncoder<Block> encode, const float* x, const float* w, std::byte* out) {
  // Of finite floats without their signs the larger has the larger bits; maxima of integers may be taken in any order.
  int32_t bits = 0;
  for (int i = 0; i < Block::kElems; ++i) bits = std::max(bits, std::bit_cast<int32_t>(x[i]) & 0x7FFFFFFF);
  const float largest = std::bit_cast<float>(bits);
  Block block{};  // decodes to zeros
  if (largest >= kVanishing) {
    // The exponent of a normal float; 2^-126 is as small as an exact inverse allows.
    const int exponent = std::min((bits >> 23) - 127, 126);
    const float from_file = power_of_two(-exponent);
    alignas(64) float scaled[Block::kElems];
    for (int i = 0; i < Block::kElems; ++i) scaled[i] = x[i] * from_file;
    encode(BlockInput{scaled, w, power_of_two(exponent), from_file}, block);
  }
  std::memcpy(out, &block, sizeof block);
}

template <class Block>
void encode_all(int64_t n_rows, int64_t n_cols, const float* rows, const float* weights, std::byte* out,
                BlockEncoder<Block> encode) {
  const std::vector<float> w = usable_weights(weights, n_cols);
  for (int64_t row = 0; row < n_rows; ++row, rows += n_cols) {
    for (int64_t i = 0; i < n_cols; i += Block::kElems, out += sizeof(Block)) {
      encode_one<Block>(encode, rows + i, w.data() + i, out);
    }
  }
}

// Eight blocks at a time, across the ends of rows; behind the last one it is repeated.
template <class Block, class Encode>
void encode_groups(int64_t n_blocks, const float* values, std::byte* out, Encode encode) {
  for (int64_t at = 0; at < n_blocks; at += kGroup) {
    const auto count = std::min<int64_t>(kGroup, n_blocks - at);
    int64_t block[kGroup];
    const float* x[kGroup];
    for (int64_t b = 0; b < kGroup; ++b) {
      block[b] = at + std::min(b, count - 1);
      x[b] = values + Block::kElems * block[b];
    }
    Block blocks[kGroup];
    encode(x, block, blocks);
    std::memcpy(out + sizeof(Block) * static_cast<size_t>(at), blocks, sizeof(Block) * static_cast<size_t>(count));
  }
}

template <class Block>
void encode_all(int64_t n_rows, int64_t n_cols, const float* rows, const float* weights, std::byte* out,
                GroupEncoder<Block> encode) {
  const int64_t row_blocks = n_cols / Block::kElems;
  const std::vector<float> usable = usable_weights(weights, n_cols);
  encode_groups<Block>(n_rows * row_blocks, rows, out, [&](const float* const* x, const int64_t* block, Block* blocks) {
    const float* w[kGroup];
    for (int b = 0; b < kGroup; ++b) w[b] = usable.data() + Block::kElems * (block[b] % row_blocks);
    encode(x, weights ? w : nullptr, blocks);
  });
}

template <class Block>
void encode_all(int64_t n_rows, int64_t n_cols, const float* rows, const float* weights, std::byte* out,
                BlockEncoder<Block> encode, EvenGroupEncoder<Block> encode_even) {
  if (weights) return encode_all<Block>(n_rows, n_cols, rows, weights, out, encode);
  encode_groups<Block>(n_rows * (n_cols / Block::kElems), rows, out,
                       [&](const float* const* x, const int64_t*, Block* blocks) { encode_even(x, blocks); });
}

// Rounds to halves of either kind; what would become infinite becomes the largest.
void encode_floats(DType type, float largest, int64_t n, const float* values, std::byte* out) {
  constexpr int64_t kChunk = 256;
  float cut[kChunk];
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = std::min(kChunk, n - i);
    for (int64_t j = 0; j < count; ++j) cut[j] = std::clamp(values[i + j], -largest, largest);
    quantize_row(type, cut, out + 2 * i, count);
  }
}

constexpr DType kEncodable[] = {
    DType::IQ1_S,  DType::TQ1_0,   DType::IQ1_M, DType::IQ2_XXS, DType::TQ2_0,  DType::IQ2_XS, DType::IQ2_S,
    DType::Q2_K,   DType::IQ3_XXS, DType::IQ3_S, DType::Q3_K,    DType::IQ4_XS, DType::MXFP4,  DType::Q4_0,
    DType::IQ4_NL, DType::Q4_K,    DType::Q4_1,  DType::Q5_0,    DType::Q5_K,   DType::Q5_1,   DType::Q6_K,
    DType::Q8_0,   DType::F16,     DType::BF16,  DType::F32,
};

}  // namespace

StoredHalf store_half(const BlockInput& in, float value) {
  const uint16_t bits = f32_to_f16(std::clamp(value * in.to_file, -65504.0f, 65504.0f));
  return {bits, f16_to_f32(bits) * in.from_file};
}

const LevelEncoders& level_encoders() {
#if defined(__x86_64__)
  // All that isa/encode_avx2.cpp is compiled with; F16C has no name here, and every machine with AVX2 has it.
  static const bool kHasAvx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (kHasAvx2) return kEncodersAvx2;
#endif
  return kEncodersAnyMachine;
}

std::span<const DType> encodable_types() { return kEncodable; }

bool can_encode(DType type) { return std::ranges::find(kEncodable, type) != std::end(kEncodable); }

void encode_rows(DType type, int64_t n_rows, int64_t n_cols, const float* rows, const float* weights, std::byte* out) {
  CHECK(n_cols % info(type).block_elems == 0);
  if (all_alike(weights, n_cols)) weights = nullptr;
  const LevelEncoders& level = level_encoders();
  switch (type) {
    case DType::F32: return quantize_row(type, rows, out, n_rows * n_cols);
    case DType::F16: return encode_floats(type, 65504.0f, n_rows * n_cols, rows, out);
    case DType::BF16: return encode_floats(type, 0x1.FEp127f, n_rows * n_cols, rows, out);
    case DType::Q4_0: return encode_all<BlockQ4_0>(n_rows, n_cols, rows, weights, out, level.q4_0);
    case DType::Q4_1: return encode_all<BlockQ4_1>(n_rows, n_cols, rows, weights, out, level.q4_1, level.even_q4_1);
    case DType::Q5_0: return encode_all<BlockQ5_0>(n_rows, n_cols, rows, weights, out, level.q5_0);
    case DType::Q5_1: return encode_all<BlockQ5_1>(n_rows, n_cols, rows, weights, out, level.q5_1, level.even_q5_1);
    case DType::Q8_0: return encode_all<BlockQ8_0>(n_rows, n_cols, rows, weights, out, level.q8_0);
    case DType::Q2_K: return encode_all<BlockQ2_K>(n_rows, n_cols, rows, weights, out, level.q2_k);
    case DType::Q3_K: return encode_all<BlockQ3_K>(n_rows, n_cols, rows, weights, out, level.q3_k);
    case DType::Q4_K: return encode_all<BlockQ4_K>(n_rows, n_cols, rows, weights, out, level.q4_k);
    case DType::Q5_K: return encode_all<BlockQ5_K>(n_rows, n_cols, rows, weights, out, level.q5_k);
    case DType::Q6_K: return encode_all<BlockQ6_K>(n_rows, n_cols, rows, weights, out, level.q6_k);
    case DType::IQ4_NL: return encode_all<BlockIQ4_NL>(n_rows, n_cols, rows, weights, out, level.iq4_nl);
    case DType::MXFP4: return encode_all<BlockMXFP4>(n_rows, n_cols, rows, weights, out, level.mxfp4);
    case DType::TQ1_0: return encode_all<BlockTQ1_0>(n_rows, n_cols, rows, weights, out, level.tq1_0);
    case DType::TQ2_0: return encode_all<BlockTQ2_0>(n_rows, n_cols, rows, weights, out, level.tq2_0);
    case DType::IQ1_S: return encode_all<BlockIQ1_S>(n_rows, n_cols, rows, weights, out, level.iq1_s);
    case DType::IQ1_M: return encode_all<BlockIQ1_M>(n_rows, n_cols, rows, weights, out, level.iq1_m);
    case DType::IQ2_XXS: return encode_all<BlockIQ2_XXS>(n_rows, n_cols, rows, weights, out, level.iq2_xxs);
    case DType::IQ2_XS: return encode_all<BlockIQ2_XS>(n_rows, n_cols, rows, weights, out, level.iq2_xs);
    case DType::IQ2_S: return encode_all<BlockIQ2_S>(n_rows, n_cols, rows, weights, out, level.iq2_s);
    case DType::IQ3_XXS: return encode_all<BlockIQ3_XXS>(n_rows, n_cols, rows, weights, out, level.iq3_xxs);
    case DType::IQ3_S: return encode_all<BlockIQ3_S>(n_rows, n_cols, rows, weights, out, level.iq3_s);
    case DType::IQ4_XS: return encode_all<BlockIQ4_XS>(n_rows, n_cols, rows, weights, out, level.iq4_xs);
    default: CHECK(!"a type that encode_rows cannot write");
  }
}

}  // namespace chimere::quantizer
