// shapes_for_test.h  Names and shapes of the tensors that each model class saves, from its config.json.
//
// Written from the modelling code's parameters, not from the rules: the two must meet.
#pragma once

#include "convert/checkpoint_for_test.h"

namespace chimere::convert::test {

class Shapes {
 public:
  explicit Shapes(const Json& config) : c(config.contains("text_config") ? config["text_config"] : config) {}

  std::map<std::string, Dims> all(const std::string& model_class) {
    const std::string name = model_class;
    if (name == "BertModel") {
      bert();
    } else if (name == "MambaForCausalLM" || name == "Mamba2ForCausalLM" || name == "NemotronHForCausalLM") {
      recurrent(name);
    } else {
      decoder(name);
    }
    return out;
  }

 private:
  uint64_t u(const char* key, uint64_t fallback = 0) const {
    return c.contains(key) && c[key].is_number() ? c[key].get<uint64_t>() : fallback;
  }
  uint64_t d() const { return u("hidden_size"); }
  void add(const std::string& name, Dims shape) { out[name] = std::move(shape); }
  void linear(const std::string& name, uint64_t rows, uint64_t columns, bool bias = false) {
    add(name + ".weight", {rows, columns});
    if (bias) add(name + ".bias", {rows});
  }

  void attention(const std::string& at, uint64_t query_width = 1, bool qkv_bias = false, bool out_bias = false) {
    const uint64_t heads = u("num_attention_heads"), kv = u("num_key_value_heads", heads);
    const uint64_t hd = u("head_dim", d() / heads);
    linear(at + "q_proj", query_width * heads * hd, d(), qkv_bias);
    linear(at + "k_proj", kv * hd, d(), qkv_bias);
    linear(at + "v_proj", kv * hd, d(), qkv_bias);
    linear(at + "o_proj", d(), heads * hd, out_bias);
  }
  void qk_norms(const std::string& at) {
    const uint64_t hd = u("head_dim", d() / u("num_attention_heads"));
    add(at + "q_norm.weight", {hd});
    add(at + "k_norm.weight", {hd});
  }
  void mlp(const std::string& at, uint64_t ff) {
    linear(at + "gate_proj", ff, d());
    linear(at + "up_proj", ff, d());
    linear(at + "down_proj", d(), ff);
  }
  void each_expert(const std::string& at, uint64_t n, uint64_t ff) {
    for (uint64_t e = 0; e < n; ++e) mlp(at + "experts." + std::to_string(e) + ".", ff);
  }
  void gdn(const std::string& at, bool fused) {
    const uint64_t hk = u("linear_num_key_heads"), hv = u("linear_num_value_heads"), dh = u("linear_key_head_dim");
    const uint64_t conv = 2 * hk * dh + hv * dh;
    if (fused) {
      linear(at + "in_proj_qkvz", conv + hv * dh, d());
      linear(at + "in_proj_ba", 2 * hv, d());
    } else {
      linear(at + "in_proj_qkv", conv, d());
      linear(at + "in_proj_z", hv * dh, d());
      linear(at + "in_proj_a", hv, d());
      linear(at + "in_proj_b", hv, d());
    }
    add(at + "conv1d.weight", {conv, 1, u("linear_conv_kernel_dim")});
    add(at + "A_log", {hv});
    add(at + "dt_bias", {hv});
    add(at + "norm.weight", {dh});
    linear(at + "out_proj", d(), hv * dh);
  }
  void mamba2(const std::string& at, uint64_t heads, uint64_t inner, uint64_t groups, uint64_t state, uint64_t conv) {
    const uint64_t channels = inner + 2 * groups * state;
    linear(at + "in_proj", inner + channels + heads, d());
    add(at + "conv1d.weight", {channels, 1, conv});
    add(at + "conv1d.bias", {channels});
    for (const char* name : {"A_log", "D", "dt_bias"}) add(at + name, {heads});
    add(at + "norm.weight", {inner});
    linear(at + "out_proj", d(), inner);
  }
  void mamba1(const std::string& at, uint64_t inner, uint64_t state, uint64_t rank, uint64_t conv) {
    linear(at + "in_proj", 2 * inner, d());
    add(at + "conv1d.weight", {inner, 1, conv});
    add(at + "conv1d.bias", {inner});
    linear(at + "x_proj", rank + 2 * state, inner);
    linear(at + "dt_proj", inner, rank, true);
    add(at + "A_log", {inner, state});
    add(at + "D", {inner});
    linear(at + "out_proj", d(), inner);
  }
  void ends(const std::string& prefix, const char* embedding, const char* norm) {
    add(prefix + embedding, {u("vocab_size"), d()});
    add(prefix + norm, {d()});
    if (!c.value("tie_word_embeddings", false)) add("lm_head.weight", {u("vocab_size"), d()});
  }

