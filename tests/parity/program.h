// program.h  Small programs with random weights.
#pragma once

#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "backend/ops.h"
#include "tensor/dequantize.h"
#include "tensor/random_blocks.h"

namespace chimere::parity {

// A Program and the memory of its weights, which outlives every executable made from it. The same calls make the same
// weights.
class ProgramForTest {
 public:
  Program program;

  explicit ProgramForTest(int n_vocab) { program.n_vocab = n_vocab; }

  BufferId buffer(int width) {
    program.buffers.push_back({"buffer", width});
    return static_cast<BufferId>(program.buffers.size()) - 1;
  }
  MatrixId matrix(DType type, int64_t in, int64_t out, int64_t n_experts = 1, float stddev = 0.05f) {
    const auto n_rows = static_cast<size_t>(out * n_experts);
    std::vector<std::byte>& bytes = storage_.emplace_back(row_bytes(type, static_cast<uint64_t>(in)) * n_rows);
    random_rows(type, bytes.data(), out * n_experts, in, ++seed_, stddev);
    return view(type, in, out, n_experts, bytes.data());
  }
  // A float32 matrix of these values, [out][in].
  MatrixId matrix_of(int64_t in, int64_t out, const std::vector<float>& values) {
    std::vector<std::byte>& bytes = storage_.emplace_back(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return view(DType::F32, in, out, 1, bytes.data());
  }
  VectorId vector(int64_t n, float mean, float stddev) {
    std::vector<float> v(static_cast<size_t>(n));
    random_blocks(DType::F32, reinterpret_cast<std::byte*>(v.data()), n, ++seed_, stddev);
    for (float& x : v) x += mean;
    return vector_of(std::move(v));
  }
  VectorId vector_of(std::vector<float> values) {
    program.vectors.push_back(std::move(values));
    return static_cast<VectorId>(program.vectors.size()) - 1;
  }

  // A buffer that each token fills with its own random row: the same bits on every backend.
  BufferId input(int width, float stddev = 1.0f, DType type = DType::F32) {
    return input_from(matrix(type, width, program.n_vocab, 1, stddev), width);
  }
  BufferId input_from(MatrixId table, int width) {
    const BufferId out = buffer(width);
    program.ops.push_back(op::Embed{table, out});
    return out;
  }
  BufferId zero_input(int width) {
    return input_from(
        matrix_of(width, program.n_vocab, std::vector<float>(static_cast<size_t>(width) * program.n_vocab, 0.0f)),
        width);
  }

  // Ends the program so that Outputs::hidden, times kObserved, is the buffer itself: the root of eps + mean square is
  // the root of eps to a relative 1e-10 for buffers of ordinary size, and scaling by a power of two is exact.
  static constexpr float kObserved = 1048576.0f;  // 2^20, the root of eps
  void observe(BufferId buffer) {
    const int width = program.buffers[buffer].width;
    program.d_model = width;
    const VectorId ones = vector_of(std::vector<float>(static_cast<size_t>(width), 1.0f));
    const MatrixId head = matrix(DType::F32, width, program.n_vocab);
    program.ops.push_back(op::LmHead{buffer, ones, kObserved * kObserved, head});
  }
  // Adds buffer `from` to columns [at, at + width of from) of `to`, exactly: a product with ones and zeros.
  void add_at(BufferId from, BufferId to, int at) {
    const int in = program.buffers[from].width, out = program.buffers[to].width;
    std::vector<float> pick(static_cast<size_t>(in) * out, 0.0f);
    for (int i = 0; i < in; ++i) pick[static_cast<size_t>(at + i) * in + i] = 1.0f;
    program.ops.push_back(op::MatmulAdd{from, matrix_of(in, out, pick), kNone, to});
  }

  // The floats of one row of a matrix.
  std::vector<float> row(MatrixId id, int64_t r) const {
    const TensorView& m = program.matrices[id];
    std::vector<float> out(m.ne[0]);
    dequantize_row(m.type, m.row(static_cast<uint64_t>(r)), out.data(), static_cast<int64_t>(m.ne[0]));
    return out;
  }

 private:
  MatrixId view(DType type, int64_t in, int64_t out, int64_t n_experts, const std::byte* data) {
    program.matrices.push_back(
        {"matrix",
         type,
         {static_cast<uint64_t>(in), static_cast<uint64_t>(out), static_cast<uint64_t>(n_experts), 1},
         data});
    return static_cast<MatrixId>(program.matrices.size()) - 1;
  }

  std::deque<std::vector<std::byte>> storage_;
  uint64_t seed_ = 0;
};

}  // namespace chimere::parity
