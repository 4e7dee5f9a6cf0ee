// dequantize.h  Any stored row to floats, by the definition of its format. The oracle for every faster decoder.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace chimere {

// Decodes `elems` elements, whole blocks, from `src` (any alignment) to `dst`. Integers and F64 are rounded to float.
// Types with a row prefix (DTypeInfo) are decoded row by row, from the prefix on.
// REQUIRES: elems % info(type).block_elems == 0.
void dequantize_row(DType type, const std::byte* src, float* dst, int64_t elems);

}  // namespace chimere
