// gdn_mix_test.cpp  Gated DeltaNet against a naive double-precision recurrence: both classes, every chunk residue.
#include "backend/cpu/ops/gdn_mix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "backend/cpu/ops/every_isa.h"

namespace chimere::cpu {
namespace {

struct Shape {
  int n_key_heads, n_value_heads, d_head, taps;
  bool tiled;
};

// A program of one GdnMix per layer, with random constants.
struct Fixture {
  explicit Fixture(const Shape& s, int n_layers = 1, int n_threads = 2) : shape(s), pool(n_threads), rng(1234) {
    const int channels = (2 * s.n_key_heads + s.n_value_heads) * s.d_head;
    const int values = s.n_value_heads * s.d_head;
    program.buffers = {
        {"qkv", channels}, {"z", values}, {"alpha", s.n_value_heads}, {"beta", s.n_value_heads}, {"out", values}};
    for (int l = 0; l < n_layers; ++l) {
      const int v = static_cast<int>(program.vectors.size());
      program.vectors.push_back(normal(channels * s.taps, 0.5f));
      program.vectors.emplace_back();
      // From slow to so fast that a token is gone two tokens later.
      for (int i = 0; i < s.n_value_heads; ++i) {
        program.vectors.back().push_back(i == s.n_value_heads - 1 ? -6.0f : -0.02f * static_cast<float>(1 + i * i));
      }
      program.vectors.push_back(normal(s.n_value_heads, 1.0f));
      program.vectors.push_back(normal(s.d_head, 1.0f));
      op::GdnMix op{};
      op.qkv = 0, op.z = 1, op.alpha = 2, op.beta = 3, op.out = 4;
      op.conv = v, op.a = v + 1, op.dt_bias = v + 2, op.norm = v + 3;
      op.eps = 1e-6f;
      op.n_key_heads = s.n_key_heads, op.n_value_heads = s.n_value_heads, op.d_head = s.d_head;
      op.tiled_heads = s.tiled;
      op.recurrent_layer = l;
      program.ops.push_back(op);
      program.recurrent_layers.push_back({s.taps - 1, channels, s.n_value_heads, s.d_head, s.d_head});
    }
    layout = std::make_unique<StateLayout>(std::move(*StateLayout::create({}, program.recurrent_layers, {})));
    scratch.reserve(program, *layout, kChunkTokens, n_threads);
  }

  std::vector<float> normal(int n, float scale) {
    std::normal_distribution<float> d(0, scale);
    std::vector<float> x(static_cast<size_t>(n));
    for (float& v : x) v = d(rng);
    return x;
  }

  const op::GdnMix& op(int layer = 0) const { return std::get<op::GdnMix>(program.ops[layer]); }
  std::vector<float> new_state() const { return std::vector<float>(static_cast<size_t>(layout->recurrent_floats())); }

