// Rows of the table: recurrences over the tokens of a sequence.
#include "table.h"

namespace chimere::parity {
namespace {

struct GdnShape {
  int d_head, n_key_heads, ratio;
  bool tiled;
  int kernel;
};

std::unique_ptr<ParityCase> gdn_case(const GdnShape& s) {
  auto c = std::make_unique<ParityCase>(101);
  ProgramForTest& p = c->p;
  op::GdnMix o{};
  o.n_key_heads = s.n_key_heads;
  o.n_value_heads = s.n_key_heads * s.ratio;
  o.d_head = s.d_head;
  o.tiled_heads = s.tiled;
  o.eps = 1e-2f;
  o.qkv = p.input(o.channels(), 1.0f);
  o.z = p.input(o.n_value_heads * s.d_head, 1.0f);
  o.alpha = p.input(o.n_value_heads, 1.0f);
  o.beta = p.input(o.n_value_heads, 1.0f);
  o.conv = p.vector(int64_t{o.channels()} * s.kernel, 0, 0.5f);
  // Decays from almost none to fast: softplus of about 1 times 0.01 to 3.
  std::vector<float> a;
  for (int j = 0; j < o.n_value_heads; ++j) a.push_back(-0.01f * std::pow(300.0f, (j + 0.5f) / o.n_value_heads));
  o.a = p.vector_of(a);
  o.dt_bias = p.vector(o.n_value_heads, 0, 1);
  o.norm = p.vector(s.d_head, 1.0f, 0.3f);
  o.recurrent_layer = 1;
  o.out = p.buffer(o.n_value_heads * s.d_head);
  // A first layer of another shape, so that offsets matter.
  p.program.recurrent_layers = {{2, 5, 1, 3, 3}, {s.kernel - 1, o.channels(), o.n_value_heads, s.d_head, s.d_head}};
  p.program.ops.push_back(o);
  p.observe(o.out);
  c->cut_often();
  // Inside, S <- exp(g) (I - beta k k^T) S + beta k v^T never amplifies an error of S, for |k| = 1: the errors of T
  // tokens add up, each that of sums of d products. Rounding has no preferred sign, so they add as squares: 8 standard
  // deviations sqrt(T d / 3) kUlp are allowed, relative to the columns of S, which are of the order of the largest |v|
  // (5: silu of a conv of standard deviation near 1). q is scaled by 1 / sqrt(d). The norm multiplies by at most
  // 1 / sqrt(eps), its weight by 1.9, silu(z) by 4.
  const double sums = 8 * std::sqrt(double{kManyCutsLength} * s.d_head / 3) * kUlp;
  const double bound = sums * 5 / std::sqrt(s.d_head) / std::sqrt(o.eps) * 1.9 * 4;
  const int width = o.n_value_heads * s.d_head;
  c->allow(bound, width);
  return c;
}

struct MambaShape {
  int d_head, n_heads, n_groups, d_state, kernel;
  bool bias = true, norm = true;
};

// Inside, S <- exp(dt a) S + B (dt x)^T never amplifies an error of S: rounding errors of T tokens and of d_state
// products add up as squares, 8 standard deviations of sqrt((T + d_state) / 3) kUlp, relative to sums whose terms are
// of random sign and so some sqrt(d_state) times larger than their result; 4 times that is allowed.
double recurrence_error(int d_state) {
  return 8 * std::sqrt((double{kManyCutsLength} + d_state) / 3) * kUlp * 4 * std::sqrt(d_state);
}

std::unique_ptr<ParityCase> mamba2_case(const MambaShape& s) {
  auto c = std::make_unique<ParityCase>(101);
  ProgramForTest& p = c->p;
  op::Mamba2Mix o{};
  o.n_heads = s.n_heads, o.d_head = s.d_head, o.n_groups = s.n_groups, o.d_state = s.d_state;
  o.eps = 1e-2f;
  o.in = p.input(o.width(), 1.0f);
  o.conv = p.vector(int64_t{o.channels()} * s.kernel, 0, 0.5f);
  o.conv_bias = s.bias ? p.vector(o.channels(), 0, 0.5f) : kNone;
  // Decays from almost none to fast.
  std::vector<float> a;
  for (int j = 0; j < s.n_heads; ++j) a.push_back(-0.05f * std::pow(60.0f, (j + 0.5f) / s.n_heads));
  o.a = p.vector_of(a);
  o.d = p.vector(s.n_heads, 1.0f, 0.5f);
  o.dt_bias = p.vector(s.n_heads, -1.0f, 0.5f);
  o.norm = s.norm ? p.vector(o.d_inner(), 1.0f, 0.3f) : kNone;
  o.recurrent_layer = 1;
  o.out = p.buffer(o.d_inner());
  // A first layer of another shape, so that offsets matter.
  p.program.recurrent_layers = {{2, 5, 1, 3, 3},
                                {s.kernel - 1, o.channels(), s.n_heads, s.d_state, s.d_head, s.n_heads}};
  p.program.ops.push_back(o);
  p.observe(o.out);
  c->cut_often();
  // No element of a normalised group exceeds the root of its size, nor a weight 1.9. Without the norm: sums of d_state
  // products of state elements (some sqrt(T) terms of order 1) with C, and a gate of at most 4.
  const double largest =
      s.norm ? 1.9 * std::sqrt(o.d_inner() / s.n_groups) : 4 * std::sqrt(s.d_state * kManyCutsLength);
  const double bound = recurrence_error(s.d_state) * largest;
  const int width = o.d_inner();
  c->allow(bound, width);
  return c;
}

std::unique_ptr<ParityCase> mamba1_case(int channels, int d_state, int kernel, bool norms) {
  auto c = std::make_unique<ParityCase>(101);
  ProgramForTest& p = c->p;
  op::CausalConv conv{};
  conv.in = p.input(2 * channels, 1.0f);
  conv.conv = p.vector(int64_t{channels} * kernel, 0, 0.5f);
  conv.conv_bias = norms ? p.vector(channels, 0, 0.5f) : kNone;
  conv.channels = channels;
  conv.recurrent_layer = 1;
  conv.out = p.buffer(channels);
  op::SelectiveScan o{};
  o.x = conv.out;
  o.dt = p.input(channels, 1.0f);
  o.b = p.input(d_state, 1.0f);
  o.c = p.input(d_state, 1.0f);
  o.z = conv.in;
  o.z_at = channels;
  std::vector<float> a;
  for (int i = 0; i < channels * d_state; ++i) a.push_back(-0.1f - 0.5f * static_cast<float>(i % 37));
  o.a = p.vector_of(a);
  o.d = p.vector(channels, 1.0f, 0.5f);
  o.b_norm = norms ? p.vector(d_state, 1.0f, 0.3f) : kNone;
  o.c_norm = norms ? p.vector(d_state, 1.0f, 0.3f) : kNone;
  o.eps = 1e-2f;
  o.channels = channels, o.d_state = d_state, o.recurrent_layer = 1;
  o.out = p.buffer(channels);
  p.program.recurrent_layers = {{2, 5, 1, 3, 3}, {kernel - 1, channels, 1, d_state, channels, 2 * channels + d_state}};
  p.program.ops.push_back(conv);
  p.program.ops.push_back(o);
  p.observe(o.out);
  c->cut_often();
  const double bound = recurrence_error(d_state) * 4 * std::sqrt(d_state * kManyCutsLength);
  c->allow(bound, channels);
  return c;
}

// Sums of `kernel` products below 8 with a bias, and silu of them.
std::unique_ptr<ParityCase> conv_case(int channels, int kernel, bool bias) {
  auto c = std::make_unique<ParityCase>(101);
  ProgramForTest& p = c->p;
  op::CausalConv o{};
  o.in = p.input(channels + 5, 1.0f);
  o.conv = p.vector(int64_t{channels} * kernel, 0, 0.5f);
  o.conv_bias = bias ? p.vector(channels, 0, 0.5f) : kNone;
  o.channels = channels;
  o.recurrent_layer = 1;
  o.out = p.buffer(channels);
  p.program.recurrent_layers = {{2, 5, 1, 3, 3}, {kernel - 1, channels, 1, 1, channels}};
  p.program.ops.push_back(o);
  p.observe(o.out);
  c->cut_often();
  c->allow((kernel + 16) * kUlp * 8, channels);
  return c;
}

}  // namespace

Rows rows_of(Tag<op::GdnMix>) {
  Rows rows;
  for (const GdnShape& s : std::vector<GdnShape>{{48, 1, 1, false, 4},
                                                 {48, 3, 2, true, 2},
                                                 {48, 2, 3, false, 5},
                                                 {64, 1, 3, true, 3},
                                                 {64, 2, 2, true, 4},
                                                 {64, 3, 1, false, 4},
                                                 {128, 1, 2, true, 4},
                                                 {128, 2, 1, false, 5}}) {
    rows.push_back({"gdn_mix_d" + std::to_string(s.d_head) + "_key" + std::to_string(s.n_key_heads) + "_ratio" +
                        std::to_string(s.ratio) + (s.tiled ? "_tiled" : "_grouped") + "_conv" +
                        std::to_string(s.kernel),
                    [s] { return gdn_case(s); }, s.n_key_heads * s.ratio % 2 == 0});
  }
  return rows;
}

Rows rows_of(Tag<op::Mamba2Mix>) {
  Rows rows;
  for (const MambaShape& s : std::vector<MambaShape>{
           {16, 8, 2, 16, 4}, {48, 3, 1, 24, 2, false}, {20, 6, 3, 32, 5, true, false}, {64, 4, 2, 128, 4}}) {
    rows.push_back({"mamba2_mix_d" + std::to_string(s.d_head) + "_heads" + std::to_string(s.n_heads) + "_groups" +
                        std::to_string(s.n_groups) + "_state" + std::to_string(s.d_state) + "_conv" +
                        std::to_string(s.kernel) + (s.norm ? "" : "_no_norm"),
                    [s] { return mamba2_case(s); }});
  }
  return rows;
}

Rows rows_of(Tag<op::CausalConv>) {
  return {{"causal_conv_75_taps4", [] { return conv_case(75, 4, true); }},
          {"causal_conv_160_taps3_no_bias", [] { return conv_case(160, 3, false); }}};
}

Rows rows_of(Tag<op::SelectiveScan>) {
  return {{"selective_scan_75_state16", [] { return mamba1_case(75, 16, 4, false); }},
          {"selective_scan_160_state24_norms", [] { return mamba1_case(160, 24, 3, true); }}};
}

}  // namespace chimere::parity
