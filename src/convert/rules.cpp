#include "convert/rules.h"

#include <cmath>
#include <numbers>

namespace chimere::convert {

std::string block(int64_t i, const char* name) { return "blk." + std::to_string(i) + "." + name; }

Names find_names(Recipe& r, const char* embedding) {
  for (const char* prefix : {"model.", "model.language_model.", "language_model.model.", "backbone.", ""}) {
    if (r.has(std::string(prefix) + embedding)) return {prefix};
  }
  r.require(std::string("model.") + embedding);
  return {"model."};
}

Common set_common(Recipe& r, const char* epsilon_key) {
  const Common c{r.count("num_hidden_layers", kMaxLayers), r.integer("hidden_size")};
  r.set_int("block_count", c.n_layers);
  r.set_int("context_length", r.integer_or("max_position_embeddings", kUnboundedContext));
  r.set_int("embedding_length", c.d_model);
  r.set_float("attention.layer_norm_rms_epsilon", r.number(epsilon_key));
  return c;
}

Heads set_heads(Recipe& r, const Common& c) {
  Heads heads;
  heads.n_heads = r.integer("num_attention_heads");
  heads.n_kv_heads = r.integer_or("num_key_value_heads", heads.n_heads);
  heads.head_dim = std::max<int64_t>(1, r.integer_or("head_dim", c.d_model / heads.n_heads));
  r.set_int("attention.head_count", heads.n_heads);
  r.set_int("attention.head_count_kv", heads.n_kv_heads);
  if (r.configured("head_dim")) {
    r.set_int("attention.key_length", heads.head_dim);
    r.set_int("attention.value_length", heads.head_dim);
  }
  return heads;
}

namespace {

// Llama 3.1: long wavelengths are stretched by `factor`, short ones kept, those between blended.
std::vector<float> llama3_factors(Recipe& r, const std::string& in, double base, int64_t n_rot) {
  const double factor = r.number(in + "factor"), low = r.number(in + "low_freq_factor");
  const double high = r.number(in + "high_freq_factor");
  const auto original = static_cast<double>(r.integer(in + "original_max_position_embeddings"));
  std::vector<float> out;
  if (!(factor >= 1 && low > 0 && high > low)) {
    r.fail(Code::corrupt, "config.json: rope scaling: expected factor >= 1 and 0 < low_freq_factor < high_freq_factor");
    return out;
  }
  for (int64_t k = 0; k < n_rot / 2; ++k) {
    const double wavelength =
        2 * std::numbers::pi * std::pow(base, 2.0 * static_cast<double>(k) / static_cast<double>(n_rot));
    double divide = 1;
    if (wavelength > original / low) {
      divide = factor;
    } else if (wavelength >= original / high) {
      const double smooth = (original / wavelength - low) / (high - low);
      divide = 1 / ((1 - smooth) / factor + smooth);
    }
    out.push_back(static_cast<float>(divide));
  }
  return out;
}

}  // namespace

void set_rope(Recipe& r, int64_t n_rot) {
  // Older files have rope_theta and rope_scaling, newer ones rope_parameters with both.
  const bool newer = r.configured("rope_parameters");
  const std::string in = newer ? "rope_parameters/" : "rope_scaling/";
  const double base = r.number_or(newer ? "rope_parameters/rope_theta" : "rope_theta", 10000.0);
  if (!(base > 0)) return r.fail(Code::corrupt, "config.json: rope_theta: expected more than 0");
  r.set_float("rope.freq_base", base);
  if (!newer && !r.configured("rope_scaling")) return;
  const std::string type = r.text_or(in + "rope_type", r.text_or(in + "type", "default"));
  if (type == "default" || type == "mrope") return;
  if (type == "linear") {
    r.set_string("rope.scaling.type", "linear");
    r.set_float("rope.scaling.factor", r.number(in + "factor"));
  } else if (type == "yarn") {
    r.set_string("rope.scaling.type", "yarn");
    r.set_float("rope.scaling.factor", r.number(in + "factor"));
    r.set_int("rope.scaling.original_context_length", r.integer(in + "original_max_position_embeddings"));
    if (r.configured(in + "beta_fast")) r.set_float("rope.scaling.yarn_beta_fast", r.number(in + "beta_fast"));
    if (r.configured(in + "beta_slow")) r.set_float("rope.scaling.yarn_beta_slow", r.number(in + "beta_slow"));
  } else if (type == "llama3" && n_rot > kMaxHeadDim) {
    r.fail(Code::corrupt, "config.json: expected at most " + std::to_string(kMaxHeadDim) +
                              " rotated dimensions of a head, found " + std::to_string(n_rot));
  } else if (type == "llama3") {
    r.computed("rope_freqs.weight", llama3_factors(r, in, base, n_rot));
  } else {
    r.fail(Code::unsupported,
           "config.json: rope scaling: expected default, linear, yarn or llama3, found '" + type + "'");
  }
}

Target& add_ends(Recipe& r, const Names& names, const char* norm, bool tied_by_default) {
  const bool tied = r.flag_or("tie_word_embeddings", tied_by_default);
  const bool inside = names.prefix == "language_model.model.";
  const std::string head = inside ? "language_model.lm_head.weight" : "lm_head.weight";
  if (tied) {
    r.skip(head);
  } else {
    r.matrix("output.weight", head);
  }
  const char* embedding = r.has(names.prefix + "embed_tokens.weight") ? "embed_tokens.weight" : "embeddings.weight";
  r.matrix("token_embd.weight", names.prefix + embedding);
  return r.f32("output_norm.weight", names.prefix + norm);
}

IndexMap adjacent_pairs(int64_t head_dim) {
  return [d = static_cast<uint64_t>(head_dim)](uint64_t row) {
    const uint64_t in_head = row % d;
    return row - in_head + in_head % 2 * (d / 2) + in_head / 2;
  };
}

void add_attention(Recipe& r, int64_t i, const std::string& source, const Heads& heads, bool pairs) {
  struct Part {
    const char* name;
    const char* source;
    bool rotated;
  };
  if (pairs && heads.head_dim % 2 != 0) r.fail(Code::corrupt, "config.json: expected an even head dimension");
  for (const Part& part : {Part{"attn_q", "q_proj", true}, Part{"attn_k", "k_proj", true},
                           Part{"attn_v", "v_proj", false}, Part{"attn_output", "o_proj", false}}) {
    const std::string from = source + part.source, to = block(i, part.name);
    Target& weight = r.matrix(to + ".weight", from + ".weight");
    if (part.rotated && pairs) weight.with_rows(adjacent_pairs(heads.head_dim));
    if (!r.has(from + ".bias")) continue;
    Target& bias = r.f32(to + ".bias", from + ".bias");
    if (part.rotated && pairs) bias.with_columns(adjacent_pairs(heads.head_dim));
  }
}

void add_mlp(Recipe& r, int64_t i, const std::string& source) {
  r.matrix(block(i, "ffn_gate.weight"), source + "gate_proj.weight");
  r.matrix(block(i, "ffn_up.weight"), source + "up_proj.weight");
  r.matrix(block(i, "ffn_down.weight"), source + "down_proj.weight");
}

void add_halves(Recipe& r, const std::string& first, const std::string& second, const std::string& source) {
  for (const bool upper : {false, true}) {
    Target& half = r.matrix(upper ? second : first, source);
    if (half.ne[1] % 2 != 0) {
      return r.fail(Code::corrupt, "tensor '" + source + "': expected two halves of equal size");
    }
    half.ne[1] /= 2;
    half.with_rows([n = half.ne[1], upper](uint64_t row) { return row / n * 2 * n + (upper ? n : 0) + row % n; });
  }
}

void add_experts(Recipe& r, int64_t i, const std::string& source, int64_t n_experts, const ExpertNames& names) {
  if (n_experts > kMaxExperts) {
    return r.fail(Code::corrupt, "config.json: expected at most " + std::to_string(kMaxExperts) + " experts, found " +
                                     std::to_string(n_experts));
  }
  const std::string fused = source + "experts.gate_up_proj";
  if (r.has(fused)) {
    add_halves(r, block(i, "ffn_gate_exps.weight"), block(i, "ffn_up_exps.weight"), fused);
    r.matrix(block(i, "ffn_down_exps.weight"), source + "experts.down_proj");
    return;
  }
  struct Part {
    const char* name;
    const char* source;
  };
  for (const Part& part : {Part{"ffn_gate_exps.weight", names.gate}, Part{"ffn_up_exps.weight", names.up},
                           Part{"ffn_down_exps.weight", names.down}}) {
    if (!part.source) continue;
    const std::string together = source + "experts." + part.source;  // all experts in one tensor
    if (r.has(together)) {
      r.matrix(block(i, part.name), together);
      continue;
    }
    std::vector<std::string> each;
    for (int64_t e = 0; e < n_experts; ++e) {
      each.push_back(source + "experts." + std::to_string(e) + "." + part.source + ".weight");
    }
    r.matrix(block(i, part.name), each);
  }
}

void set_mamba2(Recipe& r, const Mamba2Sizes& sizes) {
  r.set_int("ssm.conv_kernel", sizes.conv_kernel);
  r.set_int("ssm.state_size", sizes.state_size);
  r.set_int("ssm.group_count", sizes.n_groups);
  r.set_int("ssm.inner_size", sizes.inner_size);
  r.set_int("ssm.time_step_rank", sizes.n_heads);
}

void add_mamba2(Recipe& r, int64_t i, const std::string& source, const Mamba2Sizes& sizes, RowEdit in_scale,
                double out_scale) {
  const auto heads = static_cast<uint64_t>(sizes.n_heads), groups = static_cast<uint64_t>(sizes.n_groups);
  const uint64_t inner = static_cast<uint64_t>(sizes.inner_size);
  r.matrix(block(i, "ssm_in.weight"), source + "in_proj.weight").with_edit(std::move(in_scale));
  r.f32(block(i, "ssm_conv1d.weight"), source + "conv1d.weight");
  if (r.has(source + "conv1d.bias")) r.f32(block(i, "ssm_conv1d.bias"), source + "conv1d.bias");
  r.f32(block(i, "ssm_dt.bias"), source + "dt_bias");
  r.f32(block(i, "ssm_a"), source + "A_log").minus_exp().shaped({1, heads, 1, 1});
  r.f32(block(i, "ssm_d"), source + "D").shaped({1, heads, 1, 1});
  if (r.has(source + "norm.weight")) {
    r.f32(block(i, "ssm_norm.weight"), source + "norm.weight").shaped({inner / groups, groups, 1, 1});
  }
  r.matrix(block(i, "ssm_out.weight"), source + "out_proj.weight").times(out_scale);
}

void set_mamba1(Recipe& r, const Mamba1Sizes& sizes) {
  r.set_int("ssm.conv_kernel", sizes.conv_kernel);
  r.set_int("ssm.state_size", sizes.state_size);
  r.set_int("ssm.inner_size", sizes.inner_size);
  r.set_int("ssm.time_step_rank", sizes.rank);
}

void add_mamba1(Recipe& r, int64_t i, const std::string& source) {
  r.matrix(block(i, "ssm_in.weight"), source + "in_proj.weight");
  r.f32(block(i, "ssm_conv1d.weight"), source + "conv1d.weight");
  if (r.has(source + "conv1d.bias")) r.f32(block(i, "ssm_conv1d.bias"), source + "conv1d.bias");
  r.matrix(block(i, "ssm_x.weight"), source + "x_proj.weight");
  r.matrix(block(i, "ssm_dt.weight"), source + "dt_proj.weight");
  r.f32(block(i, "ssm_dt.bias"), source + "dt_proj.bias");
  r.f32(block(i, "ssm_a"), source + "A_log").minus_exp();
  r.f32(block(i, "ssm_d"), source + "D");
  r.matrix(block(i, "ssm_out.weight"), source + "out_proj.weight");
}

}  // namespace chimere::convert
