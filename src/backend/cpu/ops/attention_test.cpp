// attention_test.cpp  Attention against a naive double-precision one over the rows that were really stored.
//
// The naive side reads K and V back from the pages, so a tolerance covers the arithmetic of scores, softmax and sums
// only, whatever the KV type; what the pages hold is compared apart, with the rows they should hold.
#include "backend/cpu/ops/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include "backend/cpu/ops/every_isa.h"
#include "backend/cpu/ops/hadamard.h"
#include "tensor/dequantize.h"

namespace chimere::cpu {
namespace {

struct Shape {
  int n_heads, n_kv_heads, dk, dv;
  bool gated = false, norm = false;
  int n_rot = 0;
  Rope::Pairing pairing = Rope::Pairing::half;
  KvFormat kv = {};
};

struct Fixture {
  explicit Fixture(const Shape& s, int n_threads = 2) : shape(s), pool(n_threads), rng(99) {
    program.buffers = {{"q", s.n_heads * s.dk * (s.gated ? 2 : 1)},
                       {"k", s.n_kv_heads * s.dk},
                       {"v", s.n_kv_heads * s.dv},
                       {"out", s.n_heads * s.dv}};
    op.q = 0, op.k = 1, op.v = 2, op.out = 3;
    op.n_heads = s.n_heads, op.n_kv_heads = s.n_kv_heads, op.head_dim_k = s.dk, op.head_dim_v = s.dv;
    op.gated = s.gated;
    op.eps = 1e-6f;
    op.scale = s.norm ? 1.0f / std::sqrt(static_cast<float>(s.dk)) : 0.7f / std::sqrt(static_cast<float>(s.dk));
    op.kv_layer = 1;
    if (s.norm) {
      program.vectors = {normal(s.dk, 1.5f), normal(s.dk, 1.5f)};
      op.q_norm = 0, op.k_norm = 1;
    }
    if (s.n_rot > 0) {
      Rope rope;
      rope.pairing = s.pairing;
      rope.magnitude = 1.1f;
      for (int k = 0; k < s.n_rot / 2; ++k)
        rope.inv_freq.push_back(std::pow(1e4f, -2.0f * static_cast<float>(k) / static_cast<float>(s.n_rot)));
      program.ropes.push_back(rope);
      op.rope = 0;
    }
    program.ops.push_back(op);
    // A first layer of another shape, so that offsets inside a page matter.
    program.kv_layers = {{1, 32, 64}, {s.n_kv_heads, s.dk, s.dv}};
    layout = std::make_unique<StateLayout>(std::move(*StateLayout::create(program.kv_layers, {}, s.kv)));
    scratch.reserve(program, *layout, 1024, n_threads);
  }
  std::vector<float> normal(int64_t n, float scale) {
    std::normal_distribution<float> d(0, scale);
    std::vector<float> x(static_cast<size_t>(n));
    for (float& v : x) v = d(rng);
    return x;
  }

