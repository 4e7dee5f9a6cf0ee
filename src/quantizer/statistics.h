// statistics.h  What the columns of each matrix are multiplied with: sums of squared inputs, for each expert apart.
//
// The file is the GGUF form of llama.cpp's imatrix, so that either program reads what the other wrote:
//   general.type = "imatrix", imatrix.datasets, imatrix.chunk_count, imatrix.chunk_size (tokens)
//   NAME.in_sum2   F32 {columns, experts}   sum of squares over all rows seen
//   NAME.counts    F32 {1, experts}         rows seen
// The older binary form (.dat), which has one count a matrix, is read, too.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/tensor_view.h"

namespace chimere::quantizer {

struct InputSums {
  uint64_t n_cols = 0;
  std::vector<double> sums;    // [experts, n_cols] of squares
  std::vector<double> counts;  // [experts] rows
};

struct Statistics {
  std::map<std::string, InputSums, std::less<>> matrices;  // by the tensor's name, with ".weight"
  std::vector<std::string> datasets;
  uint64_t n_chunks = 0;
  uint64_t chunk_tokens = 0;

  const InputSums* find(std::string_view tensor) const;
  // Adds what another run saw. Refuses matrices whose shapes differ.
  Status merge(const Statistics& other);
};

Result<Statistics> read_statistics(const std::string& path);
Result<Statistics> parse_statistics(std::span<const std::byte> bytes, const std::string& label);
Status write_statistics(const Statistics& statistics, const std::string& path);
Result<std::vector<std::byte>> statistics_bytes(const Statistics& statistics);

// Refuses statistics of another model: a matrix that the tensors have in another shape.
Status check_statistics(const Statistics& statistics, std::span<const TensorView> tensors);

// Of all sums and counts; 0 of null.
uint64_t hash_of(const Statistics* statistics);

// Mean squares of a tensor's columns, ready for encode_rows. Experts that saw nothing get the mean of the others;
// columns that never moved keep a small weight, as a text that moves them may come.
class ColumnWeights {
 public:
  ColumnWeights(const Statistics* statistics, const TensorView& tensor);
  // Null without statistics.
  const float* of(uint64_t expert) const;
  // How often the expert is used, as a share of all uses; equal shares without statistics.
  double share(uint64_t expert) const;

 private:
  uint64_t n_cols_ = 0;
  uint64_t n_experts_ = 1;
  std::vector<float> weights_;  // [experts, n_cols], or empty
  std::vector<double> shares_;  // [experts], or empty
};

}  // namespace chimere::quantizer
