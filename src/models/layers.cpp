#include "models/layers.h"

#include <algorithm>
#include <numeric>

namespace chimere::models {

std::string block(int layer, const char* part) { return "blk." + std::to_string(layer) + "." + part; }

Trunk begin_trunk(Binder& b, const Config& c, float embedding_scale) {
  b.program().n_vocab = c.n_vocab;
  b.program().d_model = c.d_model;
  Trunk t{b.buffer("x", c.d_model)};
  const auto d = static_cast<uint64_t>(c.d_model), v = static_cast<uint64_t>(c.n_vocab);
  b.add(op::Embed{.table = b.matrix("token_embd.weight", {d, v}), .out = t.x, .scale = embedding_scale});
  return t;
}

void end_trunk(Binder& b, const Config& c, const Trunk& t, float logit_scale) {
  const auto d = static_cast<uint64_t>(c.d_model), v = static_cast<uint64_t>(c.n_vocab);
  const VectorId norm = b.vector("output_norm.weight", d);
  MatrixId head = b.matrix_if_present("output.weight", {d, v});
  // Tied: the same matrix serves as table and head, so it is held once.
  if (head == kNone) head = std::get<op::Embed>(b.program().ops.front()).table;
  b.add(op::LmHead{.x = t.x, .norm = norm, .eps = c.eps, .weight = head, .scale = logit_scale});
}

void begin_draft_pass(Binder& b, const Config& c, int layer, const Trunk& t) {
  const auto d = static_cast<uint64_t>(c.d_model), v = static_cast<uint64_t>(c.n_vocab);
  Program& p = b.program();
  const auto trunk = std::get<op::Embed>(p.ops.front());
  p.trunk_end = {p.ops.size(), p.buffers.size(), p.matrices.size(), p.vectors.size(), p.kv_layers.size()};
  const BufferId joined = b.buffer("draft_input", 2 * d);
  const MatrixId own = b.matrix_if_present(block(layer, "nextn.embed_tokens.weight"), {d, v});
  b.add(op::Embed{.table = own == kNone ? trunk.table : own, .out = t.x, .scale = trunk.scale});
  b.add(op::DraftInput{.x = t.x,
                       .x_norm = b.vector(block(layer, "nextn.enorm.weight"), d),
                       .hidden_norm = b.vector(block(layer, "nextn.hnorm.weight"), d),
                       .eps = c.eps,
                       .out = joined});
  const MatrixId join = b.matrix(block(layer, "nextn.eh_proj.weight"), {2 * d, d});
  b.add(op::NormMatmul{.x = joined, .outs = {{.weight = join, .out = t.x}}});
}

void end_draft_pass(Binder& b, const Config& c, int layer, const Trunk& t) {
  const auto d = static_cast<uint64_t>(c.d_model), v = static_cast<uint64_t>(c.n_vocab);
  Program& p = b.program();
  op::LmHead head = std::get<op::LmHead>(p.ops[p.trunk_end->ops - 1]);
  head.x = t.x;
  const VectorId norm = b.vector_if_present(block(layer, "nextn.shared_head_norm.weight"), d);
  if (norm != kNone) head.norm = norm;
  const MatrixId own = b.matrix_if_present(block(layer, "nextn.shared_head_head.weight"), {d, v});
  if (own != kNone) head.weight = own;
  b.add(head);
}

AttentionBuffers attention_buffers(Binder& b, const Config& c, const AttentionStyle& style) {
  const int n_kv = c.max_kv_heads();
  AttentionBuffers buffers;
  buffers.q = b.buffer("q", static_cast<uint64_t>(c.n_heads) * c.head_dim_k * (style.gated ? 2 : 1));
  buffers.k = b.buffer("k", static_cast<uint64_t>(n_kv) * c.head_dim_k);
  buffers.v = b.buffer("v", static_cast<uint64_t>(n_kv) * c.head_dim_v);
  buffers.out = b.buffer("attention", static_cast<uint64_t>(c.n_heads) * c.head_dim_v);
  return buffers;
}

namespace {

// A projection whose file interleaves the two halves of each head (row 2j: j of the first half, row 2j + 1: j of the
// second), bound with the halves apart again. The matrix gets a name of its own, so that no adapter for the file's
// tensor, whose rows are interleaved too, is applied to it.
op::Projection projection_in_halves(Binder& b, const std::string& name, uint64_t d_in, uint64_t width,
                                    uint64_t head_dim, BufferId out) {
  const uint64_t half = head_dim / 2;
  std::vector<uint64_t> rows(width);
  for (uint64_t row = 0; row < width; ++row) {
    const uint64_t in_head = row % head_dim;
    rows[row] = row - in_head + 2 * (in_head % half) + in_head / half;
  }
  const op::Projection made{.weight = b.gathered_rows(name + ".weight", {d_in, width}, rows, name + ".halves"),
                            .bias = b.vector_if_present(name + ".bias", width),
                            .out = out};
  if (made.bias != kNone && b.status()) {
    std::vector<float>& bias = b.program().vectors[made.bias];
    const std::vector<float> interleaved = bias;
    for (uint64_t row = 0; row < width; ++row) bias[row] = interleaved[rows[row]];
  }
  return made;
}

}  // namespace

op::NormMatmul mixer_input(Binder& b, const Config& c, int layer, const Trunk& t) {
  return {.x = t.x, .norm = b.vector(block(layer, "attn_norm.weight"), c.d_model), .eps = c.eps, .outs = {}};
}

void add_attention(Binder& b, const Config& c, int layer, const Trunk& t, const AttentionBuffers& buffers,
                   const AttentionStyle& style) {
  op::NormMatmul in = mixer_input(b, c, layer, t);
  add_attention_projections(b, c, layer, buffers, style, in);
  b.add(std::move(in));
  add_attention_mix(b, c, layer, t, buffers, style);
}

void add_attention_projections(Binder& b, const Config& c, int layer, const AttentionBuffers& buffers,
                               const AttentionStyle& style, op::NormMatmul& in) {
  const int n_kv = c.n_kv_heads[layer];
  if (n_kv == 0) {
    b.fail({Code::corrupt, c.key("attention.head_count_kv") + ": layer " + std::to_string(layer) +
                               " is an attention layer, expected at least 1 key/value head, found 0"});
    return;
  }
  if (style.gated && c.head_dim_k != c.head_dim_v) {
    b.fail({Code::unsupported, "gated attention needs equal key and value head sizes, found " +
                                   std::to_string(c.head_dim_k) + " and " + std::to_string(c.head_dim_v)});
    return;
  }
  if (n_kv * c.head_dim_k != b.program().buffers[buffers.k].width) {
    b.fail(
        {Code::unsupported, c.key("attention.head_count_kv") + ": attention layers with different numbers of heads"});
    return;
  }
  const auto d = static_cast<uint64_t>(c.d_model);
  const uint64_t dq = static_cast<uint64_t>(c.n_heads) * c.head_dim_k * (style.gated ? 2 : 1);
  const uint64_t dk = static_cast<uint64_t>(n_kv) * c.head_dim_k;
  const uint64_t dv = static_cast<uint64_t>(n_kv) * c.head_dim_v;

  auto projection = [&](const char* part, uint64_t width, BufferId out, bool interleaved = false) {
    const std::string name = block(layer, part);
    if (interleaved) return projection_in_halves(b, name, d, width, static_cast<uint64_t>(c.head_dim_k), out);
    return op::Projection{.weight = b.matrix(name + ".weight", {d, width}),
                          .bias = b.vector_if_present(name + ".bias", width),
                          .out = out};
  };
  in.outs.push_back(projection("attn_q", dq, buffers.q, style.interleaved_halves));
  in.outs.push_back(projection("attn_k", dk, buffers.k, style.interleaved_halves));
  in.outs.push_back(projection("attn_v", dv, buffers.v));
}

void add_attention_mix(Binder& b, const Config& c, int layer, const Trunk& t, const AttentionBuffers& buffers,
                       const AttentionStyle& style) {
  const int n_kv = c.n_kv_heads[layer];
  const auto d = static_cast<uint64_t>(c.d_model);
  const uint64_t dout = static_cast<uint64_t>(c.n_heads) * c.head_dim_v;
  op::Attention attention{.q = buffers.q,
                          .k = buffers.k,
                          .v = buffers.v,
                          .n_heads = c.n_heads,
                          .n_kv_heads = n_kv,
                          .head_dim_k = c.head_dim_k,
                          .head_dim_v = c.head_dim_v,
                          .gated = style.gated,
                          .eps = c.eps,
                          .rope = style.rope,
                          .scale = c.attention_scale,
                          .window = style.window,
                          .kv_layer = b.kv_layer({n_kv, c.head_dim_k, c.head_dim_v}),
                          .out = buffers.out,
                          .bidirectional = style.bidirectional};
  if (style.qk_norm) {
    attention.q_norm = b.vector(block(layer, "attn_q_norm.weight"), c.head_dim_k);
    attention.k_norm = b.vector(block(layer, "attn_k_norm.weight"), c.head_dim_k);
  }
  if (style.sinks) attention.sinks = b.vector(block(layer, "attn_sinks.weight"), c.n_heads);
  b.add(attention);
  b.add(op::MatmulAdd{.x = buffers.out,
                      .weight = b.matrix(block(layer, "attn_output.weight"), {dout, d}),
                      .bias = b.vector_if_present(block(layer, "attn_output.bias"), d),
                      .residual = t.x,
                      .scale = style.scale});
}

void add_dense_ffn(Binder& b, const Config& c, int layer, const Trunk& t, const FfnStyle& style) {
  const auto d = static_cast<uint64_t>(c.d_model), ff = static_cast<uint64_t>(c.d_ff[layer]);
  if (ff == 0) {
    b.fail({Code::corrupt, c.key("feed_forward_length") + " is missing or 0"});
    return;
  }
  for (const char* bias : {"ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"}) {
    if (b.has(block(layer, bias))) b.fail({Code::unsupported, "tensor '" + block(layer, bias) + "': biases of an MLP"});
  }
  const bool gated = style.activation != op::Activation::relu2;
  b.add(op::DenseFfn{.x = t.x,
                     .norm = b.vector(block(layer, style.norm.c_str()), d),
                     .eps = c.eps,
                     .gate = gated ? b.matrix(block(layer, "ffn_gate.weight"), {d, ff}) : kNone,
                     .up = b.matrix(block(layer, "ffn_up.weight"), {d, ff}),
                     .down = b.matrix(block(layer, "ffn_down.weight"), {ff, d}),
                     .activation = style.activation,
                     .scale = style.scale});
}

namespace {

// The expert stacks before the activation: gate and up separate, fused in one tensor, or up alone.
void bind_expert_inputs(Binder& b, const Config& c, int layer, uint64_t d_in, op::MoeFfn& moe) {
  const auto ff = static_cast<uint64_t>(c.d_ff_expert), n = static_cast<uint64_t>(c.n_experts);
  const std::string fused = block(layer, "ffn_gate_up_exps.weight");
  if (moe.activation == op::Activation::relu2) {
    moe.up = b.matrix(block(layer, "ffn_up_exps.weight"), {d_in, ff, n});
  } else if (b.has(fused)) {
    std::vector<uint64_t> rows(ff);
    std::iota(rows.begin(), rows.end(), 0);
    moe.gate = b.gathered_rows(fused, {d_in, 2 * ff, n}, rows, block(layer, "ffn_gate_exps.weight"));
    std::iota(rows.begin(), rows.end(), ff);
    moe.up = b.gathered_rows(fused, {d_in, 2 * ff, n}, rows, block(layer, "ffn_up_exps.weight"));
  } else {
    moe.gate = b.matrix(block(layer, "ffn_gate_exps.weight"), {d_in, ff, n});
    moe.up = b.matrix(block(layer, "ffn_up_exps.weight"), {d_in, ff, n});
  }
}

}  // namespace

void add_moe_ffn(Binder& b, const Config& c, int layer, const Trunk& t, const FfnStyle& style) {
  const auto d = static_cast<uint64_t>(c.d_model), ff = static_cast<uint64_t>(c.d_ff_expert);
  const auto n = static_cast<uint64_t>(c.n_experts);
  const uint64_t d_in = style.d_latent > 0 ? static_cast<uint64_t>(style.d_latent) : d;
  op::MoeFfn moe{.x = t.x,
                 .norm = b.vector(block(layer, style.norm.c_str()), d),
                 .eps = c.eps,
                 .router = b.matrix(block(layer, "ffn_gate_inp.weight"), {d, n}),
                 .gate = kNone,
                 .up = kNone,
                 .down = b.matrix(block(layer, "ffn_down_exps.weight"), {ff, d_in, n}),
                 .n_experts = c.n_experts,
                 .n_used = c.n_experts_used,
                 .activation = style.activation,
                 .gating = style.gating,
                 .renormalise = style.renormalise,
                 .weight_scale = style.weight_scale,
                 .scale = style.scale};
  bind_expert_inputs(b, c, layer, d_in, moe);
  if (style.selection_bias) moe.selection_bias = b.vector(block(layer, "exp_probs_b.bias"), n);
  if (style.biases) {
    moe.router_bias = b.vector(block(layer, "ffn_gate_inp.bias"), n);
    moe.gate_bias = b.vector(block(layer, "ffn_gate_exps.bias"), ff * n);
    moe.up_bias = b.vector(block(layer, "ffn_up_exps.bias"), ff * n);
    moe.down_bias = b.vector(block(layer, "ffn_down_exps.bias"), d_in * n);
  }
  if (style.d_latent > 0) {
    moe.latent_down = b.matrix(block(layer, "ffn_latent_down.weight"), {d, d_in});
    moe.latent_up = b.matrix(block(layer, "ffn_latent_up.weight"), {d_in, d});
  }
  if (c.d_ff_shared > 0) {
    const auto shared = static_cast<uint64_t>(c.d_ff_shared);
    if (style.shared_router) moe.shared_router = b.vector(block(layer, "ffn_gate_inp_shexp.weight"), d);
    if (style.activation != op::Activation::relu2) {
      moe.shared_gate = b.matrix(block(layer, "ffn_gate_shexp.weight"), {d, shared});
    }
    moe.shared_up = b.matrix(block(layer, "ffn_up_shexp.weight"), {d, shared});
    moe.shared_down = b.matrix(block(layer, "ffn_down_shexp.weight"), {shared, d});
  }
  b.add(moe);
}

void add_ffn(Binder& b, const Config& c, int layer, const Trunk& t, const FfnStyle& style) {
  if (c.n_experts > 0) {
    add_moe_ffn(b, c, layer, t, style);
  } else {
    add_dense_ffn(b, c, layer, t, style);
  }
}

Result<Program> build_transformer(WeightSource& source, const TransformerStyle& style) {
  TRY_ASSIGN(const Config c, read_config(source));
  TRY_ASSIGN(Rope rope, read_rope(source, c, style.pairing));
  Binder b(source);
  const AttentionStyle attention{.qk_norm = style.qk_norm, .rope = b.rope(std::move(rope))};
  const Trunk t = begin_trunk(b, c);
  const AttentionBuffers buffers = attention_buffers(b, c, attention);
  for (int i = 0; i < c.n_layers; ++i) {
    add_attention(b, c, i, t, buffers, attention);
    add_ffn(b, c, i, t, {.norm = "ffn_norm.weight"});
    b.end_layer();
  }
  end_trunk(b, c, t);
  return b.finish();
}

}  // namespace chimere::models
