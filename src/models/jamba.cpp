// jamba.cpp  Jamba: Mamba-1 (with norms on dt, B and C) or attention without positions, then a feed-forward, in some
// layers of experts whose weights are not renormalised.
#include "models/mamba_layers.h"

namespace chimere::models {

Result<Program> build_jamba(WeightSource& source) {
  TRY_ASSIGN(const Config c, read_config(source));
  TRY_ASSIGN(const Mamba1 mamba, read_mamba1(source.metadata(), c, Mamba1::Norms::weighted));
  Binder b(source);
  const AttentionStyle style;
  const FfnStyle ffn{.norm = "ffn_norm.weight", .renormalise = false};
  const Trunk t = begin_trunk(b, c);
  const AttentionBuffers attention = attention_buffers(b, c, style);
  const Mamba1Buffers buffers = mamba1_buffers(b, mamba);
  for (int i = 0; i < c.n_layers; ++i) {
    if (c.n_kv_heads[i] > 0) {
      add_attention(b, c, i, t, attention, style);
    } else {
      add_mamba1(b, c, mamba, i, t, buffers);
    }
    if (c.n_experts > 0 && b.has(block(i, "ffn_gate_inp.weight"))) {
      add_moe_ffn(b, c, i, t, ffn);
    } else {
      add_dense_ffn(b, c, i, t, ffn);
    }
    b.end_layer();
  }
  end_trunk(b, c, t);
  return b.finish();
}

}  // namespace chimere::models