  void decoder(const std::string& name) {
    const bool conditional = name.find("ConditionalGeneration") != std::string::npos;
    const std::string prefix = conditional ? "model.language_model." : "model.";
    const bool late_norm = name == "FalconH1ForCausalLM" || name == "JambaForCausalLM" || name == "BambaForCausalLM";
    ends(prefix, "embed_tokens.weight", late_norm ? "final_layernorm.weight" : "norm.weight");
    for (uint64_t i = 0; i < u("num_hidden_layers"); ++i) {
      const std::string at = prefix + "layers." + std::to_string(i) + ".";
      add(at + "input_layernorm.weight", {d()});
      add(at + (late_norm ? "pre_ff_layernorm.weight" : "post_attention_layernorm.weight"), {d()});
      layer(name, at, i);
    }
  }

  void layer(const std::string& name, const std::string& at, uint64_t i) {
    const uint64_t ff = u("intermediate_size"), experts = u("num_experts", u("num_local_experts"));
    if (name.rfind("Qwen3_5", 0) == 0 || name == "Qwen3NextForCausalLM") {
      const bool next = name == "Qwen3NextForCausalLM";
      if ((i + 1) % u("full_attention_interval") == 0) {
        attention(at + "self_attn.", 2);
        qk_norms(at + "self_attn.");
      } else {
        gdn(at + "linear_attn.", next);
      }
      if (experts == 0) return mlp(at + "mlp.", ff);
      const uint64_t width = u("moe_intermediate_size");
      linear(at + "mlp.gate", experts, d());
      linear(at + "mlp.shared_expert_gate", 1, d());
      mlp(at + "mlp.shared_expert.", u("shared_expert_intermediate_size"));
      if (next) return each_expert(at + "mlp.", experts, width);
      add(at + "mlp.experts.gate_up_proj", {experts, 2 * width, d()});
      add(at + "mlp.experts.down_proj", {experts, d(), width});
    } else if (name == "Qwen3MoeForCausalLM") {
      attention(at + "self_attn.");
      qk_norms(at + "self_attn.");
      linear(at + "mlp.gate", experts, d());
      each_expert(at + "mlp.", experts, u("moe_intermediate_size"));
    } else if (name == "GraniteMoeHybridForCausalLM") {
      granite(at, i, experts);
    } else if (name == "BambaForCausalLM") {
      bamba(at, i);
    } else if (name == "FalconH1ForCausalLM") {
      attention(at + "self_attn.");
      mamba2(at + "mamba.", u("mamba_n_heads"), u("mamba_d_ssm"), u("mamba_n_groups"), u("mamba_d_state"),
             u("mamba_d_conv"));
      mlp(at + "feed_forward.", ff);
    } else if (name == "JambaForCausalLM") {
      jamba(at, i, experts, ff);
    } else if (name == "GptOssForCausalLM") {
      attention(at + "self_attn.", 1, true, true);
      add(at + "self_attn.sinks", {u("num_attention_heads")});
      linear(at + "mlp.router", experts, d(), true);
      add(at + "mlp.experts.gate_up_proj", {experts, d(), 2 * ff});
      add(at + "mlp.experts.gate_up_proj_bias", {experts, 2 * ff});
      add(at + "mlp.experts.down_proj", {experts, ff, d()});
      add(at + "mlp.experts.down_proj_bias", {experts, d()});
    } else {
      attention(at + "self_attn.", 1, name == "Qwen2ForCausalLM");
      if (name == "Qwen3ForCausalLM") qk_norms(at + "self_attn.");
      mlp(at + "mlp.", ff);
    }
  }

  void granite(const std::string& at, uint64_t i, uint64_t experts) {
    const uint64_t ff = u("intermediate_size"), shared = u("shared_intermediate_size");
    if (c["layer_types"][i] == "attention") {
      attention(at + "self_attn.");
    } else {
      mamba2(at + "mamba.", u("mamba_n_heads"), u("mamba_expand") * d(), u("mamba_n_groups"), u("mamba_d_state"),
             u("mamba_d_conv"));
    }
    if (experts > 0) {
      add(at + "block_sparse_moe.input_linear.weight", {experts, 2 * ff, d()});
      add(at + "block_sparse_moe.output_linear.weight", {experts, d(), ff});
      linear(at + "block_sparse_moe.router.layer", experts, d());
    }
    linear(at + "shared_mlp.input_linear", 2 * shared, d());
    linear(at + "shared_mlp.output_linear", d(), shared);
  }

