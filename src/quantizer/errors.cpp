#include "quantizer/errors.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>

#include "quantizer/encode_tensor.h"
#include "tensor/dequantize.h"

namespace chimere::quantizer {
namespace {

struct RowError {
  double lost = 0, energy = 0;
};

// Of a sample of rows, the ratio of sums, and how far it may be from that of all rows.
TypeError ratio_of(DType type, const std::vector<RowError>& rows, uint64_t n_all) {
  double lost = 0, energy = 0;
  for (const RowError& r : rows) {
    lost += r.lost;
    energy += r.energy;
  }
  TypeError e{type, energy > 0 ? lost / energy : 0, 0};
  const auto n = static_cast<double>(rows.size());
  if (rows.size() >= n_all || rows.size() < 2 || energy <= 0) return e;
  double squares = 0;
  for (const RowError& r : rows) {
    const double d = r.lost - e.relative * r.energy;
    squares += d * d;
  }
  const double seen = n / static_cast<double>(n_all);
  e.half_width = 1.96 * std::sqrt((1 - seen) * squares / (n - 1) * n) / energy;
  return e;
}

}  // namespace

Result<std::vector<TypeError>> measure_errors(const TensorView& tensor, const std::vector<DType>& types,
                                              const Statistics* statistics, const ErrorSampling& sampling,
                                              ThreadPool& pool) {
  const uint64_t width = tensor.ne[0], n_all = tensor.rows();
  const uint64_t n = std::min(n_all, std::max(sampling.min_rows, sampling.max_elems / width));
  const ColumnWeights weights(statistics, tensor);
  std::vector<std::vector<RowError>> rows(types.size(), std::vector<RowError>(n));
  std::vector<char> impossible(types.size(), 0);
  std::mutex mutex;
  std::optional<Error> error;
  pool.run([&](Team& team) {
    std::vector<float> values(width), back(width);
    std::vector<std::byte> encoded(row_bytes(DType::F32, width) + 64);
    team.parallel_for(static_cast<int64_t>(n), 2, [&](int64_t begin, int64_t end) {
      for (auto s = static_cast<uint64_t>(begin); s < static_cast<uint64_t>(end); ++s) {
        const uint64_t r = n == n_all ? s : (2 * s + 1) * n_all / (2 * n);  // the middle of each of n equal parts
        const uint64_t expert = r / tensor.ne[1];
        const float* w = weights.of(expert);
        if (Status read = read_rows(tensor, r, 1, DType::F32, values.data()); !read) {
          const std::lock_guard lock(mutex);
          error = std::move(read.error());
          return;
        }
        for (size_t t = 0; t < types.size(); ++t) {
          RowError& e = rows[t][s];
          const bool fits = types[t] != DType::F16 ||
                            std::all_of(values.begin(), values.end(), [](float v) { return std::fabs(v) < 65520.0f; });
          if (!fits) {
            const std::lock_guard lock(mutex);
            impossible[t] = 1;
            continue;
          }
          const auto cols = static_cast<int64_t>(width);
          if (types[t] == tensor.type) {
            back = values;
          } else {
            encode_any(types[t], 1, cols, values.data(), w, encoded.data());
            dequantize_row(types[t], encoded.data(), back.data(), cols);
          }
          for (uint64_t i = 0; i < width; ++i) {
            const double d = static_cast<double>(values[i]) - back[i], by = w ? w[i] : 1.0;
            e.lost += by * d * d;
            e.energy += by * static_cast<double>(values[i]) * values[i];
          }
          // An expert that was never used still counts a little: another text may use it.
          const double share = weights.share(expert) * static_cast<double>(tensor.ne[2]) + 0.01;
          e.lost *= share;
          e.energy *= share;
        }
      }
    });
  });
  if (error) return std::move(*error);
  std::vector<TypeError> errors;
  for (size_t t = 0; t < types.size(); ++t) {
    errors.push_back(ratio_of(types[t], rows[t], n_all));
    if (impossible[t]) errors.back() = {types[t], INFINITY, 0};
  }
  return Result<std::vector<TypeError>>{std::move(errors)};
}

}  // namespace chimere::quantizer
