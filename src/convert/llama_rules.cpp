// llama_rules.cpp  Attention and an MLP or experts: Llama, Mistral, Mixtral, Qwen2, Qwen3, Qwen3-MoE.
#include "convert/rules.h"

namespace chimere::convert {
namespace {

struct Style {
  bool adjacent_pairs = false;  // the engine rotates neighbouring rows
  bool qk_norm = false;
};

void add_layers(Recipe& r, const Names& names, const Common& c, const Heads& heads, const Style& style,
                int64_t n_experts) {
  for (int64_t i = 0; i < c.n_layers; ++i) {
    const std::string layer = names.layer(i);
    r.f32(block(i, "attn_norm.weight"), layer + "input_layernorm.weight");
    add_attention(r, i, layer + "self_attn.", heads, style.adjacent_pairs);
    if (style.qk_norm) {
      r.f32(block(i, "attn_q_norm.weight"), layer + "self_attn.q_norm.weight");
      r.f32(block(i, "attn_k_norm.weight"), layer + "self_attn.k_norm.weight");
    }
    r.f32(block(i, "ffn_norm.weight"), layer + "post_attention_layernorm.weight");
    if (n_experts == 0) {
      add_mlp(r, i, layer + "mlp.");
      continue;
    }
    const bool mixtral = r.has(layer + "block_sparse_moe.gate.weight");
    const std::string experts = layer + (mixtral ? "block_sparse_moe." : "mlp.");
    r.f32(block(i, "ffn_gate_inp.weight"), experts + "gate.weight");
    add_experts(r, i, experts, n_experts, mixtral ? ExpertNames{"w1", "w3", "w2"} : ExpertNames{});
  }
}

// What both halves of the family say about experts; 0 where there are none.
int64_t set_experts(Recipe& r) {
  const int64_t n = r.integer_or("num_experts", r.integer_or("num_local_experts", 0));
  if (n == 0) return 0;
  r.set_int("expert_count", n);
  r.set_int("expert_used_count", r.integer("num_experts_per_tok"));
  return n;
}

void note_window(Recipe& r) {
  const bool used = r.flag_or("use_sliding_window", r.configured("sliding_window"));
  if (used && r.configured("sliding_window")) {
    r.note("sliding_window " + std::to_string(r.integer("sliding_window")) +
           " is left out: every layer will see the whole context");
  }
}

}  // namespace

void llama_rules(Recipe& r) {
  const Names names = find_names(r);
  const Common c = set_common(r);
  const Heads heads = set_heads(r, c);
  r.set_int("feed_forward_length", r.integer("intermediate_size"));
  r.set_int("rope.dimension_count", heads.head_dim);
  r.set_int("vocab_size", r.integer("vocab_size"));
  const int64_t n_experts = set_experts(r);
  add_ends(r, names, "norm.weight");
  set_rope(r, heads.head_dim);
  add_layers(r, names, c, heads, {.adjacent_pairs = true}, n_experts);
  note_window(r);
}

void qwen_rules(Recipe& r) {
  const Names names = find_names(r);
  const Common c = set_common(r);
  const Heads heads = set_heads(r, c);
  const int64_t n_experts = set_experts(r);
  r.set_int("feed_forward_length", r.integer("intermediate_size"));
  if (n_experts > 0) {
    r.set_int("expert_feed_forward_length", r.integer("moe_intermediate_size"));
    if (!r.flag_or("norm_topk_prob", true)) {
      r.fail(Code::unsupported, "config.json: norm_topk_prob: expected true, found false");
    }
    if (r.integer_or("decoder_sparse_step", 1) != 1 || !r.integers("mlp_only_layers").empty()) {
      r.fail(Code::unsupported, "config.json: layers without experts among layers with experts");
    }
  }
  add_ends(r, names, "norm.weight");
  set_rope(r, heads.head_dim);
  add_layers(r, names, c, heads, {.qk_norm = r.arch() != "qwen2"}, n_experts);
  note_window(r);
}

}  // namespace chimere::convert
