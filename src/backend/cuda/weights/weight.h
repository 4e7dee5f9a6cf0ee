// weight.h  A matrix, or a stack of them, in device memory, as kernels take it.
#pragma once

#include <cstdint>

#include "backend/cuda/weights/bits.h"
#include "tensor/dtype.h"
#include "tensor/iq_grids.h"

namespace chimere::cuda {

// A type that no file has: the weights of IQ3_S with their codebook looked up at load (formats.h).
inline constexpr DType kIq3Wide{0x10000u};

struct Weight {
  const uint8_t* data = nullptr;   // [experts][rows] records of row_bytes, 16-byte aligned
  const IqGrids* grids = nullptr;  // kIqGrids in device memory, for the codebook types
  DType type = DType::F32;         // F32, F16, BF16 or a type of formats.h
  int32_t width = 0;               // elements of a row
  int32_t rows = 0;                // of one expert
  int32_t experts = 1;
  uint32_t row_bytes = 0;
  // Where each expert is, on the card or in RAM that the card reads: in device memory, and changed between passes
  // (mapped_experts.h). Null: all are at `data`.
  const uint8_t* const* places = nullptr;

  // Of a matrix that is at `data`.
  CHIMERE_BOTH const uint8_t* row(int64_t expert, int64_t r) const {
    return data + (expert * rows + r) * static_cast<int64_t>(row_bytes);
  }
  // Of any.
  CHIMERE_BOTH const uint8_t* expert_row(int64_t expert, int64_t r) const {
    return places ? places[expert] + r * static_cast<int64_t>(row_bytes) : row(expert, r);
  }
  CHIMERE_BOTH bool is_float() const { return type == DType::F32 || type == DType::F16 || type == DType::BF16; }
  CHIMERE_BOTH explicit operator bool() const { return data != nullptr; }
};

}  // namespace chimere::cuda
