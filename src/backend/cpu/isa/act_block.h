// act_block.h  32 activations in 8 bits, as the matmul kernels read them.
#pragma once

#include <cstdint>

namespace chimere::cpu {

// Weights are unsigned codes in the kernels. sum_k (code - offset) * q = sum_k code * q - offset * sum_k q, so the
// integer accumulator starts at -offset * sum(q). Offsets are powers of two up to 128: the largest is stored, the
// others are an arithmetic shift away. The fields serve as broadcast memory operands, hence floats and ints side by
// side.
struct ActBlock {
  int8_t q[32];     // -127..127
  float d;          // x ~ d * q
  int32_t neg128;   // -128 * sum of q
  int32_t neg128b;  // -128 * sum of q[16..31]
  float sum;        // sum of q
};
static_assert(sizeof(ActBlock) == 48);

}  // namespace chimere::cpu
