// activations.h  Rows of activations prepared for matmul: the floats, and their 8-bit form in blocks of 32.
//
// A block keeps d = max|x| / 127, q = round(x / d) and the sums of q that matmul needs for weights with an offset or a
// minimum (isa/act_block.h). Quantisation of a row depends on that row alone, so a row's bits never depend on its
// neighbours in the batch.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/cpu/isa/act_block.h"

namespace chimere::cpu {

// Reusable: bind() grows the buffer when needed and never shrinks it. Use:
//   act.bind(x, ld, n_rows, k);            // one thread
//   act.quantize_rows(row_begin, row_end); // any threads, disjoint ranges; not needed for float weights or exact mode
//   matmul(w, 0, act, ...);                // after all of them are done
class Activations {
 public:
  // Makes later bind() calls up to this size free of allocation.
  void reserve(int64_t max_rows, int64_t max_k);

  // Looks at rows x[r * ld .. r * ld + k); the caller keeps them alive and unchanged until the matmuls are done.
  void bind(const float* x, int64_t ld, int64_t n_rows, int64_t k);

  // Fills the 8-bit form of rows [row_begin, row_end) of the bound matrix.
  void quantize_rows(int64_t row_begin, int64_t row_end);

  int64_t n_rows() const { return n_rows_; }
  int64_t k() const { return k_; }
  const float* row(int64_t r) const { return x_ + r * ld_; }
  const ActBlock* blocks(int64_t r) const { return blocks_.get() + r * n_blocks_; }

 private:
  struct Free {
    void operator()(ActBlock* p) const;
  };
  const float* x_ = nullptr;  // [n_rows, k], row stride ld
  int64_t ld_ = 0;
  int64_t n_rows_ = 0;
  int64_t k_ = 0;
  int64_t n_blocks_ = 0;                      // a row: ceil(k / 32)
  int64_t capacity_ = 0;                      // in blocks
  std::unique_ptr<ActBlock[], Free> blocks_;  // [n_rows, n_blocks]
};

}  // namespace chimere::cpu
