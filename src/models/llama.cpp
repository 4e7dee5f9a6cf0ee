// llama.cpp  Llama, Mistral and their like; Mixtral when the file has experts. Rotary pairs are adjacent rows.
#include "models/layers.h"

namespace chimere::models {

Result<Program> build_llama(WeightSource& source) {
  TRY_ASSIGN(const Config c, read_config(source));
  TRY_ASSIGN(Rope rope, read_rope(source, c, Rope::Pairing::adjacent));
  Binder b(source);
  const AttentionStyle style{.rope = b.rope(std::move(rope))};
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

}  // namespace chimere::models