  void bamba(const std::string& at, uint64_t i) {
    if (std::find(c["attn_layer_indices"].begin(), c["attn_layer_indices"].end(), i) != c["attn_layer_indices"].end()) {
      attention(at + "self_attn.");
    } else {
      mamba2(at + "mamba.", u("mamba_n_heads"), u("mamba_expand") * d(), u("mamba_n_groups"), u("mamba_d_state"),
             u("mamba_d_conv"));
    }
    mlp(at + "feed_forward.", u("intermediate_size"));
  }

  void jamba(const std::string& at, uint64_t i, uint64_t experts, uint64_t ff) {
    if (i % u("attn_layer_period") == u("attn_layer_offset")) {
      attention(at + "self_attn.");
    } else {
      const uint64_t state = u("mamba_d_state"), rank = u("mamba_dt_rank");
      mamba1(at + "mamba.", u("mamba_expand") * d(), state, rank, u("mamba_d_conv"));
      add(at + "mamba.dt_layernorm.weight", {rank});
      add(at + "mamba.b_layernorm.weight", {state});
      add(at + "mamba.c_layernorm.weight", {state});
    }
    if (i % u("expert_layer_period") != u("expert_layer_offset")) return mlp(at + "feed_forward.", ff);
    linear(at + "feed_forward.router", experts, d());
    each_expert(at + "feed_forward.", experts, ff);
  }

  void recurrent(const std::string& name) {
    ends("backbone.", "embeddings.weight", "norm_f.weight");
    const std::string pattern = c.value("hybrid_override_pattern", std::string());
    for (uint64_t i = 0; i < u("num_hidden_layers"); ++i) {
      const std::string at = "backbone.layers." + std::to_string(i) + ".";
      add(at + "norm.weight", {d()});
      if (name == "MambaForCausalLM") {
        mamba1(at + "mixer.", u("expand") * d(), u("state_size"), u("time_step_rank"), u("conv_kernel"));
      } else if (name == "Mamba2ForCausalLM") {
        mamba2(at + "mixer.", u("num_heads"), u("num_heads") * u("head_dim"), u("n_groups"), u("state_size"),
               u("conv_kernel"));
      } else {
        nemotron(at + "mixer.", pattern[i]);
      }
    }
  }

  void nemotron(const std::string& at, char kind) {
    if (kind == 'M') {
      return mamba2(at, u("mamba_num_heads"), u("mamba_num_heads") * u("mamba_head_dim"), u("n_groups"),
                    u("ssm_state_size"), u("conv_kernel"));
    }
    if (kind == '*') return attention(at);
    if (kind == '-') {
      linear(at + "up_proj", u("intermediate_size"), d());
      return linear(at + "down_proj", d(), u("intermediate_size"));
    }
    const uint64_t experts = u("n_routed_experts"), ff = u("moe_intermediate_size"), latent = u("moe_latent_size", d());
    linear(at + "gate", experts, d());
    add(at + "gate.e_score_correction_bias", {experts});
    for (uint64_t e = 0; e < experts; ++e) {
      linear(at + "experts." + std::to_string(e) + ".up_proj", ff, latent);
      linear(at + "experts." + std::to_string(e) + ".down_proj", latent, ff);
    }
    linear(at + "shared_experts.up_proj", u("moe_shared_expert_intermediate_size"), d());
    linear(at + "shared_experts.down_proj", d(), u("moe_shared_expert_intermediate_size"));
    if (latent == d()) return;
    linear(at + "fc1_latent_proj", latent, d());
    linear(at + "fc2_latent_proj", d(), latent);
  }

  void bert() {
    add("embeddings.word_embeddings.weight", {u("vocab_size"), d()});
    add("embeddings.position_embeddings.weight", {u("max_position_embeddings"), d()});
    add("embeddings.token_type_embeddings.weight", {u("type_vocab_size"), d()});
    norm("embeddings.LayerNorm");
    for (uint64_t i = 0; i < u("num_hidden_layers"); ++i) {
      const std::string at = "encoder.layer." + std::to_string(i) + ".";
      for (const char* name : {"query", "key", "value"}) linear(at + "attention.self." + name, d(), d(), true);
      linear(at + "attention.output.dense", d(), d(), true);
      norm(at + "attention.output.LayerNorm");
      linear(at + "intermediate.dense", u("intermediate_size"), d(), true);
      linear(at + "output.dense", d(), u("intermediate_size"), true);
      norm(at + "output.LayerNorm");
    }
  }
  void norm(const std::string& name) {
    add(name + ".weight", {d()});
    add(name + ".bias", {d()});
  }

  const Json c;
  std::map<std::string, Dims> out;
};

}  // namespace chimere::convert::test
