// random_blocks.cpp  Random codes under a scale that is measured, not tabulated: a sample of blocks is made with scale
// 1 and decoded, and its deviation says which scale yields the one asked for.
#include "tensor/random_blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/check.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"
#include "tensor/quant_blocks.h"

namespace chimere {
namespace {

// Fresh blocks are made up to this size, then reused. Larger than a core's L2 cache, so that a benchmark
// does not see the same lines twice, and made in a few milliseconds.
constexpr int64_t kPoolBytes = 4 << 20;
constexpr int kSampleBlocks = 256;
constexpr float kScaleSpread = 0.2f;

// SplitMix64: passes the usual test batteries, any seed is good, one multiply chain for 8 bytes.
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }

  // Sum of four uniform 16-bit numbers: mean 0, deviation 1, never beyond 3.5. Unlike a true normal number it needs no
  // library function, whose last bit would depend on the machine.
  float normal() {
    const uint64_t r = next();
    const auto sum = static_cast<int>((r & 0xFFFF) + ((r >> 16) & 0xFFFF) + ((r >> 32) & 0xFFFF) + (r >> 48));
    return static_cast<float>(sum - 2 * 0xFFFF) * (1.7320508f / 65536.0f);
  }

  void fill(void* dst, size_t bytes) {
    auto* out = static_cast<std::byte*>(dst);
    for (; bytes > 8; bytes -= 8, out += 8) {
      const uint64_t r = next();
      std::memcpy(out, &r, 8);
    }
    const uint64_t r = next();
    std::memcpy(out, &r, bytes);
  }

 private:
  uint64_t state_;
};

uint16_t finite_half(float value) { return f32_to_f16(std::clamp(value, -65504.0f, 65504.0f)); }

// One set_scale for each way a block carries its scale. Offsets centre the codes on zero.

template <class Block>
void set_scale(Block& b, float scale, Rng&) {
  b.d = finite_half(scale);
}

template <class Block>
void set_scale_and_offset(Block& b, float scale, float middle) {
  b.d = finite_half(scale);
  if constexpr (requires { b.m; }) {
    b.m = finite_half(-scale * middle);
  } else {
    b.dmin = finite_half(scale * middle);
  }
}

void set_scale(BlockQ4_1& b, float scale, Rng&) { set_scale_and_offset(b, scale, 7.5f); }
void set_scale(BlockQ5_1& b, float scale, Rng&) { set_scale_and_offset(b, scale, 15.5f); }
void set_scale(BlockQ2_K& b, float scale, Rng&) { set_scale_and_offset(b, scale, 1.5f); }
void set_scale(BlockQ4_K& b, float scale, Rng&) { set_scale_and_offset(b, scale, 7.5f); }
void set_scale(BlockQ5_K& b, float scale, Rng&) { set_scale_and_offset(b, scale, 15.5f); }

void set_scale(BlockIQ1_M& b, float scale, Rng&) {
  const uint16_t d = finite_half(scale);
  for (int k = 0; k < 4; ++k) {
    b.scales[k] = static_cast<uint16_t>((b.scales[k] & 0x0FFF) | ((d >> (4 * k)) & 15) << 12);
  }
}

// Only powers of two can be stored: draws one of the two around `scale` so that the mean square is right.
void set_scale(BlockMXFP4& b, float scale, Rng& rng) {
  int exponent;
  const float mantissa = 2.0f * std::frexp(scale, &exponent);  // scale = mantissa * 2^(exponent - 1), 1 <= mantissa < 2
  const bool up = rng.uniform() < (mantissa * mantissa - 1.0f) / 3.0f;
  b.e = static_cast<uint8_t>(std::clamp(128 + exponent - 1 + (up ? 1 : 0), 1, 254));
}

// The nearest code of nvfp4_scale that is neither 0 nor NaN.
uint8_t nvfp4_code(float scale) {
  const float value = std::min(2.0f * scale, 448.0f);
  if (value < 0x1p-6f) return static_cast<uint8_t>(std::max(1, static_cast<int>(value * 512.0f + 0.5f)));
  const uint32_t rounded = std::bit_cast<uint32_t>(value) + (1u << 19);  // keep 3 bits of mantissa
  return static_cast<uint8_t>(std::min((rounded >> 20) - (120u << 3), 0x7Eu));
}

void set_scale(BlockNVFP4& b, float scale, Rng& rng) {
  for (uint8_t& s : b.scales) s = nvfp4_code(scale * (1.0f + kScaleSpread * rng.normal()));
}

