// dflash_rules.cpp  DFlash drafters: layers of Qwen3 without embedding and head, and the projection of the states that they
// read. The file has no tokenizer: its tokens are those of the model that it drafts for.
#include <cmath>

#include "convert/rules.h"

namespace chimere::convert {
namespace {

// Evenly from the second layer of the model to the third from its end, as published drafters are made.
std::vector<int64_t> default_taps(Recipe& r, int64_t n_layers) {
  const int64_t n_model = r.count("num_target_layers", kMaxLayers);
  if (n_layers == 1) return {n_model / 2};
  std::vector<int64_t> taps;
  const auto span = static_cast<double>(n_model - 4);
  for (int64_t i = 0; i < n_layers; ++i) {
    taps.push_back(std::lrint(1 + static_cast<double>(i) * span / static_cast<double>(n_layers - 1)));
  }
  return taps;
}

void set_windows(Recipe& r) {
  if (!r.flag_or("use_sliding_window", false) || !r.configured("sliding_window")) return;
  std::vector<int64_t> has_one;
  for (const std::string& type : r.texts("layer_types")) has_one.push_back(type == "sliding_attention" ? 1 : 0);
  r.set_int("attention.sliding_window", r.integer("sliding_window"));
  r.set_ints("attention.sliding_window_pattern", has_one);
}

}  // namespace

void dflash_rules(Recipe& r) {
  const Names names = find_names(r, "fc.weight");
  const Common c = set_common(r);
  const Heads heads = set_heads(r, c);
  r.set_int("feed_forward_length", r.integer("intermediate_size"));
  r.set_int("vocab_size", r.integer("vocab_size"));
  r.set_int("block_size", r.integer_or("block_size", 16));
  std::vector<int64_t> taps = r.integers("dflash_config/target_layer_ids");
  if (taps.empty()) taps = default_taps(r, c.n_layers);
  // The file counts inputs of layers: input i + 1 is the output of layer i.
  for (int64_t& tap : taps) ++tap;
  r.set_ints("target_layers", taps);
  const int64_t mask = r.integer_or("dflash_config/mask_token_id", -1);
  if (mask < 0 || mask > UINT32_MAX) {
    return r.fail(Code::corrupt, "config.json: dflash_config/mask_token_id: expected a token, found " +
                                     (mask < 0 ? std::string("none") : std::to_string(mask)));
  }
  r.metadata().set_int("tokenizer.ggml.mask_token_id", gguf::ValueType::u32, mask);
  set_windows(r);
  set_rope(r, heads.head_dim);
  r.matrix("fc.weight", names.prefix + "fc.weight");
  r.f32("enc.output_norm.weight", names.prefix + "hidden_norm.weight");
  r.f32("output_norm.weight", names.prefix + "norm.weight");
  for (int64_t i = 0; i < c.n_layers; ++i) {
    const std::string layer = names.layer(i);
    r.f32(block(i, "attn_norm.weight"), layer + "input_layernorm.weight");
    add_attention(r, i, layer + "self_attn.", heads, false);
    r.f32(block(i, "attn_q_norm.weight"), layer + "self_attn.q_norm.weight");
    r.f32(block(i, "attn_k_norm.weight"), layer + "self_attn.k_norm.weight");
    r.f32(block(i, "ffn_norm.weight"), layer + "post_attention_layernorm.weight");
    add_mlp(r, i, layer + "mlp.");
  }
}

}  // namespace chimere::convert
