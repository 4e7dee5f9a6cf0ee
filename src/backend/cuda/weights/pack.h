// pack.h  From the file's blocks to the records of formats.h, on the host, at load.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/weights/weight.h"
#include "tensor/tensor_view.h"

namespace chimere::cuda {

// The type a matrix has in device memory: its own, but TQ1_0 becomes TQ2_0 (its base-3 digits are slow to take apart)
// and numbers of no short format become F32.
DType packed_type(DType type);

// Bytes of a packed row of `width` elements: 16-byte aligned. REQUIRES: width is a multiple of the type's block.
uint32_t packed_row_bytes(DType type, uint64_t width);

uint64_t packed_bytes(const TensorView& tensor);

// Writes rows [first, first + n) of the tensor, packed_row_bytes each. Rows are independent: threads may share the
// work.
void pack_rows(const TensorView& tensor, uint64_t first, uint64_t n, std::byte* to);

// What kernels take, once the packed rows lie at `data`.
Weight packed_weight(const TensorView& tensor, const void* data, const IqGrids* grids);

}  // namespace chimere::cuda
