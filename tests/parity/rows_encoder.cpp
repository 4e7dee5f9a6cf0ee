// Rows of the table: the ops that only encoders have, each alone and a layer of all of them.
#include "encoder_layer.h"
#include "table.h"

namespace chimere::parity {
namespace {

std::unique_ptr<ParityCase> layer_norm_case(int width) {
  auto c = std::make_unique<ParityCase>(53);
  ProgramForTest& p = c->p;
  const BufferId x = p.input(width, 1.5f);
  const op::LayerNorm o{x, p.vector(width, 1.0f, 0.3f), p.vector(width, 0, 0.3f), 1e-6f};
  p.program.ops.push_back(o);
  p.observe(x);
  c->tolerance = [&p, o](int32_t token, bool) {
    const auto& vectors = p.program.vectors;
    return layer_normed(exactly(p.row(0, token)), vectors[o.weight], vectors[o.bias], o.eps).error;
  };
  return c;
}

// The error function is off by a few units, and where x is negative what is left of 1 + erf keeps them: 8 kUlp of x / 2,
// and two products.
std::unique_ptr<ParityCase> gelu_case(int width) {
  auto c = std::make_unique<ParityCase>(53);
  ProgramForTest& p = c->p;
  const BufferId x = p.input(width, 2.0f);
  p.program.ops.push_back(op::Gelu{x});
  p.observe(x);
  c->tolerance = [&p](int32_t token, bool) {
    std::vector<double> allowed;
    for (float v : p.row(0, token)) allowed.push_back(6 * kUlp * std::abs(v));
    return allowed;
  };
  return c;
}

}  // namespace

// 1e-4 is what a whole encoder may be off by in float32. Nobody has worked out what 8-bit activations add to a layer.
std::unique_ptr<ParityCase> encoder_layer_case(const EncoderShape& s) {
  const int width = s.heads * s.head_dim;
  auto c = std::make_unique<ParityCase>(61);
  ProgramForTest& p = c->p;
  const auto weight = [&](DType type, int in, int out) { return p.matrix(type, in, out, 1, s.stddev); };
  const BufferId x = p.input(width);
  auto& embed = std::get<op::Embed>(p.program.ops.back());
  embed.positions = p.matrix(DType::F16, width, 90, 1, 0.5f);
  embed.kinds = p.vector(2 * width, 0.1f, 0.5f);
  p.program.ops.push_back(op::LayerNorm{x, p.vector(width, 1, 0.1f), p.vector(width, 0, 0.1f), 1e-12f});
  const BufferId q = p.buffer(width), k = p.buffer(width), v = p.buffer(width), out = p.buffer(width);
  op::NormMatmul in{.x = x, .outs = {}};
  for (const BufferId to : {q, k, v}) {
    in.outs.push_back({weight(s.type, width, width), p.vector(width, 0, 0.1f), to});
  }
  p.program.ops.push_back(std::move(in));
  p.program.kv_layers.push_back({s.heads, s.head_dim, s.head_dim});
  op::Attention attention{};
  attention.q = q, attention.k = k, attention.v = v, attention.out = out;
  attention.n_heads = attention.n_kv_heads = s.heads;
  attention.head_dim_k = attention.head_dim_v = s.head_dim;
  attention.scale = s.attention_scale;
  attention.bidirectional = true;
  p.program.ops.push_back(attention);
  const VectorId bias = s.has_output_bias ? p.vector(width, 0, 0.1f) : kNone;
  p.program.ops.push_back(op::MatmulAdd{out, weight(s.type, width, width), bias, x});
  const BufferId ff = p.buffer(s.ff);
  p.program.ops.push_back(op::NormMatmul{x, kNone, 0, {{weight(s.type, width, s.ff), kNone, ff}}});
  p.program.ops.push_back(op::Gelu{ff});
  p.program.ops.push_back(op::MatmulAdd{ff, weight(DType::F32, s.ff, width), kNone, x});
  p.program.ops.push_back(op::HiddenOut{x});
  p.program.d_model = width;
  c->steps = c->steps_if_slow = {{{0, 1}, {1, 2}, {2, 16}, {3, 17}, {4, 64}, {5, 65}, {6, 83}}};
  c->has_pairs = true;
  c->scale = 1;
  c->rounding = 0;
  c->fast_is_bounded = s.type == DType::F32;
  c->allow(1e-4, width);
  return c;
}

Rows rows_of(Tag<op::LayerNorm>) {
  return {{"layer_norm_75", [] { return layer_norm_case(75); }},
          {"layer_norm_513", [] { return layer_norm_case(513); }},
          {"layer_norm_1", [] { return layer_norm_case(1); }}};
}

Rows rows_of(Tag<op::Gelu>) {
  return {{"gelu_75", [] { return gelu_case(75); }}, {"gelu_513", [] { return gelu_case(513); }}};
}

}  // namespace chimere::parity
