// Rows of the table: attention over pages of every format.
#include "table.h"

namespace chimere::parity {
namespace {

enum class RopeShape { none, half, adjacent, partial };

struct AttentionShape {
  int dk, dv, n_kv_heads, group;
  bool gated = false, norm = false;
  RopeShape rope = RopeShape::none;
  KvFormat kv{DType::F32, DType::F32, false};
  bool long_context = false;
  bool sinks = false;
  int window = 0;
  bool bidirectional = false;
  bool in_blocks = false;  // bidirectional too, behind a text
  bool stores = false;     // other keys and values are stored in place of what it saw
};

// The largest element and the largest norm of a head over all rows of a table, after the optional norm.
struct HeadSize {
  double element = 0, norm = 0;
};

HeadSize head_size(const ProgramForTest& p, MatrixId table, int d, VectorId norm) {
  HeadSize size;
  for (int r = 0; r < p.program.n_vocab; ++r) {
    const std::vector<float> row = p.row(table, r);
    for (size_t h = 0; h < row.size(); h += d) {
      Approx head = exactly({row.begin() + h, row.begin() + h + d});
      if (norm != kNone) head = normed(head, p.program.vectors[norm], 1e-6);
      double sum = 0;
      for (double v : head.value) {
        sum += v * v;
        size.element = std::max(size.element, std::abs(v));
      }
      size.norm = std::max(size.norm, std::sqrt(sum));
    }
  }
  return size;
}

std::unique_ptr<ParityCase> attention_case(const AttentionShape& s) {
  auto c = std::make_unique<ParityCase>(101);
  ProgramForTest& p = c->p;
  const int n_heads = s.n_kv_heads * s.group;
  op::Attention o{};
  o.n_heads = n_heads;
  o.n_kv_heads = s.n_kv_heads;
  o.head_dim_k = s.dk;
  o.head_dim_v = s.dv;
  o.gated = s.gated;
  o.eps = 1e-6f;
  o.scale = 1.0f / std::sqrt(static_cast<float>(s.dk));
  const MatrixId q = static_cast<MatrixId>(p.program.matrices.size());
  o.q = p.input(n_heads * s.dk * (s.gated ? 2 : 1), 1.0f);
  o.k = p.input(s.n_kv_heads * s.dk, 1.0f);
  o.v = p.input(s.n_kv_heads * s.dv, 1.0f);
  o.q_norm = s.norm ? p.vector(s.dk, 1.0f, 0.2f) : kNone;
  o.k_norm = s.norm ? p.vector(s.dk, 1.0f, 0.2f) : kNone;
  o.rope = kNone;
  if (s.rope != RopeShape::none) {
    Rope rope;
    rope.pairing = s.rope == RopeShape::adjacent ? Rope::Pairing::adjacent : Rope::Pairing::half;
    const int n_rot = s.rope == RopeShape::partial ? s.dk / 4 / 2 * 2 : s.dk;
    for (int k = 0; k < n_rot / 2; ++k) rope.inv_freq.push_back(std::pow(1e4f, -2.0f * k / n_rot));
    rope.magnitude = 1.1f;
    p.program.ropes.push_back(rope);
    o.rope = 0;
  }
  if (s.sinks) o.sinks = p.vector(n_heads, 0.5f, 1.0f);
  o.window = s.window;
  o.bidirectional = s.bidirectional || s.in_blocks;
  o.kv_layer = 1;
  o.out = p.buffer(n_heads * s.dv);
  p.program.kv_layers = {{1, 32, 64}, {s.n_kv_heads, s.dk, s.dv}};
  p.program.ops.push_back(o);
  const MatrixId stored = static_cast<MatrixId>(p.program.matrices.size());
  if (s.stores) {
    op::Attention store = o;
    store.q = store.q_norm = store.out = kNone;
    store.n_heads = s.n_kv_heads;
    store.k = p.input(s.n_kv_heads * s.dk, 1.0f);
    store.v = p.input(s.n_kv_heads * s.dv, 1.0f);
    p.program.ops.push_back(store);
  }
  p.observe(o.out);
  c->kv = s.kv;
  c->cut_often();
  double length = kManyCutsLength;
  if (s.long_context) {
    // Contexts beyond 256 and 512 tokens, where the decode class joins pieces of the context.
    c->steps = {{{0, 255}}, {{0, 1}, {1, 250}}, {{0, 3}, {1, 16}}, {{0, 250}}, {{0, 9}, {1, 1}}};
    c->steps_if_slow = {{{0, 255}}, {{0, 1}}, {{0, 3}, {1, 17}}};
    length = 518;
  }
  if (s.bidirectional) {
    c->steps = {{{0, 1}, {1, 2}, {2, 16}, {3, 17}, {4, 64}}, {{5, 65}, {6, 83}}};
    c->steps_if_slow = {{{0, 1}, {1, 16}, {2, 17}, {3, 65}}};
    length = 83;
  }

  if (s.in_blocks) {
    // Blocks across a page, across the pieces of the context that the decode class joins, and one that is not alone.
    c->steps = {{{0, 60}, {1, 252}}, {{0, 5}, {1, 8}}, {{0, 16}, {1, 1}}, {{1, 250}}, {{1, 9}, {0, 3}}};
    c->steps_if_slow = {{{0, 60}}, {{0, 5}}, {{0, 16}}};
    length = 520;
  }

  // A score is a sum of dk products that never exceeds |q| |k| scale: with random signs, 8 standard deviations of
  // sqrt(dk / 3) kUlp of that. The heads' norm, rotation and RoPE cost a few roundings each (30). The angle of a pair
  // may be kept in float32 (the oracle does so): off by pos kUlp at most, in dk / 2 pairs of random sign.
  // A score off by e moves a softmax weight by a factor exp(2 e) at most, so the output, an average of values, by
  // 2 e max|v|; the average itself is a sum of `length` products of random sign, and the exponential adds a few units.
  // Rotation alone adds and subtracts in a given order, so all sides store the same codes. After a norm or RoPE they
  // may round an element of a key to neighbouring codes. That moves its score by one step times an element of q, and
  // the average by p (1 - p) times that, of a distance of at most 2 max|v|.
  const double magnitude = o.rope == kNone ? 1.0 : 1.1;
  const HeadSize qs = head_size(p, q, s.dk, o.q_norm);
  HeadSize ks = head_size(p, q + 1, s.dk, o.k_norm);
  double top_v = head_size(p, q + 2, s.dv, kNone).element;
  if (s.stores) {
    const HeadSize others = head_size(p, stored, s.dk, o.k_norm);
    ks = {std::max(ks.element, others.element), std::max(ks.norm, others.norm)};
    top_v = std::max(top_v, head_size(p, stored + 1, s.dv, kNone).element);
  }
  double step = 0;
  if (s.norm || o.rope != kNone) {
    const double top_k = ks.element * magnitude * std::sqrt(2.0);
    if (s.kv.k == DType::F16) step = top_k * 0x1p-10;
    if (s.kv.k == DType::Q8_0) step = top_k / 127;
    if (s.kv.k == DType::Q4_0) step = top_k / 8;
  }
  const double angle = o.rope == kNone ? 0.0 : 8 * length / std::sqrt(s.dk / 2.0);
  const double products = qs.norm * ks.norm * magnitude * magnitude * (8 * std::sqrt(s.dk / 3.0) + 30 + angle) * kUlp;
  const double score = o.scale * products;
  const double flip = o.scale * qs.element * magnitude * std::sqrt(2.0) * step;
  const double bound = (2 * score + flip / 2 + (8 * std::sqrt(length / 3) + 30) * kUlp) * top_v;
  const int width = n_heads * s.dv;
  c->allow(bound, width);
  return c;
}

}  // namespace

Rows rows_of(Tag<op::Attention>) {
  Rows rows;
  const auto add = [&](const std::string& name, const AttentionShape& s, bool runs_if_slow = true) {
    rows.push_back({"attention_" + name, [s] { return attention_case(s); }, runs_if_slow});
  };
  const auto add_if_quick = [&](const std::string& name, const AttentionShape& s) { add(name, s, false); };
  const KvFormat f32{DType::F32, DType::F32, false}, f16{DType::F16, DType::F16, false};
  const KvFormat q8{DType::Q8_0, DType::Q8_0, false}, q4{DType::Q4_0, DType::Q4_0, false};
  const auto rotated = [](KvFormat f) { return KvFormat{f.k, f.v, true}; };
  add_if_quick("d48", {48, 48, 1, 1});
  add("d48_gqa3_gated_norm_half", {48, 48, 2, 3, true, true, RopeShape::half, f32});
  add("d64_gqa7_adjacent", {64, 64, 1, 7, false, false, RopeShape::adjacent, f32});
  add("d80_partial_norm", {80, 80, 3, 2, false, true, RopeShape::partial, f32});
  add("d128_gqa4_half", {128, 128, 1, 4, false, false, RopeShape::half, f32});
  add("d256_gqa2_gated_norm_partial", {256, 256, 1, 2, true, true, RopeShape::partial, f32});
  add("dk80_dv48", {80, 48, 2, 2, false, false, RopeShape::half, f32});
  add_if_quick("d80_f16", {80, 80, 1, 3, false, false, RopeShape::none, f16});
  add("d48_f16_rotate", {48, 48, 2, 1, false, false, RopeShape::none, rotated(f16)});
  add("d128_f16_norm_half", {128, 128, 1, 2, true, true, RopeShape::half, f16});
  add_if_quick("d64_q8_0", {64, 64, 2, 2, false, false, RopeShape::none, q8});
  add("d96_q8_0_rotate", {96, 96, 1, 5, true, false, RopeShape::none, rotated(q8)});
  add("d128_q8_0_norm_half_rotate", {128, 128, 1, 3, true, true, RopeShape::half, rotated(q8)});
  add("d64_q4_0", {64, 64, 2, 3, true, false, RopeShape::none, q4});
  add("d256_q4_0_rotate", {256, 256, 1, 2, false, false, RopeShape::none, rotated(q4)});
  add("d64_q8_0_keys_q4_0_values", {64, 96, 1, 2, false, false, RopeShape::none, {DType::Q8_0, DType::Q4_0, false}});
  add("d48_f32_keys_f16_values", {48, 80, 1, 3, false, false, RopeShape::half, {DType::F32, DType::F16, true}});
  add_if_quick("d48_long_context", {48, 48, 1, 3, true, true, RopeShape::half, f32, true});
  add("d48_sinks", {48, 48, 2, 3, false, false, RopeShape::half, f32, false, true});
  add_if_quick("d48_window20", {48, 48, 1, 2, false, false, RopeShape::none, f32, false, false, 20});
  add("d64_sinks_window100_f16", {64, 64, 2, 2, false, false, RopeShape::none, f16, false, true, 100});
  add("d48_window300_long_context", {48, 48, 1, 3, true, true, RopeShape::half, f32, true, true, 300});
  add_if_quick("d48_window7_long_context", {48, 48, 1, 2, false, false, RopeShape::half, f32, true, false, 7});
  add_if_quick("d64_long_context_q8_0", {64, 64, 1, 2, false, false, RopeShape::none, q8, true});
  AttentionShape encoder{48, 48, 3, 1};
  encoder.bidirectional = true;
  add("d48_bidirectional", encoder);
  encoder = {64, 64, 2, 2, false, false, RopeShape::half, f16};
  encoder.bidirectional = true;
  add("d64_bidirectional_f16", encoder);
  AttentionShape blocks{48, 48, 2, 2, false, true, RopeShape::half, f32};
  blocks.in_blocks = true;
  add_if_quick("d48_blocks", blocks);  // on cards, drafters are refused
  AttentionShape stores{64, 64, 2, 3, false, true, RopeShape::half, f16};
  stores.stores = true;
  add("d64_stores_others", stores);
  return rows;
}

}  // namespace chimere::parity
