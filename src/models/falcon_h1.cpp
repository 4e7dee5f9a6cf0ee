// falcon_h1.cpp  Falcon-H1: attention and Mamba-2 side by side behind one norm, then a feed-forward. The multipliers of
// its training are folded into the weights by the converter.
#include "models/mamba_layers.h"

namespace chimere::models {

Result<Program> build_falcon_h1(WeightSource& source) {
  TRY_ASSIGN(const Config c, read_config(source));
  TRY_ASSIGN(const Mamba2 mamba, read_mamba2(source.metadata(), c));
  TRY_ASSIGN(Rope rope, read_rope(source, c, Rope::Pairing::half));
  Binder b(source);
  const AttentionStyle style{.rope = b.rope(std::move(rope))};
  const Trunk t = begin_trunk(b, c);
  const AttentionBuffers attention = attention_buffers(b, c, style);
  const Mamba2Buffers buffers = mamba2_buffers(b, mamba);
  for (int i = 0; i < c.n_layers; ++i) {
    op::NormMatmul in = mixer_input(b, c, i, t);
    add_attention_projections(b, c, i, attention, style, in);
    in.outs.push_back(mamba2_projection(b, c, mamba, i, buffers));
    b.add(std::move(in));
    add_attention_mix(b, c, i, t, attention, style);
    add_mamba2_mix(b, c, mamba, i, t, buffers, 1, true);
    // Files name this norm without the usual ending.
    add_dense_ffn(b, c, i, t, {.norm = b.has(block(i, "ffn_norm")) ? "ffn_norm" : "ffn_norm.weight"});
    b.end_layer();
  }
  end_trunk(b, c, t);
  return b.finish();
}

}  // namespace chimere::models