  Shape shape;
  ThreadPool pool;
  std::mt19937 rng;
  Program program;
  op::Attention op{};
  std::unique_ptr<StateLayout> layout;
  AttentionScratch scratch;
};

// A sequence: inputs of all its tokens and its pages, which start with bytes that read as NaN.
struct Sequence {
  Sequence(Fixture& f, int n)
      : n_tokens(n),
        q(f.normal(int64_t{n} * f.program.buffers[0].width, 1.0f)),
        k(f.normal(int64_t{n} * f.program.buffers[1].width, 1.0f)),
        v(f.normal(int64_t{n} * f.program.buffers[2].width, 1.0f)) {
    clear(f);
  }
  void clear(const Fixture& f) {
    memory.assign(static_cast<size_t>((n_tokens + kPageTokens - 1) / kPageTokens),
                  std::vector<std::byte>(f.layout->page_bytes(), std::byte{0xFF}));
    pages.clear();
    for (std::vector<std::byte>& m : memory) pages.push_back(m.data());
  }
  int n_tokens;
  std::vector<float> q, k, v;
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::byte*> pages;
};

struct Part {
  Sequence* sequence;
  int pos, n_tokens;
};

std::vector<float> run(Fixture& f, const std::vector<Part>& parts) {
  Batch batch;
  std::vector<std::vector<float>> data(4);
  for (const Part& p : parts) {
    Slice slice;
    slice.state.kv_pages = p.sequence->pages.data();
    slice.pos = p.pos;
    slice.n_tokens = p.n_tokens;
    slice.first_row = batch.n_rows();
    batch.slices.push_back(slice);
    batch.tokens.resize(batch.tokens.size() + static_cast<size_t>(p.n_tokens));
    const std::vector<float>* sources[] = {&p.sequence->q, &p.sequence->k, &p.sequence->v};
    for (int b = 0; b < 3; ++b) {
      const auto begin = sources[b]->begin() + int64_t{p.pos} * f.program.buffers[b].width;
      data[b].insert(data[b].end(), begin, begin + int64_t{p.n_tokens} * f.program.buffers[b].width);
    }
  }
  data[3].resize(static_cast<size_t>(batch.n_rows()) * f.program.buffers[3].width);
  std::vector<float*> buffers;
  for (std::vector<float>& d : data) buffers.push_back(d.data());
  const Context context{f.program, *f.layout, batch, buffers};
  f.scratch.begin(f.program, batch);
  f.pool.run([&](Team& team) { attention(team, context, f.op, f.scratch); });
  return data[3];
}

// Norm, RoPE and rotation of one head, in doubles.
std::vector<double> prepared(const Fixture& f, const float* x, VectorId norm, int pos) {
  const int d = f.shape.dk;
  std::vector<double> y(x, x + d);
  if (norm != kNone) {
    double squares = 0;
    for (double v : y) squares += v * v;
    for (int i = 0; i < d; ++i) y[i] = y[i] / std::sqrt(squares / d + double{f.op.eps}) * f.program.vectors[norm][i];
  }
  if (f.op.rope != kNone) {
    const Rope& rope = f.program.ropes[0];
    const int half = rope.n_rot() / 2;
    for (int k = 0; k < half; ++k) {
      const bool halves = rope.pairing == Rope::Pairing::half;
      double& a = y[halves ? k : 2 * k];
      double& b = y[halves ? k + half : 2 * k + 1];
      const double angle = double{rope.inv_freq[k]} * pos;
      const double c = std::cos(angle) * rope.magnitude, s = std::sin(angle) * rope.magnitude, a0 = a;
      a = a * c - b * s;
      b = b * c + a0 * s;
    }
  }
  if (f.shape.kv.rotate) {
    const int block = hadamard_block(d);
    std::vector<double> r(d);
    for (int i = 0; i < d; ++i) {
      for (int j = 0; j < block; ++j) {
        const int sign = __builtin_parity(static_cast<unsigned>((i % block) & j)) ? -1 : 1;
        r[i] += sign * y[i / block * block + j] / std::sqrt(block);
      }
    }
    y = r;
  }
  return y;
}

std::vector<float> stored(const Fixture& f, const Sequence& s, bool key, int head, int pos) {
  const int d = key ? f.shape.dk : f.shape.dv;
  const uint64_t at = key ? f.layout->k_offset(1, head) + pos % kPageTokens * f.layout->k_row_bytes(1)
                          : f.layout->v_offset(1, head) + pos % kPageTokens * f.layout->v_row_bytes(1);
  std::vector<float> row(static_cast<size_t>(d));
  dequantize_row(key ? f.shape.kv.k : f.shape.kv.v, s.pages[pos / kPageTokens] + at, row.data(), d);
  return row;
}

// Pages hold what they should, to the step of their type.
void expect_pages(const Fixture& f, const Sequence& s, int n_tokens) {
  const auto step = [](DType type) {
    return type == DType::F32 ? 1e-6 : type == DType::F16 ? 1e-3 : type == DType::Q8_0 ? 0.5 / 126 : 0.5 / 7.9;
  };
  const auto compare = [&](const std::vector<float>& got, const std::vector<double>& want, DType type) {
    double peak = 0;
    for (double w : want) peak = std::max(peak, std::fabs(w));
    // Q4_0 has codes -8 to 7: the end opposite to the peak may be cut by a whole step.
    const double slack = type == DType::Q4_0 ? 2 : 1.01;
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], step(type) * peak * slack);
  };
  for (int t = 0; t < n_tokens; ++t) {
    for (int h = 0; h < f.shape.n_kv_heads; ++h) {
      const float* k = s.k.data() + (int64_t{t} * f.shape.n_kv_heads + h) * f.shape.dk;
      const float* v = s.v.data() + (int64_t{t} * f.shape.n_kv_heads + h) * f.shape.dv;
      compare(stored(f, s, true, h, t), prepared(f, k, f.op.k_norm, t), f.shape.kv.k);
      compare(stored(f, s, false, h, t), std::vector<double>(v, v + f.shape.dv), f.shape.kv.v);
    }
  }
}

