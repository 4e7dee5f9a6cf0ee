// smollm3.cpp  SmolLM3: a Llama whose every fourth layer attends without positions.
#include "models/layers.h"

namespace chimere::models {

Result<Program> build_smollm3(WeightSource& source) {
  constexpr int kInterval = 4;  // of the layers without positions; files do not say it
  TRY_ASSIGN(const Config c, read_config(source));
  TRY_ASSIGN(Rope rope, read_rope(source, c, Rope::Pairing::adjacent));
  Binder b(source);
  const AttentionStyle rotated{.rope = b.rope(std::move(rope))}, unrotated{};
  const Trunk t = begin_trunk(b, c);
  const AttentionBuffers buffers = attention_buffers(b, c, rotated);
  for (int i = 0; i < c.n_layers; ++i) {
    add_attention(b, c, i, t, buffers, (i + 1) % kInterval == 0 ? unrotated : rotated);
    add_dense_ffn(b, c, i, t, {.norm = "ffn_norm.weight"});
    b.end_layer();
  }
  end_trunk(b, c, t);
  return b.finish();
}

}  // namespace chimere::models