  Shape shape;
  ThreadPool pool;
  std::mt19937 rng;
  Program program;
  std::unique_ptr<StateLayout> layout;
  RecurrentScratch scratch;
};

// The inputs of a whole sequence.
struct Inputs {
  Inputs(Fixture& f, int n)
      : n_tokens(n),
        qkv(f.normal(n * f.op().channels(), 1.0f)),
        z(f.normal(n * f.shape.n_value_heads * f.shape.d_head, 1.0f)),
        alpha(f.normal(n * f.shape.n_value_heads, 1.5f)),
        beta(f.normal(n * f.shape.n_value_heads, 1.5f)) {}
  int n_tokens;
  std::vector<float> qkv, z, alpha, beta;
};

// A slice of a sequence inside a batch.
struct Part {
  const Inputs* inputs;
  int pos, n_tokens;
  float* state;
  float* replay = nullptr;
};

// Runs one layer over a batch of parts; the outputs, in batch order.
std::vector<float> run(Fixture& f, const std::vector<Part>& parts, int layer = 0) {
  Batch batch;
  std::vector<std::vector<float>> data(5);
  for (const Part& p : parts) {
    Slice slice;
    slice.state.recurrent = p.state;
    slice.state.replay = p.replay;
    slice.pos = p.pos;
    slice.n_tokens = p.n_tokens;
    slice.first_row = batch.n_rows();
    batch.slices.push_back(slice);
    batch.tokens.resize(batch.tokens.size() + static_cast<size_t>(p.n_tokens));
    const std::vector<float>* sources[] = {&p.inputs->qkv, &p.inputs->z, &p.inputs->alpha, &p.inputs->beta};
    for (int b = 0; b < 4; ++b) {
      const auto begin = sources[b]->begin() + int64_t{p.pos} * f.program.buffers[b].width;
      data[b].insert(data[b].end(), begin, begin + int64_t{p.n_tokens} * f.program.buffers[b].width);
    }
  }
  data[4].resize(static_cast<size_t>(batch.n_rows()) * f.program.buffers[4].width);
  std::vector<float*> buffers;
  for (std::vector<float>& d : data) buffers.push_back(d.data());
  const Context context{f.program, *f.layout, batch, buffers};
  f.pool.run([&](Team& team) { gdn_mix(team, context, f.op(layer), f.scratch); });
  return data[4];
}

struct Naive {
  std::vector<double> out, state;
};

Naive naive(const Fixture& f, const Inputs& in) {
  const op::GdnMix& op = f.op();
  const int d = op.d_head, channels = op.channels(), taps = f.shape.taps, heads = op.n_value_heads;
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  Naive r;
  r.out.resize(static_cast<size_t>(in.n_tokens) * heads * d);
  r.state.resize(static_cast<size_t>(heads) * d * d);
  std::vector<double> c(channels), q(d), k(d), delta(d), o(d);
  for (int t = 0; t < in.n_tokens; ++t) {
    for (int ch = 0; ch < channels; ++ch) {
      double sum = 0;
      for (int j = 0; j < taps; ++j) {
        const int at = t + j - taps + 1;
        if (at >= 0) sum += double{f.program.vectors[op.conv][ch * taps + j]} * in.qkv[int64_t{at} * channels + ch];
      }
      c[ch] = silu(sum);
    }
    for (int h = 0; h < heads; ++h) {
      const int kh = op.tiled_heads ? h % op.n_key_heads : h / (heads / op.n_key_heads);
      double qq = 0, kk = 0;
      for (int i = 0; i < d; ++i) {
        q[i] = c[kh * d + i], k[i] = c[(op.n_key_heads + kh) * d + i];
        qq += q[i] * q[i], kk += k[i] * k[i];
      }
      for (int i = 0; i < d; ++i) q[i] /= std::sqrt(qq + 1e-6) * std::sqrt(d), k[i] /= std::sqrt(kk + 1e-6);
      const double x = double{in.alpha[t * heads + h]} + f.program.vectors[op.dt_bias][h];
      const double decay = std::exp(f.program.vectors[op.a][h] * std::log1p(std::exp(x)));
      const double beta = 1 / (1 + std::exp(-double{in.beta[t * heads + h]}));
      double* s = r.state.data() + int64_t{h} * d * d;
      for (int j = 0; j < d; ++j) {
        double read = 0;
        for (int i = 0; i < d; ++i) read += (s[i * d + j] *= decay) * k[i];
        delta[j] = beta * (c[(2 * op.n_key_heads + h) * d + j] - read);
        o[j] = 0;
        for (int i = 0; i < d; ++i) o[j] += (s[i * d + j] += k[i] * delta[j]) * q[i];
      }
      double oo = 0;
      for (int j = 0; j < d; ++j) oo += o[j] * o[j];
      for (int j = 0; j < d; ++j) {
        const int64_t at = (int64_t{t} * heads + h) * d + j;
        r.out[at] = o[j] / std::sqrt(oo / d + double{op.eps}) * f.program.vectors[op.norm][j] * silu(in.z[at]);
      }
    }
  }
  return r;
}

// The largest difference over the root mean square of what is expected.
template <class A, class B>
double relative_error(const A& got, const B& want, size_t offset, size_t n) {
  double worst = 0, squares = 0;
  for (size_t i = 0; i < n; ++i) {
    const double diff = std::fabs(double{got[offset + i]} - want[i]);
    worst = std::isnan(diff) ? 1e9 : std::max(worst, diff);
    squares += want[i] * want[i];
  }
  return worst / std::sqrt(squares / static_cast<double>(n) + 1e-30);
}

void expect_matches(Fixture& f, const Inputs& in, const std::vector<int>& cuts) {
  std::vector<float> state = f.new_state();
  std::vector<float> out;
  int pos = 0;
  for (int n : cuts) {
    const std::vector<float> part = run(f, {{&in, pos, n, state.data()}});
    out.insert(out.end(), part.begin(), part.end());
    pos += n;
  }
  ASSERT_EQ(pos, in.n_tokens);
  const Naive want = naive(f, in);
  // The gated norm divides by the size of a head's output, which may be small beside what it is a sum of.
  EXPECT_LT(relative_error(out, want.out, 0, want.out.size()), 1e-4);
  EXPECT_LT(relative_error(state, want.state, f.layout->matrix_offset(0), want.state.size()), 2e-5);
  const int channels = f.op().channels();
  for (int i = 0; i < f.shape.taps - 1; ++i) {
    const int at = in.n_tokens - (f.shape.taps - 1) + i;
    for (int c = 0; c < channels; ++c) {
      ASSERT_EQ(state[f.layout->conv_offset(0) + i * channels + c], at < 0 ? 0.0f : in.qkv[at * channels + c]);
    }
  }
}

using GdnMix = EveryIsa;

TEST_P(GdnMix, RecurrenceMatchesNaive) {
  for (const Shape& s :
       {Shape{2, 4, 128, 4, true}, Shape{2, 4, 48, 4, false}, Shape{1, 3, 20, 2, true}, Shape{2, 2, 64, 3, false}}) {
    Fixture f(s);
    const Inputs in(f, 37);
    expect_matches(f, in, {16, 1, 1, 3, 16});
  }
}

TEST_P(GdnMix, ChunksMatchNaive) {
  for (const Shape& s : {Shape{2, 4, 128, 4, true}, Shape{1, 2, 48, 4, false}, Shape{1, 3, 20, 2, true}}) {
    Fixture f(s);
    const Inputs in(f, 300);
    expect_matches(f, in, {300});
    expect_matches(f, in, {17, 200, 16, 67});
  }
}

TEST_P(GdnMix, ChunksAtEveryResidueMatchNaive) {
  Fixture f({1, 2, 32, 4, true});
  for (int start = 17; start < 17 + kChunkTokens; ++start) {
    const Inputs in(f, start + 83);
    expect_matches(f, in, {start, 83});
  }
}

TEST_P(GdnMix, SameCutsOnTheGridGiveTheSameBits) {
  Fixture f({2, 4, 64, 4, true});
  const Inputs in(f, 256);
  std::vector<float> whole = f.new_state(), parts = f.new_state();
  const std::vector<float> a = run(f, {{&in, 0, 256, whole.data()}});
  std::vector<float> b = run(f, {{&in, 0, 64, parts.data()}});
  const std::vector<float> rest = run(f, {{&in, 64, 192, parts.data()}});
  b.insert(b.end(), rest.begin(), rest.end());
  EXPECT_EQ(a, b);
  EXPECT_EQ(whole, parts);
}

TEST_P(GdnMix, BatchAndThreadsLeaveNoTrace) {
  const Shape shape{2, 4, 128, 4, GetParam() == Isa::scalar};
  Fixture two(shape, 1, 2), one(shape, 1, 1), four(shape, 1, 4);
  const Inputs x(two, 40), y(two, 40), z(two, 130);
  std::vector<float> sx = two.new_state(), sy = two.new_state(), sz = two.new_state();
  std::vector<float> want_x, want_y;
  for (int t = 0; t < 12; ++t) {
    const auto row = run(one, {{&x, t, 1, sx.data()}});
    want_x.insert(want_x.end(), row.begin(), row.end());
  }
  want_y = run(one, {{&y, 0, 3, sy.data()}});
  const std::vector<float> want_z = run(one, {{&z, 0, 130, sz.data()}});

  std::vector<float> tx = two.new_state(), ty = two.new_state(), tz = two.new_state();
  const std::vector<float> got = run(two, {{&y, 0, 3, ty.data()}, {&z, 0, 130, tz.data()}, {&x, 0, 12, tx.data()}});
  std::vector<float> want = want_y;
  want.insert(want.end(), want_z.begin(), want_z.end());
  want.insert(want.end(), want_x.begin(), want_x.end());
  EXPECT_EQ(got, want);
  EXPECT_EQ(sx, tx);
  EXPECT_EQ(sy, ty);
  EXPECT_EQ(sz, tz);

  // Four workers for two key heads: shared out by value head.
  std::vector<float> fx = four.new_state(), fz = four.new_state();
  EXPECT_EQ(run(four, {{&x, 0, 12, fx.data()}}), want_x);
  EXPECT_EQ(run(four, {{&z, 0, 130, fz.data()}}), want_z);
  EXPECT_EQ(fx, sx);
  EXPECT_EQ(fz, sz);
}

TEST_P(GdnMix, ReplayIsExact) {
  Fixture f({2, 4, 48, 4, true}, 2);
  const Inputs in(f, 20);
  std::vector<float> state = f.new_state();
  run(f, {{&in, 0, 20, state.data()}}, 0);
  run(f, {{&in, 0, 20, state.data()}}, 1);
  const std::vector<float> before = state;
  const ReplayLayout layout(*f.layout);
  const int n = 7, kept = 4;
  std::vector<float> recorded(static_cast<size_t>(layout.floats_per_token) * n);
  const Inputs more(f, n);
  for (int l = 0; l < 2; ++l) run(f, {{&more, 0, n, state.data(), recorded.data()}}, l);

  std::vector<float> straight = before, replayed = before;
  for (int l = 0; l < 2; ++l) run(f, {{&more, 0, kept, straight.data()}}, l);
  f.pool.run([&](Team& team) {
    for (int l = 0; l < 2; ++l) {
      gdn_replay(team, f.program, *f.layout, f.op(l), replayed.data(), recorded.data(), kept, f.scratch);
    }
  });
  EXPECT_EQ(straight, replayed);
  EXPECT_NE(before, replayed);
  for (int t = 0; t < n; ++t) {
    const float* layer1 = recorded.data() + t * layout.floats_per_token + layout.offset[1];
    EXPECT_EQ(std::memcmp(layer1, more.qkv.data() + t * f.op().channels(), f.op().channels() * sizeof(float)), 0);
    EXPECT_EQ(layer1[f.op().channels()], more.alpha[t * 4]);
    EXPECT_EQ(layer1[f.op().channels() + 4], more.beta[t * 4]);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GdnMix, testing::ValuesIn(vector_isas()), isa_name);

}  // namespace
}  // namespace chimere::cpu
