#include "hybrid.h"

#include <cmath>

namespace chimere::parity {

const Hybrid& Hybrid::of(Kind kind) {
  static const Hybrid delta_net(Kind::delta_net), mamba(Kind::mamba);
  return kind == Kind::delta_net ? delta_net : mamba;
}

ExecutablePtr Hybrid::compile(int n_threads, const KvFormat& kv) const {
  LoadOptions options;
  options.kv = kv;
  options.max_rows = 256;
  options.n_threads = n_threads;
  return compiled(backend_under_test().compile(p_.program, options));
}

Hybrid::Hybrid(Kind kind) : p_(kVocab) {
  p_.program.d_model = kWidth;
  x_ = p_.input(kWidth, 1.0f, DType::Q6_K);
  if (kind == Kind::delta_net) {
    add_delta_net_layers();
  } else {
    add_mamba_layers();
  }
  p_.program.ops.push_back(op::LmHead{x_, norm(), 1e-6f, p_.matrix(DType::Q6_K, kWidth, kVocab)});
  // Where the number of experts cannot differ from token to token, all tokens use the most.
  if (backend_under_test().can_run(p_.program)) return;
  for (Op& op : p_.program.ops) {
    if (auto* moe = std::get_if<op::MoeFfn>(&op)) moe->n_least = 0;
  }
}

void Hybrid::add_delta_net_layers() {
  add_delta_net(DType::IQ3_S, false);
  add_experts();
  add_attention();
  add_experts();
  add_delta_net(DType::Q4_K, true);
  p_.program.ops.push_back(op::DenseFfn{x_, norm(), 1e-6f, p_.matrix(DType::Q5_K, kWidth, 96),
                                        p_.matrix(DType::Q5_K, kWidth, 96), p_.matrix(DType::Q4_0, 96, kWidth)});
}

void Hybrid::add_mamba_layers() {
  add_mamba2(DType::Q5_0, 1);
  add_latent_experts();
  add_attention(40);
  add_mamba1(DType::Q8_0);
  add_mamba2(DType::IQ4_NL, 2);
  p_.program.ops.push_back(op::DenseFfn{x_, norm(), 1e-6f, kNone, p_.matrix(DType::Q4_1, kWidth, 96),
                                        p_.matrix(DType::Q5_0, 96, kWidth), op::Activation::relu2, 0.5f});
}

void Hybrid::add_delta_net(DType type, bool tiled) {
  op::GdnMix o{};
  o.n_key_heads = 2;
  o.n_value_heads = 4;
  o.d_head = 32;
  o.tiled_heads = tiled;
  o.eps = 1e-6f;
  const int heads = o.n_value_heads, values = heads * o.d_head, kernel = 4;
  o.qkv = p_.buffer(o.channels());
  o.z = p_.buffer(values);
  o.alpha = p_.buffer(heads);
  o.beta = p_.buffer(heads);
  o.out = p_.buffer(values);
  o.conv = p_.vector(int64_t{o.channels()} * kernel, 0, 0.5f);
  o.a = p_.vector(heads, -0.5f, 0.1f);
  o.dt_bias = p_.vector(heads, 0, 1);
  o.norm = p_.vector(o.d_head, 1.0f, 0.2f);
  o.recurrent_layer = static_cast<int>(p_.program.recurrent_layers.size());
  p_.program.recurrent_layers.push_back({kernel - 1, o.channels(), heads, o.d_head, o.d_head});
  p_.program.ops.push_back(op::NormMatmul{x_,
                                          norm(),
                                          1e-6f,
                                          {{p_.matrix(type, kWidth, o.channels()), kNone, o.qkv},
                                           {p_.matrix(type, kWidth, values), kNone, o.z},
                                           {p_.matrix(DType::F32, kWidth, heads), kNone, o.alpha},
                                           {p_.matrix(DType::Q8_0, kWidth, heads), kNone, o.beta}}});
  p_.program.ops.push_back(o);
  p_.program.ops.push_back(op::MatmulAdd{o.out, p_.matrix(DType::Q8_0, values, kWidth), kNone, x_});
}

void Hybrid::add_mamba2(DType type, int n_groups) {
  op::Mamba2Mix o{};
  o.n_heads = 6;
  o.d_head = 32;
  o.n_groups = n_groups;
  o.d_state = 24;
  o.eps = 1e-6f;
  const int kernel = 4;
  o.in = p_.buffer(o.width());
  o.out = p_.buffer(o.d_inner());
  o.conv = p_.vector(int64_t{o.channels()} * kernel, 0, 0.5f);
  o.conv_bias = p_.vector(o.channels(), 0, 0.5f);
  o.a = p_.vector(o.n_heads, -0.5f, 0.1f);
  o.d = p_.vector(o.n_heads, 1.0f, 0.2f);
  o.dt_bias = p_.vector(o.n_heads, 0, 1);
  o.norm = p_.vector(o.d_inner(), 1.0f, 0.2f);
  o.recurrent_layer = static_cast<int>(p_.program.recurrent_layers.size());
  p_.program.recurrent_layers.push_back({kernel - 1, o.channels(), o.n_heads, o.d_state, o.d_head, o.n_heads});
  p_.program.ops.push_back(op::NormMatmul{x_, norm(), 1e-6f, {{p_.matrix(type, kWidth, o.width()), kNone, o.in}}});
  p_.program.ops.push_back(o);
  p_.program.ops.push_back(op::MatmulAdd{o.out, p_.matrix(DType::Q4_0, o.d_inner(), kWidth), kNone, x_, 0.5f});
}

void Hybrid::add_mamba1(DType type) {
  const int channels = 160, d_state = 16, rank = 32, kernel = 3;
  op::CausalConv conv{};
  conv.in = p_.buffer(2 * channels);
  conv.conv = p_.vector(int64_t{channels} * kernel, 0, 0.5f);
  conv.conv_bias = p_.vector(channels, 0, 0.5f);
  conv.channels = channels;
  conv.out = p_.buffer(channels);
  op::SelectiveScan o{};
  o.x = conv.out;
  const BufferId low = p_.buffer(rank);
  o.dt = p_.buffer(channels);
  o.b = p_.buffer(d_state);
  o.c = p_.buffer(d_state);
  o.z = conv.in;
  o.z_at = channels;
  o.a = p_.vector(int64_t{channels} * d_state, -0.5f, 0.1f);
  o.d = p_.vector(channels, 1.0f, 0.2f);
  o.b_norm = p_.vector(d_state, 1.0f, 0.2f);
  o.c_norm = p_.vector(d_state, 1.0f, 0.2f);
  o.eps = 1e-6f;
  o.channels = channels;
  o.d_state = d_state;
  o.out = p_.buffer(channels);
  o.recurrent_layer = conv.recurrent_layer = static_cast<int>(p_.program.recurrent_layers.size());
  p_.program.recurrent_layers.push_back({kernel - 1, channels, 1, d_state, channels, 2 * channels + d_state});
  auto& ops = p_.program.ops;
  ops.push_back(op::NormMatmul{x_, norm(), 1e-6f, {{p_.matrix(type, kWidth, 2 * channels), kNone, conv.in}}});
  ops.push_back(conv);
  ops.push_back(op::NormMatmul{conv.out,
                               kNone,
                               0,
                               {{p_.matrix(type, channels, rank), kNone, low},
                                {p_.matrix(type, channels, d_state), kNone, o.b},
                                {p_.matrix(type, channels, d_state), kNone, o.c}}});
  ops.push_back(op::NormMatmul{
      low, p_.vector(rank, 1.0f, 0.2f), 1e-6f, {{p_.matrix(type, rank, channels), p_.vector(channels, 0, 1), o.dt}}});
  ops.push_back(o);
  ops.push_back(op::MatmulAdd{o.out, p_.matrix(DType::Q8_0, channels, kWidth), kNone, x_});
}

void Hybrid::add_latent_experts() {
  op::MoeFfn o{};
  o.x = x_;
  o.norm = norm();
  o.eps = 1e-6f;
  o.n_experts = 13;
  o.n_used = 3;
  o.n_least = 1;
  o.entropy_low = 0.5f;
  o.router = p_.matrix(DType::F32, kWidth, o.n_experts, 1, 0.2f);
  o.gate = kNone;
  o.up = p_.matrix(DType::Q5_0, 96, 64, o.n_experts);
  o.down = p_.matrix(DType::Q4_1, 64, 96, o.n_experts);
  o.activation = op::Activation::relu2;
  o.gating = op::Gating::sigmoid;
  o.weight_scale = 2.5f;
  o.selection_bias = p_.vector(o.n_experts, 0, 0.2f);
  o.latent_down = p_.matrix(DType::Q8_0, kWidth, 96);
  o.latent_up = p_.matrix(DType::Q8_0, 96, kWidth);
  o.shared_up = p_.matrix(DType::Q8_0, kWidth, 96);
  o.shared_down = p_.matrix(DType::Q8_0, 96, kWidth);
  p_.program.ops.push_back(o);
}

void Hybrid::add_attention(int window) {
  op::Attention o{};
  o.n_heads = 6;
  o.n_kv_heads = 2;
  o.head_dim_k = o.head_dim_v = 32;
  o.gated = true;
  o.q = p_.buffer(o.n_heads * 2 * 32);
  o.k = p_.buffer(o.n_kv_heads * 32);
  o.v = p_.buffer(o.n_kv_heads * 32);
  o.out = p_.buffer(o.n_heads * 32);
  o.q_norm = p_.vector(32, 1.0f, 0.2f);
  o.k_norm = p_.vector(32, 1.0f, 0.2f);
  o.eps = 1e-6f;
  o.scale = 1.0f / std::sqrt(32.0f);
  Rope rope;
  for (int k = 0; k < 8; ++k) rope.inv_freq.push_back(std::pow(1e4f, -static_cast<float>(k) / 8));
  p_.program.ropes.push_back(rope);
  o.rope = 0;
  o.window = window;
  if (window > 0) o.sinks = p_.vector(o.n_heads, 0, 1);
  o.kv_layer = 0;
  p_.program.kv_layers.push_back({o.n_kv_heads, 32, 32});
  p_.program.ops.push_back(op::NormMatmul{x_,
                                          norm(),
                                          1e-6f,
                                          {{p_.matrix(DType::Q4_K, kWidth, o.n_heads * 64), kNone, o.q},
                                           {p_.matrix(DType::Q6_K, kWidth, 64), kNone, o.k},
                                           {p_.matrix(DType::Q8_0, kWidth, 64), p_.vector(64, 0, 1), o.v}}});
  p_.program.ops.push_back(o);
  p_.program.ops.push_back(op::MatmulAdd{o.out, p_.matrix(DType::Q4_0, o.n_heads * 32, kWidth), kNone, x_});
}

void Hybrid::add_experts() {
  op::MoeFfn o{};
  o.x = x_;
  o.norm = norm();
  o.eps = 1e-6f;
  o.n_experts = 13;
  o.n_used = 3;
  o.router = p_.matrix(DType::F32, kWidth, o.n_experts, 1, 0.2f);
  o.gate = p_.matrix(DType::IQ3_S, kWidth, 64, o.n_experts);
  o.up = p_.matrix(DType::IQ3_S, kWidth, 64, o.n_experts);
  o.down = p_.matrix(DType::IQ4_NL, 64, kWidth, o.n_experts);
  o.shared_gate = p_.matrix(DType::Q8_0, kWidth, 96);
  o.shared_up = p_.matrix(DType::Q8_0, kWidth, 96);
  o.shared_down = p_.matrix(DType::Q8_0, 96, kWidth);
  o.shared_router = p_.vector(kWidth, 0, 0.1f);
  p_.program.ops.push_back(o);
}

}  // namespace chimere::parity