template <class Block>
void make_blocks(std::byte* dst, int64_t n, float scale, Rng& rng) {
  for (int64_t i = 0; i < n; ++i, dst += sizeof(Block)) {
    Block block;
    rng.fill(&block, sizeof(Block));
    set_scale(block, scale * (1.0f + kScaleSpread * rng.normal()), rng);
    std::memcpy(dst, &block, sizeof(Block));
  }
}

double standard_deviation(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  const double mean = sum / static_cast<double>(values.size());
  return std::sqrt(squares / static_cast<double>(values.size()) - mean * mean);
}

template <class Block>
void make_scaled(DType type, std::byte* dst, int64_t n, Rng& rng, float stddev) {
  std::vector<std::byte> sample(kSampleBlocks * sizeof(Block));
  std::vector<float> values(kSampleBlocks * static_cast<size_t>(Block::kElems));
  Rng sample_rng(0);
  make_blocks<Block>(sample.data(), kSampleBlocks, 1.0f, sample_rng);
  dequantize_row(type, sample.data(), values.data(), static_cast<int64_t>(values.size()));
  make_blocks<Block>(dst, n, static_cast<float>(stddev / standard_deviation(values)), rng);
}

// The scale is that of the row: random bytes behind a float.
void make_scaled_row(DType type, std::byte* dst, int64_t n, Rng& rng, float stddev) {
  const DTypeInfo& t = info(type);
  std::vector<std::byte> sample(row_bytes(type, static_cast<uint64_t>(kSampleBlocks * t.block_elems)));
  std::vector<float> values(kSampleBlocks * static_cast<size_t>(t.block_elems));
  const float one = 1.0f;
  std::memcpy(sample.data(), &one, sizeof(one));
  Rng sample_rng(0);
  sample_rng.fill(sample.data() + sizeof(one), sample.size() - sizeof(one));
  dequantize_row(type, sample.data(), values.data(), static_cast<int64_t>(values.size()));
  const float scale = static_cast<float>(stddev / standard_deviation(values));
  std::memcpy(dst, &scale, sizeof(scale));
  rng.fill(dst + sizeof(scale), static_cast<size_t>(n * t.block_bytes));
}

template <class Element, class Convert>
void make_plain(std::byte* dst, int64_t n, Rng& rng, float stddev, Convert convert) {
  for (int64_t i = 0; i < n; ++i, dst += sizeof(Element)) {
    const Element x = convert(stddev * rng.normal());
    std::memcpy(dst, &x, sizeof(Element));
  }
}

template <class Integer>
void make_integers(std::byte* dst, int64_t n, Rng& rng, float stddev) {
  // 64-bit values stop at 2^62: the largest float below the type's limit is not needed exactly.
  static constexpr double kLimit =
      sizeof(Integer) == 8 ? 0x1p62 : static_cast<double>(std::numeric_limits<Integer>::max());
  make_plain<Integer>(dst, n, rng, stddev, [](float x) {
    return static_cast<Integer>(std::clamp(std::nearbyint(static_cast<double>(x)), -kLimit, kLimit));
  });
}

