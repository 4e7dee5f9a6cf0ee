// granite_rules.cpp  Granite 4 H: Mamba-2 or attention, then experts with a shared one, or the shared one alone.
#include "convert/rules.h"

namespace chimere::convert {

void granite_rules(Recipe& r) {
  const Names names = find_names(r);
  const Common c = set_common(r);
  const Heads heads = set_heads(r, c);
  const bool positions = r.text_or("position_embedding_type", "rope") == "rope";
  if (!positions) r.set_int("context_length", kUnboundedContext);
  r.set_bool("rope.scaling.finetuned", positions);
  r.set_int("rope.dimension_count", heads.head_dim);
  r.set_int("vocab_size", r.integer("vocab_size"));
  r.set_float("attention.scale", r.number_or("attention_multiplier", 0.0));
  r.set_float("embedding_scale", r.number_or("embedding_multiplier", 1.0));
  r.set_float("residual_scale", r.number_or("residual_multiplier", 1.0));
  r.set_float("logit_scale", r.number_or("logits_scaling", 1.0));
  const int64_t n_experts = r.integer_or("num_local_experts", 0);
  r.set_int("expert_count", n_experts);
  r.set_int("expert_used_count", r.integer_or("num_experts_per_tok", 0));
  // Without experts the shared part is the whole feed-forward.
  const int64_t shared = r.integer("shared_intermediate_size");
  r.set_int("expert_shared_feed_forward_length", shared);
  r.set_int("feed_forward_length", n_experts > 0 ? r.integer("intermediate_size") : shared);
  Mamba2Sizes sizes{r.integer("mamba_d_conv"), r.integer("mamba_d_state"), r.integer("mamba_n_groups"),
                    r.integer("mamba_n_heads"), 0};
  sizes.inner_size = r.integer_or("mamba_expand", 2) * c.d_model;
  set_mamba2(r, sizes);

  std::vector<std::string> types = r.texts("layer_types");
  if (types.size() != static_cast<size_t>(c.n_layers)) {
    r.fail(Code::corrupt, "config.json: layer_types: expected " + std::to_string(c.n_layers) + " entries, found " +
                              std::to_string(types.size()));
    types.resize(static_cast<size_t>(c.n_layers));
  }
  std::vector<int64_t> kv_heads;
  for (const std::string& type : types) kv_heads.push_back(type == "attention" ? heads.n_kv_heads : 0);
  r.set_ints("attention.head_count_kv", kv_heads);

  add_ends(r, names, "norm.weight", true);
  set_rope(r, heads.head_dim);
  for (int64_t i = 0; i < c.n_layers; ++i) {
    const std::string layer = names.layer(i);
    r.f32(block(i, "attn_norm.weight"), layer + "input_layernorm.weight");
    if (types[static_cast<size_t>(i)] == "attention") {
      add_attention(r, i, layer + "self_attn.", heads, true);
    } else {
      add_mamba2(r, i, layer + "mamba.", sizes);
    }
    r.f32(block(i, "ffn_norm.weight"), layer + "post_attention_layernorm.weight");
    const std::string experts = layer + "block_sparse_moe.", alone = layer + "shared_mlp.";
    if (n_experts > 0) {
      r.f32(block(i, "ffn_gate_inp.weight"), experts + "router.layer.weight");
      add_halves(r, block(i, "ffn_gate_exps.weight"), block(i, "ffn_up_exps.weight"), experts + "input_linear.weight");
      r.matrix(block(i, "ffn_down_exps.weight"), experts + "output_linear.weight");
    }
    const char* end = n_experts > 0 ? "_shexp.weight" : ".weight";
    add_halves(r, block(i, "ffn_gate") + end, block(i, "ffn_up") + end, alone + "input_linear.weight");
    r.matrix(block(i, "ffn_down") + end, alone + "output_linear.weight");
  }
}

}  // namespace chimere::convert
