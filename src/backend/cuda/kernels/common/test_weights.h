// test_weights.h  Random matrices for kernel tests: as the file has them, and packed.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "backend/cuda/weights/pack.h"
#include "tensor/random_blocks.h"

namespace chimere::cuda {

// A test names a matrix by its type in device memory: that of the file, or kIq3Wide.
inline DType file_type(DType type) { return type == kIq3Wide ? DType::IQ3_S : type; }
inline std::string type_name(DType type) { return type == kIq3Wide ? "IQ3_S_wide" : std::string(name(type)); }

struct TestWeight {
  std::vector<std::byte> file;
  std::vector<uint4> packed;  // aligned as kernels want it
  TensorView view;
  Weight weight;

  TestWeight(DType type, uint64_t width, uint64_t rows, uint64_t experts = 1, uint64_t seed = 1) {
    const PackForm form = type == kIq3Wide ? PackForm::wide : PackForm::compact;
    view.type = file_type(type);
    view.ne = {width, rows, experts, 1};
    file.resize(view.size_bytes());
    random_rows(view.type, file.data(), static_cast<int64_t>(view.rows()), static_cast<int64_t>(width), seed,
                1.0f / std::sqrt(static_cast<float>(width)));
    view.data = file.data();
    packed.resize(packed_bytes(view, form) / 16);
    pack_rows(view, 0, view.rows(), reinterpret_cast<std::byte*>(packed.data()), form);
    weight = packed_weight(view, packed.data(), &kIqGrids, form);
  }
};

inline std::vector<float> random_floats(size_t n, uint64_t seed, float stddev = 1.0f) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<float> normal(0.0f, stddev);
  std::vector<float> x(n);
  for (float& v : x) v = normal(rng);
  return x;
}

// What a row becomes when every 32 elements share a scale and are rounded to signed bytes.
inline void round_to_bytes(float* x, size_t width) {
  for (size_t i = 0; i < width; i += 32) {
    float most = 0;
    for (size_t e = 0; e < 32; ++e) most = std::max(most, std::fabs(x[i + e]));
    const float inverse = most > 0 ? 127.0f / most : 0.0f;
    for (size_t e = 0; e < 32; ++e) x[i + e] = std::nearbyint(x[i + e] * inverse) * (most / 127.0f);
  }
}

}  // namespace chimere::cuda
