// nemotron_rules.cpp  Nemotron-H and Nemotron-3: each block is Mamba-2, attention without positions, an MLP, or
// experts.
#include "convert/rules.h"

namespace chimere::convert {
namespace {

enum class Kind { mamba, attention, mlp, experts };

// From a pattern of letters, or from a list of words in newer files.
std::vector<Kind> read_kinds(Recipe& r, int64_t n_layers) {
  std::vector<Kind> kinds;
  const auto unknown = [&](const std::string& what) {
    r.fail(Code::unsupported, "config.json: a layer of kind '" + what + "': expected Mamba, attention, MLP or experts");
  };
  for (const char c : r.text_or("hybrid_override_pattern", "")) {
    switch (c) {
      case 'M': kinds.push_back(Kind::mamba); break;
      case '*': kinds.push_back(Kind::attention); break;
      case '-': kinds.push_back(Kind::mlp); break;
      case 'E': kinds.push_back(Kind::experts); break;
      default: unknown(std::string(1, c));
    }
  }
  if (kinds.empty()) {
    for (const std::string& word : r.texts("layers_block_type")) {
      if (word == "mamba") {
        kinds.push_back(Kind::mamba);
      } else if (word == "attention") {
        kinds.push_back(Kind::attention);
      } else if (word == "mlp") {
        kinds.push_back(Kind::mlp);
      } else if (word == "moe") {
        kinds.push_back(Kind::experts);
      } else {
        unknown(word);
      }
    }
  }
  if (kinds.size() != static_cast<size_t>(n_layers)) {
    r.fail(Code::corrupt, "config.json: expected the kind of " + std::to_string(n_layers) + " layers, found " +
                              std::to_string(kinds.size()));
    kinds.assign(static_cast<size_t>(n_layers), Kind::mamba);
  }
  return kinds;
}

void set_expert_keys(Recipe& r) {
  r.set_int("expert_count", r.integer("n_routed_experts"));
  r.set_int("expert_used_count", r.integer("num_experts_per_tok"));
  r.set_int("expert_feed_forward_length", r.integer("moe_intermediate_size"));
  r.set_int("expert_shared_feed_forward_length", r.integer("moe_shared_expert_intermediate_size"));
  r.set_int("expert_shared_count", r.integer_or("n_shared_experts", 1));
  r.set_int("expert_group_count", r.integer_or("n_group", 1));
  r.set_int("expert_group_used_count", r.integer_or("topk_group", 1));
  r.set_bool("expert_weights_norm", r.flag_or("norm_topk_prob", true));
  r.set_float("expert_weights_scale", r.number_or("routed_scaling_factor", 1.0));
  if (r.configured("moe_latent_size")) r.set_int("moe_latent_size", r.integer("moe_latent_size"));
}

void add_expert_block(Recipe& r, int64_t i, const std::string& mixer) {
  r.f32(block(i, "ffn_gate_inp.weight"), mixer + "gate.weight");
  r.f32(block(i, "exp_probs_b.bias"), mixer + "gate.e_score_correction_bias");
  add_experts(r, i, mixer, r.integer("n_routed_experts"), {.gate = nullptr});
  r.matrix(block(i, "ffn_up_shexp.weight"), mixer + "shared_experts.up_proj.weight");
  r.matrix(block(i, "ffn_down_shexp.weight"), mixer + "shared_experts.down_proj.weight");
  if (r.configured("moe_latent_size")) {
    r.matrix(block(i, "ffn_latent_down.weight"), mixer + "fc1_latent_proj.weight");
    r.matrix(block(i, "ffn_latent_up.weight"), mixer + "fc2_latent_proj.weight");
  }
}

void add_plain_mlp(Recipe& r, int64_t i, const std::string& mixer) {
  r.matrix(block(i, "ffn_up.weight"), mixer + "up_proj.weight");
  r.matrix(block(i, "ffn_down.weight"), mixer + "down_proj.weight");
}

}  // namespace

void nemotron_rules(Recipe& r) {
  const Names names = find_names(r, "embeddings.weight");
  const Common c = set_common(r, r.configured("norm_eps") ? "norm_eps" : "layer_norm_epsilon");
  r.set_int("context_length", kUnboundedContext);
  r.set_float("attention.layer_norm_epsilon", r.number_or("layer_norm_epsilon", r.number_or("norm_eps", 1e-5)));
  const Heads heads = set_heads(r, c);
  r.set_int("vocab_size", r.integer("vocab_size"));
  r.set_int("rope.dimension_count", c.d_model / heads.n_heads);
  r.set_bool("rope.scaling.finetuned", false);
  Mamba2Sizes sizes{r.integer("conv_kernel"), r.integer("ssm_state_size"), r.integer("n_groups"),
                    r.integer("mamba_num_heads"), 0};
  sizes.inner_size = sizes.n_heads * r.integer("mamba_head_dim");
  set_mamba2(r, sizes);
  const bool has_experts = r.arch() == "nemotron_h_moe";
  if (has_experts) set_expert_keys(r);

  const std::vector<Kind> kinds = read_kinds(r, c.n_layers);
  const int64_t width = r.integer(has_experts ? "moe_intermediate_size" : "intermediate_size");
  std::vector<int64_t> kv_heads, widths;
  for (const Kind kind : kinds) {
    kv_heads.push_back(kind == Kind::attention ? heads.n_kv_heads : 0);
    widths.push_back(kind == Kind::mlp || kind == Kind::experts ? width : 0);
    if (kind == (has_experts ? Kind::mlp : Kind::experts)) {
      r.fail(Code::unsupported, "config.json: MLP and expert layers in one model");
    }
  }
  r.set_ints("attention.head_count_kv", kv_heads);
  r.set_ints("feed_forward_length", widths);

  add_ends(r, names, "norm_f.weight");
  for (int64_t i = 0; i < c.n_layers; ++i) {
    const std::string mixer = names.layer(i) + "mixer.";
    r.f32(block(i, "attn_norm.weight"), names.layer(i) + "norm.weight");
    switch (kinds[static_cast<size_t>(i)]) {
      case Kind::mamba: add_mamba2(r, i, mixer, sizes); break;
      // The engine rotates nothing here; the order is the one that other programs write.
      case Kind::attention: add_attention(r, i, mixer, heads, true); break;
      case Kind::mlp: add_plain_mlp(r, i, mixer); break;
      case Kind::experts: add_expert_block(r, i, mixer); break;
    }
  }
}

}  // namespace chimere::convert
