// random_blocks.h  Valid random tensor data of every type, for synthetic models, benchmarks and kernel tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace chimere {

// Writes `n_blocks` blocks whose decoded values are finite, close to zero mean and have about the given standard
// deviation (integers: rounded and saturated). Codes are uniform, scales vary by 20 % from block to block. The same
// arguments give the same bytes on every machine. Beyond a few MiB, blocks repeat at shifted positions, so that large
// tensors cost hardly more than writing them.
//
// The scale of a block is stored in few bits: deviations far from those of weights (below 1e-4, above 1e3) saturate in
// some types, NVFP4 already outside of 0.006 to 1000, where its files use a factor outside of the tensor.
//
// REQUIRES: stddev > 0 and finite. dst may have any alignment.
// Of a type with a row prefix (DTypeInfo) it is one row, prefix and blocks.
void random_blocks(DType type, std::byte* dst, int64_t n_blocks, uint64_t seed, float stddev);

// The same for `n_rows` rows of `n_cols` elements, whole blocks.
void random_rows(DType type, std::byte* dst, int64_t n_rows, int64_t n_cols, uint64_t seed, float stddev);

}  // namespace chimere
