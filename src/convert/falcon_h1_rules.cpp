// falcon_h1_rules.cpp  Falcon-H1: attention and Mamba-2 side by side. Its multipliers are folded into the weights.
#include "convert/rules.h"

namespace chimere::convert {
namespace {

// Factors of the five parts of the Mamba projection: z, x, B, C, dt.
RowEdit projection_scale(const std::vector<double>& parts, double all, const Mamba2Sizes& s) {
  const uint64_t inner = static_cast<uint64_t>(s.inner_size), bc = static_cast<uint64_t>(s.n_groups * s.state_size);
  return [=](uint64_t row, std::span<float> values) {
    const size_t part = row < inner                ? 0
                        : row < 2 * inner          ? 1
                        : row < 2 * inner + bc     ? 2
                        : row < 2 * inner + 2 * bc ? 3
                                                   : 4;
    const auto factor = static_cast<float>(all * parts[part]);
    for (float& v : values) v *= factor;
  };
}

}  // namespace

void falcon_h1_rules(Recipe& r) {
  const Names names = find_names(r);
  const Common c = set_common(r);
  const Heads heads = set_heads(r, c);
  r.set_int("vocab_size", r.integer("vocab_size"));
  r.set_int("feed_forward_length", r.integer("intermediate_size"));
  Mamba2Sizes sizes{r.integer("mamba_d_conv"), r.integer("mamba_d_state"), r.integer("mamba_n_groups"),
                    r.integer("mamba_n_heads"), 0};
  sizes.inner_size = r.integer_or("mamba_d_ssm", r.integer_or("mamba_expand", 2) * c.d_model);
  set_mamba2(r, sizes);
  if (r.flag_or("mamba_rms_norm", false) && r.flag_or("mamba_norm_before_gate", true)) {
    r.fail(Code::unsupported, "config.json: mamba_norm_before_gate: expected false, found true");
  }
  std::vector<double> ssm = r.numbers("ssm_multipliers"), mlp = r.numbers("mlp_multipliers");
  if (ssm.empty()) ssm.assign(5, 1.0);
  if (mlp.empty()) mlp.assign(2, 1.0);
  if (ssm.size() != 5 || mlp.size() != 2) {
    r.fail(Code::corrupt, "config.json: expected 5 ssm_multipliers and 2 mlp_multipliers");
    ssm.resize(5);
    mlp.resize(2);
  }
  const double attention_in = r.number_or("attention_in_multiplier", 1.0);
  const double key = r.number_or("key_multiplier", 1.0);
  const RowEdit ssm_in = projection_scale(ssm, r.number_or("ssm_in_multiplier", 1.0), sizes);

  // A tied head has a factor of its own, so the file gets both.
  const bool tied = r.flag_or("tie_word_embeddings", false);
  const std::string embedding = names.prefix + "embed_tokens.weight";
  r.matrix("output.weight", tied ? embedding : "lm_head.weight").times(r.number_or("lm_head_multiplier", 1.0));
  if (tied) r.skip("lm_head.weight");
  r.matrix("token_embd.weight", embedding).times(r.number_or("embedding_multiplier", 1.0));
  r.f32("output_norm.weight", names.prefix + "final_layernorm.weight");
  set_rope(r, heads.head_dim);
  for (int64_t i = 0; i < c.n_layers; ++i) {
    const std::string layer = names.layer(i), attention = layer + "self_attn.", feed = layer + "feed_forward.";
    r.f32(block(i, "attn_norm.weight"), layer + "input_layernorm.weight");
    r.matrix(block(i, "attn_q.weight"), attention + "q_proj.weight").times(attention_in);
    r.matrix(block(i, "attn_k.weight"), attention + "k_proj.weight").times(attention_in * key);
    r.matrix(block(i, "attn_v.weight"), attention + "v_proj.weight").times(attention_in);
    r.matrix(block(i, "attn_output.weight"), attention + "o_proj.weight")
        .times(r.number_or("attention_out_multiplier", 1.0));
    add_mamba2(r, i, layer + "mamba.", sizes, ssm_in, r.number_or("ssm_out_multiplier", 1.0));
    r.f32(block(i, "ffn_norm"), layer + "pre_ff_layernorm.weight");
    r.matrix(block(i, "ffn_gate.weight"), feed + "gate_proj.weight").times(mlp[0]);
    r.matrix(block(i, "ffn_up.weight"), feed + "up_proj.weight");
    r.matrix(block(i, "ffn_down.weight"), feed + "down_proj.weight").times(mlp[1]);
  }
}

}  // namespace chimere::convert
