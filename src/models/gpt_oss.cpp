// gpt_oss.cpp  gpt-oss: attention with sinks, in every second layer over a window, and experts with biases.
#include "models/layers.h"

namespace chimere::models {

Result<Program> build_gpt_oss(WeightSource& source) {
  const gguf::Metadata& m = source.metadata();
  TRY_ASSIGN(const Config c, read_config(source));
  TRY_ASSIGN(Rope rope, read_rope(source, c, Rope::Pairing::half));
  TRY_ASSIGN(const int64_t window, m.get_int(c.key("attention.sliding_window"), 1, 1 << 24));
  if (c.n_experts == 0) return Error{Code::corrupt, c.key("expert_count") + ": expected at least 1, found 0"};
  Binder b(source);
  AttentionStyle style{.rope = b.rope(std::move(rope)), .sinks = true};
  const FfnStyle ffn{
      .norm = "post_attention_norm.weight", .activation = op::Activation::clamped_swiglu, .biases = true};
  const Trunk t = begin_trunk(b, c);
  const AttentionBuffers buffers = attention_buffers(b, c, style);
  for (int i = 0; i < c.n_layers; ++i) {
    style.window = i % 2 == 0 ? static_cast<int>(window) : 0;
    add_attention(b, c, i, t, buffers, style);
    add_moe_ffn(b, c, i, t, ffn);
    b.end_layer();
  }
  end_trunk(b, c, t);
  return b.finish();
}

}  // namespace chimere::models
