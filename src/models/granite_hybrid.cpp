// granite_hybrid.cpp  Granite 4 H: Mamba-2 or attention, then a feed-forward, with scaled embeddings, residuals and
// logits. Bamba's files carry the same name; they scale nothing and rotate half of each head.
#include "models/mamba_layers.h"

namespace chimere::models {
namespace {

// A multiplier, which files leave out or set to 0 where there is none.
Result<float> read_scale(const gguf::Metadata& m, const std::string& key) {
  TRY_ASSIGN(const double value, m.get_float_or(key, 0.0));
  if (!(value >= 0 && value < 1e6)) {
    return Error{Code::corrupt, key + ": expected 0 or more, found " + std::to_string(value)};
  }
  return value == 0 ? 1.0f : static_cast<float>(value);
}

}  // namespace

Result<Program> build_granite_hybrid(WeightSource& source) {
  const gguf::Metadata& m = source.metadata();
  TRY_ASSIGN(const Config c, read_config(source));
  TRY_ASSIGN(const Mamba2 mamba, read_mamba2(m, c));
  TRY_ASSIGN(const float embedding_scale, read_scale(m, c.key("embedding_scale")));
  TRY_ASSIGN(const float residual_scale, read_scale(m, c.key("residual_scale")));
  TRY_ASSIGN(const float logit_divisor, read_scale(m, c.key("logit_scale")));
  TRY_ASSIGN(const bool has_rope, m.get_bool_or(c.key("rope.scaling.finetuned"), true));

  Binder b(source);
  AttentionStyle style{.scale = residual_scale};
  if (has_rope && c.n_heads > 0) {
    TRY_ASSIGN(Rope rope, read_rope(source, c, Rope::Pairing::adjacent));
    if (rope.n_rot() < c.head_dim_k) {
      // Bamba rotates the first n_rot elements of a head, element j with j + n_rot / 2. llama.cpp's converter, from
      // which its files come, interleaves the halves of the whole head all the same, as if all of it were rotated.
      // Adjacent pairs among the first n_rot rows would be j and j + head_dim / 2; so the original order is restored.
      if (c.head_dim_k % 2 != 0) {
        return Error{Code::corrupt, c.key("attention.key_length") + ": expected an even number, found " +
                                        std::to_string(c.head_dim_k)};
      }
      rope.pairing = Rope::Pairing::half;
      style.interleaved_halves = true;
    }
    style.rope = b.rope(std::move(rope));
  }
  const FfnStyle ffn{.norm = "ffn_norm.weight", .scale = residual_scale, .shared_router = false};
  const Trunk t = begin_trunk(b, c, embedding_scale);
  const AttentionBuffers attention = attention_buffers(b, c, style);
  const Mamba2Buffers buffers = mamba2_buffers(b, mamba);
  for (int i = 0; i < c.n_layers; ++i) {
    if (c.n_kv_heads[i] > 0) {
      add_attention(b, c, i, t, attention, style);
    } else {
      add_mamba2(b, c, mamba, i, t, buffers, residual_scale);
    }
    add_ffn(b, c, i, t, ffn);
    b.end_layer();
  }
  end_trunk(b, c, t, 1.0f / logit_divisor);
  return b.finish();
}

}  // namespace chimere::models
