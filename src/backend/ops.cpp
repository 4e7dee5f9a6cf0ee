#include "backend/ops.h"

namespace chimere {

const char* op_name(const Op& op) {
  static constexpr const char* kNames[] = {"embed",      "norm_matmul", "matmul_add",     "gdn_mix",
                                           "mamba2_mix", "causal_conv", "selective_scan", "attention",
                                           "dense_ffn",  "moe_ffn",     "lm_head"};
  static_assert(std::size(kNames) == std::variant_size_v<Op>);
  return kNames[op.index()];
}

}  // namespace chimere
