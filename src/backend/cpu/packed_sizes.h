// packed_sizes.h  What matrices take as panels, without packing them.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/ops.h"

namespace chimere::cpu {

uint64_t packed_bytes(const TensorView& tensor);

// By MatrixId: whether it is multiplied with. A table that is only looked up stays in the file, whose rows are decoded when
// a token asks for them.
std::vector<bool> packed_matrices(const Program& program);

}  // namespace chimere::cpu
