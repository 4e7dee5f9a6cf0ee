// quantize.h  Floats to the formats that are cheap to encode by definition: caches and tests need these.
//
//   F32, F16, BF16   rounded to nearest even
//   Q8_0             d = max|x| / 127, q = round(x / d)
//   Q4_0             d = (the element of largest magnitude, with its sign) / -8, q = round(x / d) + 8, at most 15
//
// d is rounded to half first, cut at the largest finite one, and 1/d taken from the stored value; x * (1/d) is rounded
// to nearest even. Any vector version that does these same steps yields the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace chimere {

bool can_quantize(DType type);

// REQUIRES: can_quantize(type); elems % info(type).block_elems == 0; src finite. dst may have any alignment.
void quantize_row(DType type, const float* src, std::byte* dst, int64_t elems);

}  // namespace chimere
