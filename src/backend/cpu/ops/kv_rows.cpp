#include "backend/cpu/ops/kv_rows.h"

#include "backend/cpu/vec.h"
#include "base/check.h"
#include "tensor/quantize.h"

namespace chimere::cpu {

void encode_kv(DType type, int64_t n, const float* src, std::byte* dst) {
  if (type == DType::F16) {
    vec().encode_f16(n, src, dst);
  } else {
    quantize_row(type, src, dst, n);
  }
}

const KvKernels& kv_kernels(DType type) {
  switch (type) {
    case DType::F32: return vec().kv_f32;
    case DType::F16: return vec().kv_f16;
    case DType::Q8_0: return vec().kv_q8_0;
    case DType::Q4_0: return vec().kv_q4_0;
    default: CHECK(!"a KV type that StateLayout accepts");
  }
  return vec().kv_f32;
}

}  // namespace chimere::cpu
