#include "models/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tensor/dequantize.h"

namespace chimere::models {
namespace {

constexpr int64_t kMaxVocab = 1 << 19;  // what the sampler holds; twice the largest vocabulary we know
constexpr int64_t kMaxWidth = 1 << 20;  // of any vector a token has: far above real models, far below overflow

Error bad(const std::string& what) { return {Code::corrupt, what}; }

bool has_tensor(WeightSource& source, const std::string& name) {
  return source.find(name, {1, 1, 1, 1}, false) != nullptr;
}

// Some files keep `nextn_predict_layers` although the MTP tensors were pruned away.
Status split_off_mtp(WeightSource& source, Config& c, int n_all) {
  TRY_ASSIGN(const int64_t n_mtp, source.metadata().get_int_or(c.key("nextn_predict_layers"), 0, n_all - 1, 0));
  c.n_layers = n_all;
  if (n_mtp == 0) return Ok{};
  const std::string last = "blk." + std::to_string(n_all - 1);
  if (has_tensor(source, last + ".nextn.eh_proj.weight")) {
    c.n_mtp_layers = static_cast<int>(n_mtp);
    c.n_layers = n_all - c.n_mtp_layers;
  } else if (!has_tensor(source, last + ".attn_norm.weight")) {
    c.n_layers = n_all - static_cast<int>(n_mtp);
  }
  return Ok{};
}

Status read_vocabulary_size(WeightSource& source, Config& c) {
  const gguf::Metadata& m = source.metadata();
  const gguf::Value* tokens = m.find("tokenizer.ggml.tokens");
  const TensorView* table = source.find("token_embd.weight", {1, 1, 1, 1}, false);
  if (table) {
    if (table->ne[1] > kMaxVocab) {
      return bad("token_embd.weight: expected at most " + std::to_string(kMaxVocab) + " rows, found " +
                 to_string(table->ne));
    }
    c.n_vocab = static_cast<int>(table->ne[1]);
  } else if (tokens && !m.contains(c.key("vocab_size"))) {
    c.n_vocab = static_cast<int>(std::min<size_t>(tokens->array_size(), kMaxVocab + 1));
    if (c.n_vocab < 1 || c.n_vocab > kMaxVocab) return bad("tokenizer.ggml.tokens: too few or too many entries");
  } else {
    if (!m.contains(c.key("vocab_size"))) return bad("tensor 'token_embd.weight' is missing");
    TRY_ASSIGN(const int64_t n, m.get_int(c.key("vocab_size"), 1, kMaxVocab));
    c.n_vocab = static_cast<int>(n);
  }
  if (tokens && tokens->array_size() != static_cast<size_t>(c.n_vocab)) {
    return bad("vocabulary: tokenizer.ggml.tokens has " + std::to_string(tokens->array_size()) +
               " entries, token_embd.weight has " + std::to_string(c.n_vocab) + " rows");
  }
  return Ok{};
}

Status read_attention(const gguf::Metadata& m, Config& c, int n_all) {
  TRY_ASSIGN(const std::vector<int64_t> heads, m.get_int_per_layer(c.key("attention.head_count"), n_all, 0, 1024));
  for (int i = 0; i < c.n_layers; ++i) c.n_heads = std::max(c.n_heads, static_cast<int>(heads[i]));
  if (c.n_heads == 0) {  // nothing but recurrent layers
    c.n_kv_heads.assign(c.n_layers + c.n_mtp_layers, 0);
    return Ok{};
  }
  for (int i = 0; i < c.n_layers; ++i) {
    if (heads[i] != 0 && heads[i] != c.n_heads) {
      return Error{Code::unsupported, c.key("attention.head_count") + ": layers with different numbers of heads (" +
                                          std::to_string(c.n_heads) + " and " + std::to_string(heads[i]) + ")"};
    }
  }
  std::vector<int64_t> kv(n_all, c.n_heads);
  if (m.contains(c.key("attention.head_count_kv"))) {
    TRY_ASSIGN(kv, m.get_int_per_layer(c.key("attention.head_count_kv"), n_all, 0, 1024));
  }
  for (int i = 0; i < c.n_layers; ++i) {
    if (kv[i] > 0 && c.n_heads % kv[i] != 0) {
      return bad(c.key("attention.head_count_kv") + ": " + std::to_string(c.n_heads) + " heads cannot share " +
                 std::to_string(kv[i]) + " key/value heads");
    }
    c.n_kv_heads.push_back(static_cast<int>(kv[i]));
  }
  // Of draft blocks only those that are run are checked, with the trunk's.
  for (int i = 0; i < c.n_mtp_layers; ++i) c.n_kv_heads.push_back(static_cast<int>(kv[c.n_layers + i]));
  const int64_t default_dim = c.d_model / c.n_heads;
  TRY_ASSIGN(const int64_t dk, m.get_int_or(c.key("attention.key_length"), 1, 4096, default_dim));
  TRY_ASSIGN(const int64_t dv, m.get_int_or(c.key("attention.value_length"), 1, 4096, default_dim));
  if (dk < 1 || dv < 1) return bad(c.key("attention.head_count") + " exceeds the embedding length");
  c.head_dim_k = static_cast<int>(dk);
  c.head_dim_v = static_cast<int>(dv);
  TRY_ASSIGN(const double scale, m.get_float_or(c.key("attention.scale"), 0.0));
  c.attention_scale = scale != 0.0 ? static_cast<float>(scale) : 1.0f / std::sqrt(static_cast<float>(dk));
  return Ok{};
}

Status read_experts(const gguf::Metadata& m, Config& c) {
  TRY_ASSIGN(const int64_t n, m.get_int_or(c.key("expert_count"), 0, 1024, 0));
  c.n_experts = static_cast<int>(n);
  if (n == 0) return Ok{};
  TRY_ASSIGN(const int64_t used, m.get_int(c.key("expert_used_count"), 1, n));
  const int widest = *std::max_element(c.d_ff.begin(), c.d_ff.begin() + c.n_layers);
  TRY_ASSIGN(const int64_t ff, m.get_int_or(c.key("expert_feed_forward_length"), 1, kMaxWidth, widest));
  TRY_ASSIGN(const int64_t shared, m.get_int_or(c.key("expert_shared_feed_forward_length"), 0, kMaxWidth, 0));
  if (ff < 1) return bad(c.key("expert_feed_forward_length") + " is missing");
  c.n_experts_used = static_cast<int>(used);
  c.d_ff_expert = static_cast<int>(ff);
  c.d_ff_shared = static_cast<int>(shared);
  TRY_ASSIGN(const int64_t groups, m.get_int_or(c.key("expert_group_count"), 0, 1024, 0));
  if (groups > 1) {
    return Error{Code::unsupported,
                 c.key("expert_group_count") + ": group-limited routing (" + std::to_string(groups) + " groups)"};
  }
  return Ok{};
}

}  // namespace

int Config::max_kv_heads() const { return *std::max_element(n_kv_heads.begin(), n_kv_heads.begin() + n_layers); }

Result<Config> read_config(WeightSource& source) {
  const gguf::Metadata& m = source.metadata();
  Config c;
  TRY_ASSIGN(const std::string_view arch, m.get_string("general.architecture"));
  c.arch = arch;
  TRY_ASSIGN(const int64_t n_all, m.get_int(c.key("block_count"), 1, 512));
  TRY(split_off_mtp(source, c, static_cast<int>(n_all)));
  TRY_ASSIGN(const int64_t d_model, m.get_int(c.key("embedding_length"), 1, kMaxWidth));
  c.d_model = static_cast<int>(d_model);
  // A claim, not an allocation request: clamped, and memory is taken page by page as positions are reached.
  TRY_ASSIGN(const int64_t context, m.get_int_or(c.key("context_length"), 1, int64_t{1} << 40, 4096));
  c.context_length = static_cast<int>(std::min<int64_t>(context, 1 << 24));
  // RMSNorm or LayerNorm: a model has one of them.
  const std::string rms = c.key("attention.layer_norm_rms_epsilon");
  const std::string eps_key = m.contains(rms) || c.arch != "bert" ? rms : c.key("attention.layer_norm_epsilon");
  TRY_ASSIGN(const double eps, m.get_float(eps_key));
  if (!(eps > 0 && eps < 1)) return bad(eps_key + ": expected 0 < eps < 1");
  c.eps = static_cast<float>(eps);
  const int n_run = c.n_layers + c.n_mtp_layers;
  c.d_ff.assign(n_run, 0);
  if (m.contains(c.key("feed_forward_length"))) {
    TRY_ASSIGN(const std::vector<int64_t> ff, m.get_int_per_layer(c.key("feed_forward_length"), n_all, 0, kMaxWidth));
    for (int i = 0; i < n_run; ++i) c.d_ff[i] = static_cast<int>(ff[i]);
  }
  TRY(read_vocabulary_size(source, c));
  TRY(read_attention(m, c, static_cast<int>(n_all)));
  TRY(read_experts(m, c));
  return Result<Config>{std::move(c)};
}

Result<Rope> read_rope(WeightSource& source, const Config& c, Rope::Pairing pairing) {
  const gguf::Metadata& m = source.metadata();
  TRY_ASSIGN(const int64_t n_rot, m.get_int_or(c.key("rope.dimension_count"), 2, c.head_dim_k, c.head_dim_k));
  if (n_rot % 2 != 0)
    return bad(c.key("rope.dimension_count") + ": expected an even number, found " + std::to_string(n_rot));
  TRY_ASSIGN(const double base, m.get_float_or(c.key("rope.freq_base"), 10000.0));
  if (!(base > 0)) return bad(c.key("rope.freq_base") + ": expected more than 0");

  std::string scaling = "none";
  if (m.contains(c.key("rope.scaling.type"))) {
    TRY_ASSIGN(const std::string_view type, m.get_string(c.key("rope.scaling.type")));
    scaling = type;
  }
  TRY_ASSIGN(const double factor, m.get_float_or(c.key("rope.scaling.factor"), 1.0));
  TRY_ASSIGN(const double attn_factor, m.get_float_or(c.key("rope.scaling.attn_factor"), 1.0));
  if (scaling != "none" && !(factor > 0)) return bad(c.key("rope.scaling.factor") + ": expected more than 0");

  Rope rope;
  rope.pairing = pairing;
  const int half = static_cast<int>(n_rot / 2);
  std::vector<double> freq(half);
  for (int k = 0; k < half; ++k) freq[k] = std::pow(base, -2.0 * k / static_cast<double>(n_rot));

  if (scaling == "linear") {
    for (double& f : freq) f /= factor;
  } else if (scaling == "yarn") {
    TRY_ASSIGN(const int64_t original,
               m.get_int_or(c.key("rope.scaling.original_context_length"), 1, int64_t{1} << 40, c.context_length));
    TRY_ASSIGN(const double fast, m.get_float_or(c.key("rope.scaling.yarn_beta_fast"), 32.0));
    TRY_ASSIGN(const double slow, m.get_float_or(c.key("rope.scaling.yarn_beta_slow"), 1.0));
    TRY_ASSIGN(const double ext, m.get_float_or(c.key("rope.scaling.yarn_ext_factor"), 1.0));
    if (!(fast > 0 && slow > 0)) return bad(c.key("rope.scaling.yarn_beta_*") + ": expected more than 0");
    auto dim = [&](double beta) {
      return static_cast<double>(n_rot) * std::log(static_cast<double>(original) / (2 * std::numbers::pi * beta)) /
             (2 * std::log(base));
    };
    const double lo = std::max(0.0, std::floor(dim(fast)));
    const double hi = std::min(static_cast<double>(n_rot - 1), std::ceil(dim(slow)));
    // A negative extension factor is how files say "not set".
    const double blend = ext < 0 ? 1.0 : ext;
    for (int k = 0; k < half; ++k) {
      const double ramp = blend * (1 - std::clamp((k - lo) / std::max(0.001, hi - lo), 0.0, 1.0));
      freq[k] = freq[k] / factor * (1 - ramp) + freq[k] * ramp;
    }
    rope.magnitude = static_cast<float>((1.0 + 0.1 * std::log(factor)) * attn_factor);
  } else if (scaling != "none") {
    return Error{Code::unsupported,
                 c.key("rope.scaling.type") + ": expected none, linear or yarn, found '" + scaling + "'"};
  }

  if (const TensorView* t = source.find("rope_freqs.weight", {static_cast<uint64_t>(half), 1, 1, 1}, false)) {
    if (t->elems() != static_cast<uint64_t>(half) || t->type != DType::F32) {
      return bad("rope_freqs.weight: expected " + std::to_string(half) + " F32 values, found " + to_string(t->ne));
    }
    std::vector<float> divide(half);
    dequantize_row(t->type, t->data, divide.data(), half);
    for (int k = 0; k < half; ++k) {
      if (!(divide[k] > 0)) return bad("rope_freqs.weight: expected positive factors");
      freq[k] /= divide[k];
    }
  }
  for (double f : freq) {
    if (!std::isfinite(f)) return bad("rotary frequencies are not finite");
    rope.inv_freq.push_back(static_cast<float>(f));
  }
  return Result<Rope>{std::move(rope)};
}

}  // namespace chimere::models
