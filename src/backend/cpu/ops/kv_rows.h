// kv_rows.h  Rows of the KV cache: floats to F32, F16, Q8_0 or Q4_0, and the kernels that read them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/vec.h"
#include "tensor/dtype.h"

namespace chimere::cpu {

// The kernels of one storage type. REQUIRES: F32, F16, Q8_0 or Q4_0.
const KvKernels& kv_kernels(DType type);

// The same bits as quantize_row, faster where it matters. REQUIRES: n % block size == 0.
void encode_kv(DType type, int64_t n, const float* src, std::byte* dst);

}  // namespace chimere::cpu
