// gpt_oss_rules.cpp  gpt-oss: attention with sinks and windows, experts with biases.
//
// The checkpoint interleaves the gate and up rows of its experts, even ones gate; the file has two tensors. Published
// experts are MXFP4 blocks and stay so; a checkpoint in BF16 has them the other way round, [experts, in, out].
#include "convert/rules.h"

namespace chimere::convert {
namespace {

// Row o of expert e: the even (gate) or odd (up) one of the fused tensor.
IndexMap every_second(uint64_t per_expert, uint64_t odd) {
  return [per_expert, odd](uint64_t row) { return row / per_expert * 2 * per_expert + row % per_expert * 2 + odd; };
}

void add_expert_weights(Recipe& r, int64_t i, const std::string& in, uint64_t d, uint64_t ff, uint64_t n_experts) {
  const Shape wide = {d, ff, n_experts, 1}, back = {ff, d, n_experts, 1};
  const std::string gate = block(i, "ffn_gate_exps.weight"), up = block(i, "ffn_up_exps.weight");
  const std::string down = block(i, "ffn_down_exps.weight");
  if (r.has(in + "gate_up_proj_blocks")) {
    const std::string blocks = in + "gate_up_proj_blocks", scales = in + "gate_up_proj_scales";
    r.mxfp4(gate, blocks, scales, wide).with_rows(every_second(ff, 0));
    r.mxfp4(up, blocks, scales, wide).with_rows(every_second(ff, 1));
    r.mxfp4(down, in + "down_proj_blocks", in + "down_proj_scales", back);
    return;
  }
  for (const bool is_up : {false, true}) {
    Target& half = r.matrix(is_up ? up : gate, in + "gate_up_proj").shaped(wide).with_rows(every_second(ff, is_up));
    half.transposed_columns = 2 * ff;
  }
  r.matrix(down, in + "down_proj").shaped(back).transposed_columns = d;
}

}  // namespace

void gpt_oss_rules(Recipe& r) {
  const Names names = find_names(r);
  const Common c = set_common(r);
  const Heads heads = set_heads(r, c);
  const int64_t ff = r.integer("intermediate_size");
  const int64_t n_experts = r.integer_or("num_local_experts", r.integer_or("num_experts", 0));
  r.set_int("feed_forward_length", ff);
  r.set_int("expert_feed_forward_length", ff);
  r.set_int("expert_count", n_experts);
  r.set_int("expert_used_count", r.integer_or("num_experts_per_tok", r.integer_or("experts_per_token", 4)));
  r.set_int("attention.sliding_window", r.integer("sliding_window"));
  add_ends(r, names, "norm.weight");
  set_rope(r, heads.head_dim);
  const auto width = static_cast<uint64_t>(ff), count = static_cast<uint64_t>(n_experts);
  for (int64_t i = 0; i < c.n_layers; ++i) {
    const std::string layer = names.layer(i), router = layer + "mlp.router.", experts = layer + "mlp.experts.";
    r.f32(block(i, "attn_norm.weight"), layer + "input_layernorm.weight");
    add_attention(r, i, layer + "self_attn.", heads, false);
    r.f32(block(i, "attn_sinks.weight"), layer + "self_attn.sinks");
    r.f32(block(i, "post_attention_norm.weight"), layer + "post_attention_layernorm.weight");
    r.f32(block(i, "ffn_gate_inp.weight"), router + "weight");
    r.f32(block(i, "ffn_gate_inp.bias"), router + "bias");
    add_expert_weights(r, i, experts, static_cast<uint64_t>(c.d_model), width, count);
    for (const uint64_t odd : {0, 1}) {
      // Pairs seen as a matrix of two columns for each expert, of which we take one.
      Target& bias = r.f32(block(i, odd ? "ffn_up_exps.bias" : "ffn_gate_exps.bias"), experts + "gate_up_proj_bias");
      bias.shaped({width, count, 1, 1}).with_rows([odd](uint64_t e) { return 2 * e + odd; });
      bias.transposed_columns = 2;
    }
    r.f32(block(i, "ffn_down_exps.bias"), experts + "down_proj_bias");
  }
}

}  // namespace chimere::convert
