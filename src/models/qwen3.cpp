// qwen3.cpp  Qwen2 (biases on q, k, v), Qwen3 (norms on q and k) and Qwen3 MoE: plain transformers with half-split
// rotary.
#include "models/layers.h"

namespace chimere::models {

Result<Program> build_qwen2(WeightSource& source) {
  return build_transformer(source, {.pairing = Rope::Pairing::half, .qk_norm = false});
}

Result<Program> build_qwen3(WeightSource& source) {
  return build_transformer(source, {.pairing = Rope::Pairing::half, .qk_norm = true});
}

}  // namespace chimere::models
