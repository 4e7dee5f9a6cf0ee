// qwen35_rules.cpp  Gated DeltaNet with gated attention every few layers: Qwen3.5, its experts, and Qwen3-Next.
//
// All norms but the one inside the DeltaNet are stored as w and used as 1 + w; the file has the sum. Qwen3.5 files have
// the value heads in tiles (head j belongs to key head j % n) where the checkpoint groups them (h / r); Qwen3-Next
// files keep the groups, and their fused projections are split into q, k, v and z.
#include "convert/rules.h"

namespace chimere::convert {
namespace {

struct Gdn {
  uint64_t n_key = 0, n_value = 0, d = 0;
  uint64_t ratio() const { return n_value / n_key; }
  uint64_t key_dim() const { return n_key * d; }
  uint64_t value_dim() const { return n_value * d; }
  // Where the value head at place j of the file stands in the checkpoint.
  uint64_t grouped(uint64_t j) const { return j % n_key * ratio() + j / n_key; }
  // The same for rows or columns, `width` to a head, after `before` that keep their place.
  IndexMap tiles(uint64_t width, uint64_t before = 0) const {
    return [g = *this, width, before](uint64_t at) {
      if (at < before) return at;
      const uint64_t in = at - before;
      return before + g.grouped(in / width) * width + in % width;
    };
  }
};

Gdn set_gdn(Recipe& r) {
  Gdn g;
  g.n_key = static_cast<uint64_t>(r.integer("linear_num_key_heads"));
  g.n_value = static_cast<uint64_t>(r.integer("linear_num_value_heads"));
  g.d = static_cast<uint64_t>(r.integer("linear_key_head_dim"));
  const int64_t d_value = r.integer("linear_value_head_dim");
  if (static_cast<uint64_t>(d_value) != g.d || g.n_value % g.n_key != 0) {
    r.fail(Code::unsupported,
           "config.json: linear attention: expected key and value heads of one size, and value heads a multiple of key "
           "heads");
    g.n_value = g.n_key;
  }
  r.set_int("ssm.conv_kernel", r.integer("linear_conv_kernel_dim"));
  r.set_int("ssm.state_size", static_cast<int64_t>(g.d));
  r.set_int("ssm.group_count", static_cast<int64_t>(g.n_key));
  r.set_int("ssm.time_step_rank", static_cast<int64_t>(g.n_value));
  r.set_int("ssm.inner_size", static_cast<int64_t>(g.value_dim()));
  return g;
}

// Qwen3-Next: for each key head its q, k, then the v and z of its value heads.
void add_fused_projections(Recipe& r, int64_t i, const std::string& in, const Gdn& g) {
  const uint64_t dv = g.ratio() * g.d, stride = 2 * g.d + 2 * dv;
  Target& qkv = r.matrix(block(i, "attn_qkv.weight"), in + "in_proj_qkvz.weight");
  qkv.ne[1] = 2 * g.key_dim() + g.value_dim();
  qkv.with_rows([g, dv, stride](uint64_t row) {
    if (row < g.key_dim()) return row / g.d * stride + row % g.d;
    if (row < 2 * g.key_dim()) return (row - g.key_dim()) / g.d * stride + g.d + row % g.d;
    const uint64_t v = row - 2 * g.key_dim();
    return v / dv * stride + 2 * g.d + v % dv;
  });
  Target& z = r.matrix(block(i, "attn_gate.weight"), in + "in_proj_qkvz.weight");
  z.ne[1] = g.value_dim();
  z.with_rows([g, dv, stride](uint64_t row) { return row / dv * stride + 2 * g.d + dv + row % dv; });
  r.matrix(block(i, "ssm_ba.weight"), in + "in_proj_ba.weight");
}

void add_gdn(Recipe& r, int64_t i, const std::string& in, const Gdn& g, bool tiled) {
  const bool fused = r.has(in + "in_proj_qkvz.weight");
  const auto tiles = [&](uint64_t width, uint64_t before = 0) {
    return tiled && g.ratio() > 1 ? g.tiles(width, before) : IndexMap{};
  };
  if (fused) {
    if (tiled)
      return r.fail(Code::unsupported, "tensor '" + in + "in_proj_qkvz.weight': expected separate projections");
    add_fused_projections(r, i, in, g);
  } else {
    r.matrix(block(i, "attn_qkv.weight"), in + "in_proj_qkv.weight").with_rows(tiles(g.d, 2 * g.key_dim()));
    r.matrix(block(i, "attn_gate.weight"), in + "in_proj_z.weight").with_rows(tiles(g.d));
    r.matrix(block(i, "ssm_alpha.weight"), in + "in_proj_a.weight").with_rows(tiles(1));
    r.matrix(block(i, "ssm_beta.weight"), in + "in_proj_b.weight").with_rows(tiles(1));
  }
  r.f32(block(i, "ssm_conv1d.weight"), in + "conv1d.weight").with_rows(tiles(g.d, 2 * g.key_dim()));
  r.f32(block(i, "ssm_a"), in + "A_log").minus_exp().with_columns(tiles(1));
  r.f32(block(i, "ssm_dt.bias"), in + "dt_bias").with_columns(tiles(1));
  r.f32(block(i, "ssm_norm.weight"), in + "norm.weight");
  r.matrix(block(i, "ssm_out.weight"), in + "out_proj.weight").with_columns(tiles(g.d));
}

void add_gated_attention(Recipe& r, int64_t i, const std::string& in, const Heads& heads) {
  add_attention(r, i, in, heads, false);
  r.f32(block(i, "attn_q_norm.weight"), in + "q_norm.weight").plus_one();
  r.f32(block(i, "attn_k_norm.weight"), in + "k_norm.weight").plus_one();
}

void add_feed_forward(Recipe& r, int64_t i, const std::string& in, int64_t n_experts) {
  if (n_experts == 0) return add_mlp(r, i, in);
  r.f32(block(i, "ffn_gate_inp.weight"), in + "gate.weight");
  add_experts(r, i, in, n_experts);
  r.f32(block(i, "ffn_gate_inp_shexp.weight"), in + "shared_expert_gate.weight");
  r.matrix(block(i, "ffn_gate_shexp.weight"), in + "shared_expert.gate_proj.weight");
  r.matrix(block(i, "ffn_up_shexp.weight"), in + "shared_expert.up_proj.weight");
  r.matrix(block(i, "ffn_down_shexp.weight"), in + "shared_expert.down_proj.weight");
}

// The block that predicts one token further ahead, after the trunk.
void add_draft_block(Recipe& r, int64_t i, const Heads& heads, int64_t n_experts) {
  r.matrix(block(i, "nextn.eh_proj.weight"), "mtp.fc.weight");
  r.f32(block(i, "nextn.enorm.weight"), "mtp.pre_fc_norm_embedding.weight").plus_one();
  r.f32(block(i, "nextn.hnorm.weight"), "mtp.pre_fc_norm_hidden.weight").plus_one();
  r.f32(block(i, "nextn.shared_head_norm.weight"), "mtp.norm.weight").plus_one();
  r.f32(block(i, "attn_norm.weight"), "mtp.layers.0.input_layernorm.weight").plus_one();
  add_gated_attention(r, i, "mtp.layers.0.self_attn.", heads);
  r.f32(block(i, "post_attention_norm.weight"), "mtp.layers.0.post_attention_layernorm.weight").plus_one();
  add_feed_forward(r, i, "mtp.layers.0.mlp.", n_experts);
}

}  // namespace

void qwen35_rules(Recipe& r) {
  const bool tiled = r.arch() != "qwen3next";
  const Names names = find_names(r);
  const Common c = set_common(r);
  const Heads heads = set_heads(r, c);
  const Gdn g = set_gdn(r);
  const int64_t n_experts = r.integer_or("num_experts", 0);
  if (n_experts > 0) {
    r.set_int("expert_count", n_experts);
    r.set_int("expert_used_count", r.integer("num_experts_per_tok"));
    r.set_int("expert_feed_forward_length", r.integer("moe_intermediate_size"));
    r.set_int("expert_shared_feed_forward_length", r.integer("shared_expert_intermediate_size"));
  }
  if (r.configured("intermediate_size")) r.set_int("feed_forward_length", r.integer("intermediate_size"));

  const int64_t interval = std::max<int64_t>(1, r.integer_or("full_attention_interval", 4));
  r.set_int("full_attention_interval", interval);
  const double part = r.number_or("rope_parameters/partial_rotary_factor", r.number_or("partial_rotary_factor", 0.25));
  r.set_int("rope.dimension_count", static_cast<int64_t>(static_cast<double>(heads.head_dim) * part));
  if (tiled) {
    std::vector<int64_t> sections = r.integers("rope_parameters/mrope_section");
    if (sections.empty()) sections = r.integers("rope_scaling/mrope_section");
    if (sections.empty()) r.fail(Code::corrupt, "config.json: mrope_section is missing");
    sections.resize(4);
    r.set_ints("rope.dimension_sections", sections);
  }
  add_ends(r, names, "norm.weight").plus_one();
  set_rope(r, heads.head_dim);

  const std::vector<std::string> types = r.texts("layer_types");
  for (int64_t i = 0; i < c.n_layers; ++i) {
    const bool full = (i + 1) % interval == 0;
    const size_t at = static_cast<size_t>(i);
    if (at < types.size() && (types[at] == "full_attention") != full) {
      r.fail(Code::unsupported, "config.json: layer_types: layer " + std::to_string(i) + " is '" + types[at] +
                                    "', which full_attention_interval " + std::to_string(interval) + " does not say");
    }
    const std::string layer = names.layer(i);
    r.f32(block(i, "attn_norm.weight"), layer + "input_layernorm.weight").plus_one();
    if (full) {
      add_gated_attention(r, i, layer + "self_attn.", heads);
    } else {
      add_gdn(r, i, layer + "linear_attn.", g, tiled);
    }
    r.f32(block(i, "post_attention_norm.weight"), layer + "post_attention_layernorm.weight").plus_one();
    add_feed_forward(r, i, layer + "mlp.", n_experts);
  }
  if (r.has("mtp.fc.weight")) {
    add_draft_block(r, c.n_layers, heads, n_experts);
    r.set_int("block_count", c.n_layers + 1);
    r.set_int("nextn_predict_layers", 1);
  }
}

}  // namespace chimere::convert
