#include "quantizer/encode_tensor.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>

#include "base/check.h"
#include "gguf/value.h"
#include "quantizer/encode.h"
#include "tensor/dequantize.h"
#include "tensor/quantize.h"

namespace chimere::quantizer {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{8} << 20;  // of floats at once
constexpr uint64_t kKeptBytes = uint64_t{64} << 20;  // of source pages, before they are given back
constexpr float kHalfLimit = 65520.0f;               // from here on a half rounds to infinity

}  // namespace

Status read_rows(const TensorView& tensor, uint64_t first, uint64_t n, DType to, float* out) {
  const auto width = static_cast<int64_t>(tensor.ne[0]);
  const float limit = to == DType::F16 ? kHalfLimit : INFINITY;
  for (uint64_t r = 0; r < n; ++r) {
    float* row = out + r * tensor.ne[0];
    dequantize_row(tensor.type, tensor.row(first + r), row, width);
    for (int64_t i = 0; i < width; ++i) {
      if (std::fabs(row[i]) < limit) continue;
      const std::string where = "tensor " + gguf::quoted(tensor.name) + ": row " + std::to_string(first + r) +
                                ", column " + std::to_string(i);
      if (std::isfinite(row[i])) {
        return Error{Code::invalid_argument, where + " holds " + std::to_string(row[i]) + ", too large for F16"};
      }
      return Error{Code::corrupt, where + " holds a value that is not finite: the file is damaged"};
    }
  }
  return Ok{};
}

void encode_any(DType type, int64_t n_rows, int64_t n_cols, const float* rows, const float* weights, std::byte* out) {
  if (can_encode(type)) {
    encode_rows(type, n_rows, n_cols, rows, weights, out);
    return;
  }
  CHECK(can_quantize(type));
  for (int64_t r = 0; r < n_rows; ++r) {
    quantize_row(type, rows + r * n_cols,
                 out + static_cast<uint64_t>(r) * row_bytes(type, static_cast<uint64_t>(n_cols)), n_cols);
  }
}

Status stream_encoded(const TensorView& tensor, DType to, const Statistics* statistics, ThreadPool& pool,
                      const std::function<void()>& read, const gguf::Writer::Sink& sink) {
  const uint64_t width = tensor.ne[0], rows = tensor.rows();
  const uint64_t chunk_rows = std::clamp<uint64_t>(kChunkBytes / 4 / std::max<uint64_t>(width, 1), 1, rows);
  const uint64_t to_row = row_bytes(to, width);
  const ColumnWeights weights(statistics, tensor);
  std::vector<float> values(to == tensor.type ? 0 : chunk_rows * width);
  std::vector<std::byte> encoded(to == tensor.type ? 0 : chunk_rows * to_row);
  uint64_t kept = 0;
  for (uint64_t at = 0; at < rows; at += chunk_rows) {
    const uint64_t n = std::min(chunk_rows, rows - at);
    if (to == tensor.type) {
      TRY(sink({tensor.row(at), n * to_row}));
    } else {
      std::mutex mutex;
      std::optional<Error> error;
      pool.run([&](Team& team) {
        team.parallel_for(static_cast<int64_t>(n), 4, [&](int64_t begin, int64_t end) {
          const auto first = static_cast<uint64_t>(begin);
          float* from = values.data() + first * width;
          if (Status s = read_rows(tensor, at + first, static_cast<uint64_t>(end - begin), to, from); !s) {
            const std::lock_guard lock(mutex);
            error = std::move(s.error());
            return;
          }
          // Rows of different experts have different weights.
          for (auto r = begin; r < end;) {
            const uint64_t expert = (at + static_cast<uint64_t>(r)) / tensor.ne[1];
            const auto last =
                static_cast<int64_t>(std::min<uint64_t>((expert + 1) * tensor.ne[1] - at, static_cast<uint64_t>(end)));
            const auto row = static_cast<uint64_t>(r);
            encode_any(to, last - r, static_cast<int64_t>(width), values.data() + row * width, weights.of(expert),
                       encoded.data() + row * to_row);
            r = last;
          }
        });
      });
      if (error) return std::move(*error);
      TRY(sink(std::span(encoded).first(n * to_row)));
    }
    if ((kept += n * tensor.row_bytes()) > kKeptBytes) {
      read();
      kept = 0;
    }
  }
  read();
  return Ok{};
}

}  // namespace chimere::quantizer
