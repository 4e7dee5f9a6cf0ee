// qwen3.cpp  Qwen2 (biases on q, k, v), Qwen3 (norms on q and k) and Qwen3 MoE: plain transformers with half-split
// rotary.
#include "models/layers.h"

namespace chimere::models {
namespace {

Result<Program> build(WeightSource& source, bool qk_norm) {
  TRY_ASSIGN(const Config c, read_config(source));
  TRY_ASSIGN(Rope rope, read_rope(source, c, Rope::Pairing::half));
  Binder b(source);
  const AttentionStyle style{.qk_norm = qk_norm, .rope = b.rope(std::move(rope))};
  const Trunk t = begin_trunk(b, c);
  const AttentionBuffers buffers = attention_buffers(b, c, style);
  for (int i = 0; i < c.n_layers; ++i) {
    add_attention(b, c, i, t, buffers, style);
    if (c.n_experts > 0) {
      add_moe_ffn(b, c, i, t, "ffn_norm.weight");
    } else {
      add_dense_ffn(b, c, i, t, "ffn_norm.weight");
    }
  }
  end_trunk(b, c, t);
  return b.finish();
}

}  // namespace

Result<Program> build_qwen2(WeightSource& source) { return build(source, false); }
Result<Program> build_qwen3(WeightSource& source) { return build(source, true); }

}  // namespace chimere::models
