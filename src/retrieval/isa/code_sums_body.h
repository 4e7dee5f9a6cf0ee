// code_sums_body.h  The loop of code_sums.h, which compilers vectorise for the instruction set of the file that
// includes it (pmaddwd, smlal).
#pragma once

#include "retrieval/isa/code_sums.h"

namespace chimere::retrieval {
namespace {

// Fetched this far ahead, since the hardware's own prefetching ends at every page of 4 KiB.
constexpr size_t kPrefetchBytes = 4096;

inline void code_sums_body(const int8_t* codes, size_t n, size_t dimensions, const int16_t* query, int32_t* sums) {
  const int8_t* const end = codes + n * dimensions;
  for (size_t i = 0; i < n; ++i, codes += dimensions) {
    if (static_cast<size_t>(end - codes) >= kPrefetchBytes + dimensions) {
      for (size_t j = 0; j < dimensions; j += 64) __builtin_prefetch(codes + kPrefetchBytes + j);
    }
    int32_t sum = 0;
    for (size_t j = 0; j < dimensions; ++j) sum += codes[j] * query[j];
    sums[i] = sum;
  }
}

}  // namespace
}  // namespace chimere::retrieval
