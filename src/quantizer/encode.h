// encode.h  Rows of floats to the blocks of a file's type, as near to them as the type allows.
//
// The error that is kept small is sum_i w[i] * (x[i] - y[i])^2 over a row, where w[i] says how much column i of a
// matrix matters: the mean square of what it is multiplied with (imatrix). Without weights all columns count the same.
// No weight counts less than 1e-4 of their mean: what calibration never excited has to be stored, too. The bits of a
// row depend on the row and the weights alone, not on threads or machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace chimere::quantizer {

// Types that encode_rows writes, fewest bits first.
std::span<const DType> encodable_types();
bool can_encode(DType type);

// REQUIRES: can_encode(type); n_cols % info(type).block_elems == 0; rows [n_rows, n_cols] and weights [n_cols] finite,
// weights not negative; `weights` may be null. `out` has n_rows * row_bytes(type, n_cols) bytes, at any alignment.
void encode_rows(DType type, int64_t n_rows, int64_t n_cols, const float* rows, const float* weights, std::byte* out);

}  // namespace chimere::quantizer
