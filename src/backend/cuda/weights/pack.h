// pack.h  From the file's blocks to the records of formats.h, on the host, at load.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/weights/weight.h"
#include "tensor/tensor_view.h"

namespace chimere::cuda {

// As small as the file's, or with the codebook of IQ3_S looked up: larger by a fifth, and faster to read.
enum class PackForm { compact, wide };

// The type a matrix has in device memory: its own, but TQ1_0 becomes TQ2_0 (its base-3 digits are slow to take apart),
// numbers of no short format become F32, and IQ3_S in the wide form kIq3Wide.
DType packed_type(DType type, PackForm form = PackForm::compact);

// Bytes of a packed row of `width` elements: 16-byte aligned. REQUIRES: width is a multiple of the type's block.
uint32_t packed_row_bytes(DType type, uint64_t width, PackForm form = PackForm::compact);

uint64_t packed_bytes(const TensorView& tensor, PackForm form = PackForm::compact);

// Writes rows [first, first + n) of the tensor, packed_row_bytes each. Rows are independent: threads may share the
// work.
void pack_rows(const TensorView& tensor, uint64_t first, uint64_t n, std::byte* to, PackForm form = PackForm::compact);

// What kernels take, once the packed rows lie at `data`.
Weight packed_weight(const TensorView& tensor, const void* data, const IqGrids* grids,
                     PackForm form = PackForm::compact);

}  // namespace chimere::cuda