std::vector<double> naive_row(const Fixture& f, const Sequence& s, int pos) {
  const Shape& sh = f.shape;
  const int stride = sh.dk * (sh.gated ? 2 : 1);
  std::vector<double> out;
  std::vector<double> w(static_cast<size_t>(pos) + 1);
  std::vector<std::vector<float>> keys(w.size()), values(w.size());
  for (int h = 0; h < sh.n_heads; ++h) {
    const int kv_head = h / (sh.n_heads / sh.n_kv_heads);
    for (int t = 0; t <= pos && h % (sh.n_heads / sh.n_kv_heads) == 0; ++t) {
      keys[t] = stored(f, s, true, kv_head, t);
      values[t] = stored(f, s, false, kv_head, t);
    }
    const float* row = s.q.data() + int64_t{pos} * f.program.buffers[0].width + int64_t{h} * stride;
    const std::vector<double> q = prepared(f, row, f.op.q_norm, pos);
    double max = -1e300, sum = 0;
    for (int t = 0; t <= pos; ++t) {
      w[t] = 0;
      for (int i = 0; i < sh.dk; ++i) w[t] += q[i] * keys[t][i] * f.op.scale;
      max = std::max(max, w[t]);
    }
    std::vector<double> o(static_cast<size_t>(sh.dv));
    for (int t = 0; t <= pos; ++t) {
      const double p = std::exp(w[t] - max);
      sum += p;
      for (int i = 0; i < sh.dv; ++i) o[i] += p * values[t][i];
    }
    for (int i = 0; i < sh.dv; ++i) {
      const double gate = sh.gated ? 1 / (1 + std::exp(-double{row[sh.dk + i]})) : 1;
      out.push_back(o[i] / sum * gate);
    }
  }
  return out;
}

// Scores reach some tens, so their float rounding moves a weight by about 1e-6 of itself; the rest is smaller.
constexpr double kTolerance = 2e-5;

void expect_row(const Fixture& f, const Sequence& s, int pos, const float* got) {
  const std::vector<double> want = naive_row(f, s, pos);
  double peak = 0;
  for (double x : want) peak = std::max(peak, std::fabs(x));
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], kTolerance * (1 + peak)) << "position " << pos << ", element " << i;
  }
}

void expect_matches(const Shape& shape, const std::vector<int>& cuts, int check_every) {
  Fixture f(shape);
  int n = 0;
  for (int c : cuts) n += c;
  Sequence s(f, n);
  std::vector<float> out;
  int pos = 0;
  for (int c : cuts) {
    const std::vector<float> part = run(f, {{&s, pos, c}});
    out.insert(out.end(), part.begin(), part.end());
    pos += c;
  }
  expect_pages(f, s, n);
  for (int t = 0; t < n; t += check_every) {
    expect_row(f, s, t, out.data() + int64_t{t} * shape.n_heads * shape.dv);
  }
  expect_row(f, s, n - 1, out.data() + int64_t{n - 1} * shape.n_heads * shape.dv);
}

const Shape kGated{8, 2, 64, 64, true, true, 16};
const Shape kOdd{6, 2, 48, 80, false, false, 48, Rope::Pairing::adjacent};
const Shape kWide{8, 1, 256, 256, true, true, 64};
const Shape kPlain{4, 4, 32, 32};

using Attention = EveryIsa;

TEST_P(Attention, PrefillMatchesNaive) {
  for (const Shape& s : {kGated, kOdd, kWide, kPlain}) expect_matches(s, {150}, 7);
  expect_matches(kGated, {17, 64, 100, 31}, 5);
}

TEST_P(Attention, DecodeMatchesNaive) {
  for (const Shape& s : {kGated, kOdd, kWide, kPlain}) expect_matches(s, {60, 1, 1, 1, 1, 1, 16, 1, 7}, 3);
}

