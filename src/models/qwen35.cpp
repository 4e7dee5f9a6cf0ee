// qwen35.cpp  Qwen3.5 / 3.6 (dense and MoE) and Qwen3-Next: Gated DeltaNet layers, every fourth one gated attention.
//
// What the converters already did: norms are stored as 1 + w, `ssm_a` is -exp(A_log), and for qwen35* the value heads
// are tiled over the key heads (value head j belongs to key head j % n_key_heads). qwen3next keeps them grouped
// (j / r), and holds alpha and beta in one tensor, key head by key head.
//
//   h = x + mixer(RMSNorm(x; attn_norm));   x = h + ffn(RMSNorm(h; post_attention_norm))
//
// The MTP block after the main layers, an attention block as those of the trunk, is the draft pass where one is asked for.
#include <algorithm>

#include "models/layers.h"

namespace chimere::models {
namespace {

struct Gdn {
  int n_key_heads, n_value_heads, d_head, kernel;
  bool tiled_heads;
  std::vector<bool> is_recurrent;  // [n_layers]

  uint64_t key_dim() const { return static_cast<uint64_t>(n_key_heads) * d_head; }
  uint64_t value_dim() const { return static_cast<uint64_t>(n_value_heads) * d_head; }
  uint64_t conv_dim() const { return 2 * key_dim() + value_dim(); }
};

struct GdnBuffers {
  BufferId qkv, z, alpha, beta, out;
};

Result<Gdn> read_gdn(const gguf::Metadata& m, const Config& c) {
  Gdn g;
  TRY_ASSIGN(const int64_t kernel, m.get_int(c.key("ssm.conv_kernel"), 2, 64));
  TRY_ASSIGN(const int64_t d_head, m.get_int(c.key("ssm.state_size"), 1, 4096));
  TRY_ASSIGN(const int64_t n_key, m.get_int(c.key("ssm.group_count"), 1, 1024));
  TRY_ASSIGN(const int64_t n_value, m.get_int(c.key("ssm.time_step_rank"), 1, 1024));
  TRY_ASSIGN(const int64_t inner, m.get_int(c.key("ssm.inner_size"), 1, 1 << 22));
  if (n_value % n_key != 0) {
    return Error{Code::corrupt, c.key("ssm.time_step_rank") + ": " + std::to_string(n_value) +
                                    " value heads are no multiple of " + std::to_string(n_key) + " key heads"};
  }
  if (inner != n_value * d_head) {
    return Error{Code::corrupt, c.key("ssm.inner_size") + ": expected " + std::to_string(n_value * d_head) +
                                    " (value heads times state size), found " + std::to_string(inner)};
  }
  g.kernel = static_cast<int>(kernel);
  g.d_head = static_cast<int>(d_head);
  g.n_key_heads = static_cast<int>(n_key);
  g.n_value_heads = static_cast<int>(n_value);
  TRY_ASSIGN(g.tiled_heads, m.get_bool_or(c.key("ssm.v_head_reordered"), c.arch != "qwen3next"));

  const size_t n_all = c.n_layers + c.n_mtp_layers;
  if (m.contains(c.key("attention.recurrent_layers"))) {
    TRY_ASSIGN(const std::vector<int64_t> flags, m.get_int_per_layer(c.key("attention.recurrent_layers"), n_all, 0, 1));
    for (int i = 0; i < c.n_layers; ++i) g.is_recurrent.push_back(flags[i] != 0);
  } else {
    TRY_ASSIGN(const int64_t interval, m.get_int_or(c.key("full_attention_interval"), 1, 512, 4));
    for (int i = 0; i < c.n_layers; ++i) g.is_recurrent.push_back((i + 1) % interval != 0);
  }
  return Result<Gdn>{std::move(g)};
}

// Rows of one key head's group, repeated for all groups: group g covers [g * stride, ...), part at `begin`, `n` rows.
std::vector<uint64_t> grouped_rows(uint64_t n_groups, uint64_t stride, uint64_t begin, uint64_t n) {
  std::vector<uint64_t> rows;
  for (uint64_t g = 0; g < n_groups; ++g) {
    for (uint64_t i = 0; i < n; ++i) rows.push_back(g * stride + begin + i);
  }
  return rows;
}

// The four input projections, in whichever of the three groupings the file has them.
void add_gdn_projections(Binder& b, const Config& c, const Gdn& g, int i, op::NormMatmul& in, const GdnBuffers& bufs) {
  const auto d = static_cast<uint64_t>(c.d_model), hv = static_cast<uint64_t>(g.n_value_heads);
  const uint64_t hk = g.n_key_heads, r = hv / hk, dh = g.d_head;

  const std::string legacy = block(i, "ssm_in.weight");
  if (b.has(legacy)) {
    const uint64_t stride = 2 * dh + 2 * r * dh;  // q, k, v (r heads), z (r heads) of one key head
    std::vector<uint64_t> qkv = grouped_rows(hk, stride, 0, dh);
    for (uint64_t row : grouped_rows(hk, stride, dh, dh)) qkv.push_back(row);
    for (uint64_t row : grouped_rows(hk, stride, 2 * dh, r * dh)) qkv.push_back(row);
    const std::vector<uint64_t> z = grouped_rows(hk, stride, (2 + r) * dh, r * dh);
    in.outs.push_back(
        {.weight = b.gathered_rows(legacy, {d, hk * stride}, qkv, block(i, "attn_qkv.weight")), .out = bufs.qkv});
    in.outs.push_back(
        {.weight = b.gathered_rows(legacy, {d, hk * stride}, z, block(i, "attn_gate.weight")), .out = bufs.z});
  } else {
    in.outs.push_back({.weight = b.matrix(block(i, "attn_qkv.weight"), {d, g.conv_dim()}), .out = bufs.qkv});
    in.outs.push_back({.weight = b.matrix(block(i, "attn_gate.weight"), {d, g.value_dim()}), .out = bufs.z});
  }

  const std::string ba = block(i, "ssm_ba.weight");
  if (b.has(ba)) {
    in.outs.push_back(
        {.weight = b.gathered_rows(ba, {d, 2 * hv}, grouped_rows(hk, 2 * r, r, r), block(i, "ssm_alpha.weight")),
         .out = bufs.alpha});
    in.outs.push_back(
        {.weight = b.gathered_rows(ba, {d, 2 * hv}, grouped_rows(hk, 2 * r, 0, r), block(i, "ssm_beta.weight")),
         .out = bufs.beta});
  } else {
    in.outs.push_back({.weight = b.matrix(block(i, "ssm_alpha.weight"), {d, hv}), .out = bufs.alpha});
    in.outs.push_back({.weight = b.matrix(block(i, "ssm_beta.weight"), {d, hv}), .out = bufs.beta});
  }
}

void add_gdn(Binder& b, const Config& c, const Gdn& g, int i, const Trunk& t, const GdnBuffers& bufs) {
  const auto d = static_cast<uint64_t>(c.d_model);
  op::NormMatmul in{.x = t.x, .norm = b.vector(block(i, "attn_norm.weight"), d), .eps = c.eps, .outs = {}};
  add_gdn_projections(b, c, g, i, in, bufs);
  b.add(std::move(in));

  const std::string dt = b.has(block(i, "ssm_dt")) ? block(i, "ssm_dt") : block(i, "ssm_dt.bias");
  b.add(op::GdnMix{.qkv = bufs.qkv,
                   .z = bufs.z,
                   .alpha = bufs.alpha,
                   .beta = bufs.beta,
                   .conv = b.vector(block(i, "ssm_conv1d.weight"), g.conv_dim() * g.kernel),
                   .a = b.vector(block(i, "ssm_a"), g.n_value_heads),
                   .dt_bias = b.vector(dt, g.n_value_heads),
                   .norm = b.vector(block(i, "ssm_norm.weight"), g.d_head),
                   .eps = c.eps,
                   .n_key_heads = g.n_key_heads,
                   .n_value_heads = g.n_value_heads,
                   .d_head = g.d_head,
                   .tiled_heads = g.tiled_heads,
                   .recurrent_layer = b.recurrent_layer({.conv_width = g.kernel - 1,
                                                         .conv_channels = static_cast<int>(g.conv_dim()),
                                                         .n_heads = g.n_value_heads,
                                                         .d_key = g.d_head,
                                                         .d_value = g.d_head}),
                   .out = bufs.out});
  b.add(op::MatmulAdd{
      .x = bufs.out, .weight = b.matrix(block(i, "ssm_out.weight"), {g.value_dim(), d}), .residual = t.x});
}

Result<Program> build_qwen35_with(WeightSource& source, bool drafts) {
  TRY_ASSIGN(const Config c, read_config(source));
  TRY_ASSIGN(const Gdn g, read_gdn(source.metadata(), c));
  // Text tokens have equal positions on all three axes, where the interleaved multi-axis rotary is the plain one.
  TRY_ASSIGN(Rope rope, read_rope(source, c, Rope::Pairing::half));
  Binder b(source);
  const AttentionStyle style{.qk_norm = true, .gated = true, .rope = b.rope(std::move(rope))};
  const Trunk t = begin_trunk(b, c);
  const AttentionBuffers attention = attention_buffers(b, c, style);
  const auto hv = static_cast<uint64_t>(g.n_value_heads);
  const GdnBuffers gdn{b.buffer("qkv", g.conv_dim()), b.buffer("z", g.value_dim()), b.buffer("alpha", hv),
                       b.buffer("beta", hv), b.buffer("gdn", g.value_dim())};
  for (int i = 0; i < c.n_layers; ++i) {
    if (g.is_recurrent[i]) {
      add_gdn(b, c, g, i, t, gdn);
    } else {
      add_attention(b, c, i, t, attention, style);
    }
    add_ffn(b, c, i, t, {.norm = "post_attention_norm.weight"});
    b.end_layer();
  }
  end_trunk(b, c, t);
  if (drafts && c.n_mtp_layers > 0) {
    const int i = c.n_layers;
    begin_draft_pass(b, c, i, t);
    add_attention(b, c, i, t, attention, style);
    add_ffn(b, c, i, t, {.norm = "post_attention_norm.weight"});
    end_draft_pass(b, c, i, t);
  }
  return b.finish();
}

}  // namespace

Result<Program> build_qwen35(WeightSource& source) { return build_qwen35_with(source, false); }
Result<Program> build_qwen35_drafting(WeightSource& source) { return build_qwen35_with(source, true); }

}  // namespace chimere::models
