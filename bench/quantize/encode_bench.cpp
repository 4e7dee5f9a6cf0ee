// encode_bench.cpp  What each type loses and what encoding costs: relative squared errors and megabytes a second.
//
//   encode_bench [MODEL.gguf [TENSOR...]]
//
// Without a file: gaussian values and heavy tails (Student's t with 4 degrees of freedom). With one: its tensors of
// that name, or all matrices, decoded to floats; rows that are no whole number of blocks are joined. "Weighted" errors
// are under weights of columns that spread like those of calibration (log-normal), which the encoder knows. Megabytes
// are those of the floats, seconds those of the thread, so that a busy machine does not spoil them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/gguf.h"
#include "quantizer/encode.h"
#include "tensor/dequantize.h"

using namespace chimere;

namespace {

constexpr int64_t kLargest = int64_t{1} << 18;  // values of a tensor that are measured

struct Matrix {
  std::string name;
  int64_t n_cols;
  std::vector<float> values;

  int64_t n_rows() const { return static_cast<int64_t>(values.size()) / n_cols; }
};

double seconds_of_thread() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Distribution>
Matrix drawn(std::string name, Distribution distribution) {
  std::mt19937_64 rng(7);
  Matrix out{std::move(name), 1024, std::vector<float>(64 * 1024)};
  for (float& v : out.values) v = 0.03f * distribution(rng);
  return out;
}

std::vector<Matrix> matrices_of(const gguf::File& file, const std::vector<std::string_view>& names) {
  std::vector<Matrix> out;
  for (const TensorView& tensor : file.tensors()) {
    const bool wanted = std::ranges::find(names, tensor.name) != names.end();
    if (!(wanted || (names.empty() && tensor.rows() > 1 && tensor.elems() >= 1024))) continue;
    Matrix m{std::string(tensor.name), static_cast<int64_t>(tensor.ne[0]), {}};
    const int64_t rows = std::min(static_cast<int64_t>(tensor.rows()), std::max<int64_t>(1, kLargest / m.n_cols));
    m.values.resize(static_cast<size_t>(rows * m.n_cols));
    for (int64_t r = 0; r < rows; ++r) {
      dequantize_row(tensor.type, tensor.row(static_cast<uint64_t>(r)), m.values.data() + r * m.n_cols, m.n_cols);
    }
    if (m.n_cols % 256) {
      m.n_cols = 256;
      m.values.resize(m.values.size() / 256 * 256);
    }
    out.push_back(std::move(m));
  }
  return out;
}

struct Outcome {
  double error, megabytes_per_second;
};

Outcome measured(DType type, const Matrix& m, const float* weights) {
  const size_t bytes = row_bytes(type, static_cast<uint64_t>(m.n_cols));
  std::vector<std::byte> blocks(bytes * static_cast<size_t>(m.n_rows()));
  const double start = seconds_of_thread();
  quantizer::encode_rows(type, m.n_rows(), m.n_cols, m.values.data(), weights, blocks.data());
  const double seconds = seconds_of_thread() - start;
  std::vector<float> y(m.values.size());
  dequantize_row(type, blocks.data(), y.data(), static_cast<int64_t>(y.size()));
  double missed = 0.0, energy = 0.0;
  for (size_t i = 0; i < y.size(); ++i) {
    const double w = weights ? static_cast<double>(weights[i % static_cast<size_t>(m.n_cols)]) : 1.0;
    const double x = static_cast<double>(m.values[i]), miss = x - static_cast<double>(y[i]);
    missed += w * miss * miss;
    energy += w * x * x;
  }
  return {missed / energy, 4e-6 * static_cast<double>(y.size()) / seconds};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Matrix> matrices;
  if (argc > 1) {
    Result<gguf::File> file = gguf::File::open(argv[1]);
    if (!file) {
      std::fprintf(stderr, "%s\n", file.error().message.c_str());
      return 1;
    }
    matrices = matrices_of(*file, {argv + 2, argv + argc});
  } else {
    matrices.push_back(drawn("gaussian", std::normal_distribution<float>()));
    matrices.push_back(drawn("heavy tails", std::student_t_distribution<float>(4.0f)));
  }
  std::printf("%-8s %-6s %-32s %10s %7s %10s %7s\n", "type", "bits", "tensor", "error", "MB/s", "weighted", "MB/s");
  for (const DType type : quantizer::encodable_types()) {
    for (const Matrix& m : matrices) {
      std::mt19937_64 rng(11);
      std::lognormal_distribution<float> lognormal(0.0f, 1.2f);
      std::vector<float> weights(static_cast<size_t>(m.n_cols));
      for (float& w : weights) w = lognormal(rng);
      const Outcome plain = measured(type, m, nullptr), weighted = measured(type, m, weights.data());
      std::printf("%-8s %-6.4g %-32s %10.4e %7.1f %10.4e %7.1f\n", std::string(name(type)).c_str(),
                  info(type).bits_per_weight(), m.name.c_str(), plain.error, plain.megabytes_per_second, weighted.error,
                  weighted.megabytes_per_second);
    }
  }
  return 0;
}
