// config.h  Hyperparameters shared by all architectures, read from metadata with range checks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/ops.h"
#include "base/result.h"
#include "models/weight_source.h"

namespace chimere::models {

// `pooling_type` of a model that gives one score for a pair of texts.
inline constexpr int64_t kRankPooling = 4;

struct Config {
  std::string arch;      // prefix of its keys
  int n_layers = 0;      // trunk blocks; MTP blocks are not among them
  int n_mtp_layers = 0;  // draft blocks that follow the trunk
  int d_model = 0;
  int n_vocab = 0;
  int context_length = 0;
  float eps = 0;

  int n_heads = 0;              // 0 where no layer has attention
  std::vector<int> n_kv_heads;  // [n_layers + n_mtp_layers]; 0 where a layer has no attention
  int head_dim_k = 0;
  int head_dim_v = 0;
  float attention_scale = 0;

  std::vector<int> d_ff;  // [n_layers + n_mtp_layers]; 0 where a layer has none, or the file does not say

  int n_experts = 0;
  int n_experts_used = 0;
  int d_ff_expert = 0;
  int d_ff_shared = 0;

  int max_kv_heads() const;  // of the trunk
  std::string key(const char* name) const { return arch + "." + name; }
};

// Reads and checks the common keys. The source is also asked which blocks are there: a file may declare MTP blocks
// that were pruned away.
Result<Config> read_config(WeightSource& source);

// The rotary table the file asks for: plain, linear or YaRN scaling, times the factors of `rope_freqs.weight`.
Result<Rope> read_rope(WeightSource& source, const Config& config, Rope::Pairing pairing);

}  // namespace chimere::models