void make_fresh(DType type, std::byte* dst, int64_t n, Rng& rng, float stddev) {
  switch (type) {
    case DType::F32: return make_plain<float>(dst, n, rng, stddev, [](float x) { return x; });
    case DType::F64: return make_plain<double>(dst, n, rng, stddev, [](float x) { return static_cast<double>(x); });
    case DType::F16: return make_plain<uint16_t>(dst, n, rng, stddev, finite_half);
    case DType::BF16: return make_plain<uint16_t>(dst, n, rng, stddev, f32_to_bf16);
    case DType::I8: return make_integers<int8_t>(dst, n, rng, stddev);
    case DType::I16: return make_integers<int16_t>(dst, n, rng, stddev);
    case DType::I32: return make_integers<int32_t>(dst, n, rng, stddev);
    case DType::I64: return make_integers<int64_t>(dst, n, rng, stddev);
    case DType::Q4_0: return make_scaled<BlockQ4_0>(type, dst, n, rng, stddev);
    case DType::Q4_1: return make_scaled<BlockQ4_1>(type, dst, n, rng, stddev);
    case DType::Q5_0: return make_scaled<BlockQ5_0>(type, dst, n, rng, stddev);
    case DType::Q5_1: return make_scaled<BlockQ5_1>(type, dst, n, rng, stddev);
    case DType::Q8_0: return make_scaled<BlockQ8_0>(type, dst, n, rng, stddev);
    case DType::Q2_K: return make_scaled<BlockQ2_K>(type, dst, n, rng, stddev);
    case DType::Q3_K: return make_scaled<BlockQ3_K>(type, dst, n, rng, stddev);
    case DType::Q4_K: return make_scaled<BlockQ4_K>(type, dst, n, rng, stddev);
    case DType::Q5_K: return make_scaled<BlockQ5_K>(type, dst, n, rng, stddev);
    case DType::Q6_K: return make_scaled<BlockQ6_K>(type, dst, n, rng, stddev);
    case DType::IQ1_S: return make_scaled<BlockIQ1_S>(type, dst, n, rng, stddev);
    case DType::IQ1_M: return make_scaled<BlockIQ1_M>(type, dst, n, rng, stddev);
    case DType::IQ2_XXS: return make_scaled<BlockIQ2_XXS>(type, dst, n, rng, stddev);
    case DType::IQ2_XS: return make_scaled<BlockIQ2_XS>(type, dst, n, rng, stddev);
    case DType::IQ2_S: return make_scaled<BlockIQ2_S>(type, dst, n, rng, stddev);
    case DType::IQ3_XXS: return make_scaled<BlockIQ3_XXS>(type, dst, n, rng, stddev);
    case DType::IQ3_S: return make_scaled<BlockIQ3_S>(type, dst, n, rng, stddev);
    case DType::IQ4_NL: return make_scaled<BlockIQ4_NL>(type, dst, n, rng, stddev);
    case DType::IQ4_XS: return make_scaled<BlockIQ4_XS>(type, dst, n, rng, stddev);
    case DType::TQ1_0: return make_scaled<BlockTQ1_0>(type, dst, n, rng, stddev);
    case DType::TQ2_0: return make_scaled<BlockTQ2_0>(type, dst, n, rng, stddev);
    case DType::MXFP4: return make_scaled<BlockMXFP4>(type, dst, n, rng, stddev);
    case DType::NVFP4: return make_scaled<BlockNVFP4>(type, dst, n, rng, stddev);
    case DType::Q1_0: return make_scaled<BlockQ1_0>(type, dst, n, rng, stddev);
    case DType::Q2_0: return make_scaled<BlockQ2_0>(type, dst, n, rng, stddev);
    case DType::IQ2_K: return make_scaled<BlockIQ2_K>(type, dst, n, rng, stddev);
    case DType::IQ3_K: return make_scaled<BlockIQ3_K>(type, dst, n, rng, stddev);
    case DType::IQ4_K: return make_scaled<BlockIQ4_K>(type, dst, n, rng, stddev);
    case DType::IQ5_K: return make_scaled<BlockIQ5_K>(type, dst, n, rng, stddev);
    case DType::IQ6_K: return make_scaled<BlockIQ6_K>(type, dst, n, rng, stddev);
    case DType::IQ4_KS: return make_scaled_row(type, dst, n, rng, stddev);
  }
  CHECK(!"a DType outside its table");
}

}  // namespace

void random_blocks(DType type, std::byte* dst, int64_t n_blocks, uint64_t seed, float stddev) {
  CHECK(stddev > 0.0f && std::isfinite(stddev));
  const int64_t block_bytes = info(type).block_bytes;
  const int64_t pool = info(type).row_prefix_bytes ? n_blocks : std::min(n_blocks, kPoolBytes / block_bytes);
  Rng rng(seed);
  make_fresh(type, dst, pool, rng, stddev);
  for (int64_t done = pool; done < n_blocks;) {
    const auto start = static_cast<int64_t>(rng.next() % static_cast<uint64_t>(pool / 2));
    const int64_t take = std::min(n_blocks - done, pool - start);
    std::memcpy(dst + done * block_bytes, dst + start * block_bytes, static_cast<size_t>(take * block_bytes));
    done += take;
  }
}

void random_rows(DType type, std::byte* dst, int64_t n_rows, int64_t n_cols, uint64_t seed, float stddev) {
  const int64_t blocks = n_cols / info(type).block_elems;
  if (info(type).row_prefix_bytes == 0) return random_blocks(type, dst, n_rows * blocks, seed, stddev);
  const auto bytes = static_cast<int64_t>(row_bytes(type, static_cast<uint64_t>(n_cols)));
  for (int64_t r = 0; r < n_rows; ++r) {
    random_blocks(type, dst + r * bytes, blocks, seed + 0x10001u * static_cast<uint64_t>(r), stddev);
  }
}

}  // namespace chimere
