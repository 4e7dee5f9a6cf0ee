// bamba_rules.cpp  Bamba: Mamba-2 or attention that rotates half of each head, then an MLP.
#include "convert/rules.h"

namespace chimere::convert {

void bamba_rules(Recipe& r) {
  const Names names = find_names(r);
  const Common c = set_common(r);
  const Heads heads = set_heads(r, c);
  // Newer files leave it out: the model class knows half a head only.
  const int64_t n_rot = r.integer_or("attn_rotary_emb", heads.head_dim / 2);
  if (n_rot < 2 || n_rot > heads.head_dim || n_rot % 2 != 0) {
    r.fail(Code::corrupt, "config.json: attn_rotary_emb: expected an even number from 2 to " +
                              std::to_string(heads.head_dim) + ", found " + std::to_string(n_rot));
  }
  r.set_bool("rope.scaling.finetuned", true);
  r.set_int("rope.dimension_count", n_rot);
  r.set_int("vocab_size", r.integer("vocab_size"));
  r.set_int("feed_forward_length", r.integer("intermediate_size"));
  Mamba2Sizes sizes{r.integer("mamba_d_conv"), r.integer("mamba_d_state"), r.integer("mamba_n_groups"),
                    r.integer("mamba_n_heads"), 0};
  sizes.inner_size = r.integer_or("mamba_expand", 2) * c.d_model;
  set_mamba2(r, sizes);
  // The model class normalises all channels together, the file's architecture each group for itself.
  if (sizes.n_groups != 1) {
    r.fail(Code::unsupported, "config.json: mamba_n_groups: expected 1, found " + std::to_string(sizes.n_groups));
  }
  if (r.flag_or("mamba_proj_bias", false)) {
    r.fail(Code::unsupported, "config.json: mamba_proj_bias: expected false, found true");
  }

  std::vector<int64_t> kv_heads(static_cast<size_t>(c.n_layers), 0);
  const std::vector<int64_t> attention = r.integers("attn_layer_indices");
  if (attention.empty()) r.fail(Code::corrupt, "config.json: attn_layer_indices: expected the layers with attention");
  for (const int64_t i : attention) {
    if (i >= c.n_layers) {
      return r.fail(Code::corrupt, "config.json: attn_layer_indices: expected layers below " +
                                       std::to_string(c.n_layers) + ", found " + std::to_string(i));
    }
    kv_heads[static_cast<size_t>(i)] = heads.n_kv_heads;
  }
  r.set_ints("attention.head_count_kv", kv_heads);

  add_ends(r, names, "final_layernorm.weight");
  set_rope(r, n_rot);
  for (int64_t i = 0; i < c.n_layers; ++i) {
    const std::string layer = names.layer(i);
    r.f32(block(i, "attn_norm.weight"), layer + "input_layernorm.weight");
    if (kv_heads[static_cast<size_t>(i)] > 0) {
      // Pairs of the whole head although half of it is rotated: so do the files that are out there, and loaders of
      // this architecture undo it.
      add_attention(r, i, layer + "self_attn.", heads, true);
    } else {
      add_mamba2(r, i, layer + "mamba.", sizes);
    }
    r.f32(block(i, "ffn_norm.weight"), layer + "pre_ff_layernorm.weight");
    add_mlp(r, i, layer + "feed_forward.");
  }
}

}  // namespace chimere::convert
