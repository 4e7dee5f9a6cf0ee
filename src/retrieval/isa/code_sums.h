// code_sums.h  sums[i] = sum over j of codes[i, j] * query[j]: the scan of vector_search.h.
//
// Shapes    codes [n, dimensions], query [dimensions], sums [n]; no alignment, any dimensions
// Bytes     n * dimensions: bound by memory beyond the caches
// Numerics  whole numbers: every version gives the same. REQUIRES: the sums fit 32 bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chimere::retrieval {

using CodeSums = void(const int8_t* codes, size_t n, size_t dimensions, const int16_t* query, int32_t* sums);

CodeSums code_sums_plain;
#if defined(__x86_64__)
CodeSums code_sums_avx2;
#endif

}  // namespace chimere::retrieval
