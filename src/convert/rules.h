// rules.h  What the conversion rules of several families share.
//
// A family is one function that fills a Recipe, in its own file, and its lines in families.cpp. Names on the left are
// GGUF's, on the right the checkpoint's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convert/recipe.h"

namespace chimere::convert {

// "blk.3.attn_q.weight"
std::string block(int64_t i, const char* name);

// Where the layers of the text model lie: "model." for most, "model.language_model." beside an image part.
struct Names {
  std::string prefix;
  std::string layer(int64_t i) const { return prefix + "layers." + std::to_string(i) + "."; }
};

// The first of the usual prefixes under which `embedding` exists; a missing one is kept as the recipe's error.
Names find_names(Recipe& r, const char* embedding = "embed_tokens.weight");

// What config.json may ask for. Far above any model there is, and low enough that a wrong number is refused at once.
inline constexpr int64_t kMaxLayers = 512;
inline constexpr int64_t kMaxExperts = 4096;
inline constexpr int64_t kMaxHeadDim = 65536;

// block_count, context_length, embedding_length, the RMS epsilon, and vocab_size by the rows of the embedding.
struct Common {
  int64_t n_layers = 0;
  int64_t d_model = 0;
};
Common set_common(Recipe& r, const char* epsilon_key = "rms_norm_eps");
// What converters write where a model has no positions to run out of.
inline constexpr int64_t kUnboundedContext = 1 << 20;

// head_count, head_count_kv, and key_length/value_length where config.json has head_dim. The head dimension.
struct Heads {
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
};
Heads set_heads(Recipe& r, const Common& c);

// rope.freq_base and rope.scaling.*; the factors of Llama 3 become rope_freqs.weight.
void set_rope(Recipe& r, int64_t n_rot);

// token_embd, output_norm, and output unless the head is tied to the embedding. The norm, to edit.
Target& add_ends(Recipe& r, const Names& names, const char* norm, bool tied_by_default = false);

// attn_q, attn_k, attn_v, attn_output with the biases that are there. Rows of q and k change from halves to adjacent
// pairs where the engine rotates those.
void add_attention(Recipe& r, int64_t i, const std::string& source, const Heads& heads, bool adjacent_pairs);
// The order of rows (or of a bias) after that change.
IndexMap adjacent_pairs(int64_t head_dim);

// ffn_gate, ffn_up, ffn_down.
void add_mlp(Recipe& r, int64_t i, const std::string& source);
// ffn_gate_exps, ffn_up_exps, ffn_down_exps, from one tensor for each expert or from tensors of all.
struct ExpertNames {
  const char* gate = "gate_proj";
  const char* up = "up_proj";
  const char* down = "down_proj";
};
void add_experts(Recipe& r, int64_t i, const std::string& source, int64_t n_experts, const ExpertNames& names = {});
// A tensor whose rows are `first` and `second` in turn for each of its matrices: the two halves.
void add_halves(Recipe& r, const std::string& first, const std::string& second, const std::string& source);

// ssm_* of Mamba-2 under `source`, with the metadata of set_mamba2.
struct Mamba2Sizes {
  int64_t conv_kernel = 0;
  int64_t state_size = 0;
  int64_t n_groups = 0;
  int64_t n_heads = 0;
  int64_t inner_size = 0;
};
void set_mamba2(Recipe& r, const Mamba2Sizes& sizes);
// `in_scale`: what the rows of ssm_in are multiplied with; `out_scale`: all of ssm_out.
void add_mamba2(Recipe& r, int64_t i, const std::string& source, const Mamba2Sizes& sizes, RowEdit in_scale = {},
                double out_scale = 1.0);
// ssm_* of Mamba-1.
void add_mamba1(Recipe& r, int64_t i, const std::string& source);
struct Mamba1Sizes {
  int64_t conv_kernel = 0;
  int64_t state_size = 0;
  int64_t inner_size = 0;
  int64_t rank = 0;  // of the time step
};
void set_mamba1(Recipe& r, const Mamba1Sizes& sizes);

}  // namespace chimere::convert
