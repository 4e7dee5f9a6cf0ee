// head_part.h  Some blocks of rows of a matrix side by side, so that a product reads them alone.
#pragma once

#include <cstdint>

#include "backend/cuda/runtime/stream.h"
#include "backend/cuda/weights/weight.h"
#include "base/result.h"

namespace chimere::cuda {

inline constexpr int kPartBlock = 16;  // rows of a block: Batch::head_blocks

// What kernels know of it: `rows` are kPartBlock records of each block, one block behind the other. Both in device
// memory, and what they hold may change from launch to launch.
struct HeadPartView {
  const uint8_t* rows = nullptr;    // null: the whole matrix
  const int32_t* blocks = nullptr;  // [n_blocks] ascending
  int n_blocks = 0;

  int n_rows() const { return n_blocks * kPartBlock; }
  explicit operator bool() const { return rows != nullptr; }
  bool operator==(const HeadPartView&) const = default;
};

// Rows behind the end of the matrix, of its last block, become zeros.
// REQUIRES: blocks [n_blocks] in device memory, each one of the matrix; `to` holds n_blocks * kPartBlock records.
Status gather_head_part(const Stream& stream, const Weight& matrix, const int32_t* blocks, int n_blocks, uint8_t* to);

}  // namespace chimere::cuda
