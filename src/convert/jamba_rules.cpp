// jamba_rules.cpp  Jamba: Mamba-1 with norms or attention without positions, then an MLP or experts.
#include "convert/rules.h"

namespace chimere::convert {

void jamba_rules(Recipe& r) {
  const Names names = find_names(r);
  const Common c = set_common(r);
  const Heads heads = set_heads(r, c);
  const int64_t n_experts = r.integer("num_experts");
  r.set_int("feed_forward_length", r.integer("intermediate_size"));
  r.set_int("expert_count", n_experts);
  r.set_int("expert_used_count", r.integer("num_experts_per_tok"));
  set_mamba1(r, {r.integer("mamba_d_conv"), r.integer("mamba_d_state"), r.integer_or("mamba_expand", 2) * c.d_model,
                 r.integer("mamba_dt_rank")});
  const int64_t attention_period = r.integer("attn_layer_period"),
                attention_offset = r.integer_or("attn_layer_offset", 0);
  const int64_t expert_period = r.integer("expert_layer_period"),
                expert_offset = r.integer_or("expert_layer_offset", 0);
  const auto is_attention = [&](int64_t i) { return i % attention_period == attention_offset; };
  std::vector<int64_t> kv_heads;
  for (int64_t i = 0; i < c.n_layers; ++i) kv_heads.push_back(is_attention(i) ? heads.n_kv_heads : 0);
  r.set_ints("attention.head_count_kv", kv_heads);

  add_ends(r, names, "final_layernorm.weight");
  for (int64_t i = 0; i < c.n_layers; ++i) {
    const std::string layer = names.layer(i), feed = layer + "feed_forward.", mamba = layer + "mamba.";
    r.f32(block(i, "attn_norm.weight"), layer + "input_layernorm.weight");
    if (is_attention(i)) {
      add_attention(r, i, layer + "self_attn.", heads, false);
    } else {
      add_mamba1(r, i, mamba);
      r.f32(block(i, "ssm_dt_norm.weight"), mamba + "dt_layernorm.weight");
      r.f32(block(i, "ssm_b_norm.weight"), mamba + "b_layernorm.weight");
      r.f32(block(i, "ssm_c_norm.weight"), mamba + "c_layernorm.weight");
    }
    r.f32(block(i, "ffn_norm.weight"), layer + "pre_ff_layernorm.weight");
    if (n_experts > 1 && i % expert_period == expert_offset) {
      r.f32(block(i, "ffn_gate_inp.weight"), feed + "router.weight");
      add_experts(r, i, feed, n_experts);
    } else {
      add_mlp(r, i, feed);
    }
  }
}

}  // namespace chimere::convert
