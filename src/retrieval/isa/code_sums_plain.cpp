#include "retrieval/isa/code_sums_body.h"

namespace chimere::retrieval {

void code_sums_plain(const int8_t* codes, size_t n, size_t dimensions, const int16_t* query, int32_t* sums) {
  code_sums_body(codes, n, dimensions, query, sums);
}

}  // namespace chimere::retrieval
