// nemotron_h.cpp  Nemotron-H and Nemotron-3: every block is one mixer behind one norm, of three kinds.
//
//   no key/value heads, no feed-forward width   Mamba-2
//   key/value heads                             attention without positions; the rope keys of these files mean nothing
//   a feed-forward width                        relu^2 MLP, or experts: sigmoid router, chosen with a bias, weights
//                                               renormalised and scaled, one shared expert without a gate
#include "models/mamba_layers.h"

namespace chimere::models {

Result<Program> build_nemotron_h(WeightSource& source) {
  const gguf::Metadata& m = source.metadata();
  TRY_ASSIGN(const Config c, read_config(source));
  TRY_ASSIGN(const Mamba2 mamba, read_mamba2(m, c));
  FfnStyle ffn{.norm = "attn_norm.weight",
               .activation = op::Activation::relu2,
               .gating = op::Gating::sigmoid,
               .shared_router = false,
               .selection_bias = true};
  TRY_ASSIGN(ffn.renormalise, m.get_bool_or(c.key("expert_weights_norm"), true));
  TRY_ASSIGN(const double scale, m.get_float_or(c.key("expert_weights_scale"), 0.0));
  if (scale != 0) ffn.weight_scale = static_cast<float>(scale);
  TRY_ASSIGN(const int64_t latent, m.get_int_or(c.key("moe_latent_size"), 0, 1 << 20, 0));
  ffn.d_latent = static_cast<int>(latent);

  Binder b(source);
  const AttentionStyle style;
  const Trunk t = begin_trunk(b, c);
  const AttentionBuffers attention = attention_buffers(b, c, style);
  const Mamba2Buffers buffers = mamba2_buffers(b, mamba);
  for (int i = 0; i < c.n_layers; ++i) {
    if (c.d_ff[i] > 0) {
      add_ffn(b, c, i, t, ffn);
    } else if (c.n_kv_heads[i] > 0) {
      add_attention(b, c, i, t, attention, style);
    } else {
      add_mamba2(b, c, mamba, i, t, buffers);
    }
    b.end_layer();
  }
  end_trunk(b, c, t);
  return b.finish();
}

}  // namespace chimere::models