TEST_P(Attention, SplitsAreJoined) {
  expect_matches(kGated, {500, 1, 11, 1, 16, 300, 1, 3}, 97);
  expect_matches(kOdd, {510, 1, 1, 1, 16}, 97);
}

TEST_P(Attention, EveryStorageType) {
  for (DType k : {DType::F32, DType::F16, DType::Q8_0, DType::Q4_0}) {
    for (DType v : {DType::F32, DType::F16, DType::Q8_0, DType::Q4_0}) {
      Shape s{4, 2, 64, 96, false, true, 32};
      s.kv = {k, v, k == v};
      expect_matches(s, {100, 1, 5, 1, 20}, 9);
    }
  }
  Shape odd = kOdd;
  odd.kv = {DType::F32, DType::F32, true};
  expect_matches(odd, {40, 1, 5}, 3);
}

TEST(AttentionSplits, DependOnThePositionAlone) {
  EXPECT_EQ(split_tokens(0), 256);
  EXPECT_EQ(split_tokens(16383), 256);
  EXPECT_EQ(split_tokens(16384), 512);
  for (int pos = 0; pos < 1 << 20; pos += 4093) EXPECT_LE(pos / split_tokens(pos) + 1, 64);
}

// Decode rows one by one on one thread, then together with others on two threads: the same bits.
TEST_P(Attention, BatchAndThreadsLeaveNoTrace) {
  for (const DType type : {DType::F16, DType::Q8_0}) {
    Shape shape = kGated;
    shape.kv = {type, type, false};
    Fixture one(shape, 1), two(shape, 2);
    Sequence a(one, 600), b(one, 90), c(one, 300);
    const int width = shape.n_heads * shape.dv;
    run(one, {{&a, 0, 505}});
    run(one, {{&b, 0, 70}});
    std::vector<float> want;
    const auto append = [&](const std::vector<float>& rows) { want.insert(want.end(), rows.begin(), rows.end()); };
    for (int t = 505; t < 520; ++t) append(run(one, {{&a, t, 1}}));
    for (int t = 70; t < 73; ++t) append(run(one, {{&b, t, 1}}));
    append(run(one, {{&c, 0, 300}}));

    for (Sequence* s : {&a, &b, &c}) s->clear(two);
    run(two, {{&a, 0, 505}, {&b, 0, 70}});
    const std::vector<float> got = run(two, {{&a, 505, 15}, {&b, 70, 3}, {&c, 0, 300}});
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], want[i]) << "row " << i / width;
  }
}

// A slice whose rows cross the position where splits double.
TEST_P(Attention, GrowingSplits) {
  Shape shape{2, 1, 32, 32};
  Fixture f(shape, 2);
  const int n = 16392;
  Sequence s(f, n);
  f.op.window = 1;  // for now: what these rows see is no part of the test, only what they store
  for (int pos = 0; pos < 16380; pos += 1020) run(f, {{&s, pos, std::min(1020, 16380 - pos)}});
  f.op.window = 0;
  const std::vector<float> together = run(f, {{&s, 16380, 12}});
  for (int t = 0; t < 12; ++t) {
    const std::vector<float> alone = run(f, {{&s, 16380 + t, 1}});
    for (int i = 0; i < 64; ++i) ASSERT_EQ(alone[i], together[t * 64 + i]) << "row " << t;
  }
  expect_row(f, s, 16383, together.data() + 3 * 64);
  expect_row(f, s, 16391, together.data() + 11 * 64);
}

INSTANTIATE_TEST_SUITE_P(All, Attention, testing::ValuesIn(vector_isas()), isa_name);

TEST(Hadamard, IsItsOwnInverse) {
  Fixture f(kPlain);
  for (int n : {1, 3, 48, 64, 80, 256}) {
    const std::vector<float> x = f.normal(n, 1.0f);
    std::vector<float> y = x;
    hadamard(n, y.data());
    double before = 0, after = 0;
    for (int i = 0; i < n; ++i) before += x[i] * x[i], after += y[i] * y[i];
    EXPECT_NEAR(before, after, 1e-4 * before);
    hadamard(n, y.data());
    for (int i = 0; i < n; ++i) EXPECT_NEAR(x[i], y[i], 1e-5);
  }
}

}  // namespace
}  // namespace chimere::cpu
