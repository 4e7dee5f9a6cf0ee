// gdn_test.cpp  The Gated DeltaNet kernels against the oracle.
#include "backend/cuda/kernels/recurrence/gdn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "backend/cuda/kernels/common/kernel_test.h"
#include "backend/reference/reference.h"

namespace chimere::cuda {
namespace {

struct Shape {
  int n_key_heads, n_value_heads, d_head, taps;
  bool tiled_heads;
};

struct SliceOf {
  int sequence, n_tokens;
  bool recorded = false;
};

// One layer (the second of two, so that offsets matter), a number of sequences, and the same inputs for both backends.
struct Fixture {
  Fixture(const Shape& s, int n_sequences) {
    const int channels = (2 * s.n_key_heads + s.n_value_heads) * s.d_head, value = s.n_value_heads * s.d_head;
    program.buffers = {
        {"qkv", channels}, {"z", value}, {"alpha", s.n_value_heads}, {"beta", s.n_value_heads}, {"out", value}};
    program.vectors = {random(channels * s.taps, 0.5f), random(s.n_value_heads, 1.0f), random(s.n_value_heads, 1.0f),
                       random(s.d_head, 1.0f)};
    for (float& a : program.vectors[1]) a = -0.3f * std::fabs(a);
    op.qkv = 0, op.z = 1, op.alpha = 2, op.beta = 3, op.out = 4;
    op.conv = 0, op.a = 1, op.dt_bias = 2, op.norm = 3;
    op.eps = 1e-6f;
    op.n_key_heads = s.n_key_heads, op.n_value_heads = s.n_value_heads, op.d_head = s.d_head;
    op.tiled_heads = s.tiled_heads;
    op.recurrent_layer = 1;
    const RecurrentLayer layer{s.taps - 1, channels, s.n_value_heads, s.d_head, s.d_head};
    program.recurrent_layers = {layer, layer};
    auto made = StateLayout::create({}, program.recurrent_layers, KvFormat{});
    layout = std::make_unique<StateLayout>(std::move(*made));
    replay = std::make_unique<ReplayLayout>(*layout);
    for (int i = 0; i < n_sequences; ++i) want_state.push_back(random(layout->recurrent_floats(), 0.3f));
    got_state = want_state;
    positions.assign(n_sequences, 0);
    taps = s.taps;
  }

  std::vector<float> random(int64_t n, float size) {
    std::vector<float> v(static_cast<size_t>(n));
    std::normal_distribution<float> normal(0.0f, size);
    for (float& x : v) x = normal(rng);
    return v;
  }

  GdnArgs args() {
    GdnArgs a;
    a.conv = program.vectors[0].data(), a.a = program.vectors[1].data(), a.dt_bias = program.vectors[2].data();
    a.norm = program.vectors[3].data();
    a.eps = op.eps;
    a.n_key_heads = op.n_key_heads, a.n_value_heads = op.n_value_heads, a.d_head = op.d_head, a.taps = taps;
    a.tiled_heads = op.tiled_heads;
    a.conv_offset = layout->conv_offset(1), a.matrix_offset = layout->matrix_offset(1);
    a.replay_offset = replay->offset[1], a.replay_stride = replay->floats_per_token;
    arrivals.resize(static_cast<size_t>(gdn_arrivals(a, 16)));
    a.arrivals = arrivals.data();
    return a;
  }

  struct Inputs {
    std::vector<std::vector<float>> buffers;
  };
  Inputs inputs(int n_rows) {
    Inputs in;
    for (const Buffer& b : program.buffers) in.buffers.push_back(random(int64_t{n_rows} * b.width, 1.0f));
    return in;
  }

  // Outputs of the device and, where `want` is given, of the oracle.
  std::vector<float> run(const std::vector<SliceOf>& slices, const Inputs& in, std::vector<float>* want = nullptr) {
    Batch batch;
    std::vector<DeviceSlice> device;
    std::vector<int32_t> row_slice, row_pos;
    records.clear();
    for (const SliceOf& s : slices) {
      records.emplace_back(s.recorded ? static_cast<size_t>(s.n_tokens * replay->floats_per_token) : 0, -7.0f);
    }
    std::vector<std::vector<float>> want_records = records;
    for (size_t i = 0; i < slices.size(); ++i) {
      const SliceOf& s = slices[i];
      const int first = static_cast<int>(batch.tokens.size());
      Slice slice;
      slice.state.recurrent = want_state[s.sequence].data();
      slice.state.replay = s.recorded ? want_records[i].data() : nullptr;
      slice.pos = positions[s.sequence], slice.n_tokens = s.n_tokens, slice.first_row = first;
      batch.slices.push_back(slice);
      device.push_back({nullptr, got_state[s.sequence].data(), s.recorded ? records[i].data() : nullptr, slice.pos,
                        s.n_tokens, first, 0});
      for (int t = 0; t < s.n_tokens; ++t) {
        batch.tokens.push_back(0);
        row_slice.push_back(static_cast<int>(i));
        row_pos.push_back(slice.pos + t);
      }
      positions[s.sequence] += s.n_tokens;
    }
    const int n_rows = batch.n_rows();
    std::vector<float> out(static_cast<size_t>(n_rows) * program.buffers[4].width, NAN);
    GdnArgs a = args();
    a.batch = {
        nullptr, device.data(), row_slice.data(), row_pos.data(), nullptr, n_rows, static_cast<int>(device.size()), 0};
    a.qkv = in.buffers[0].data(), a.qkv_stride = program.buffers[0].width;
    a.z = in.buffers[1].data(), a.z_stride = program.buffers[1].width;
    a.alpha = in.buffers[2].data(), a.alpha_stride = program.buffers[2].width;
    a.beta = in.buffers[3].data(), a.beta_stride = program.buffers[3].width;
    a.out = out.data(), a.out_stride = program.buffers[4].width;
    a.exact = exact;
    a.max_prefill_slices = planned_prefill;
    a.leave_norm = leave_norm;
    scratch.assign(static_cast<size_t>(gdn_scratch_floats(a, n_rows, planned_prefill)), NAN);
    a.scratch = scratch.data();
    a.has_decode = false;
    for (const Slice& s : batch.slices) {
      a.has_decode |= s.is_decode();
      a.n_prefill_slices += s.is_decode() ? 0 : 1;
    }
    EXPECT_TRUE(gdn_mix(stream, a));
    EXPECT_TRUE(stream.synchronize());
    EXPECT_EQ(std::count(arrivals.begin(), arrivals.end(), 0), static_cast<int64_t>(arrivals.size()));
    if (want != nullptr) {
      std::vector<std::vector<float>> buffers = in.buffers;
      const reference::Context c{program, *layout, batch, buffers, Outputs{}};
      reference::run(c, op);
      *want = buffers[4];
      EXPECT_EQ(records, want_records);
    }
    return out;
  }

  Stream stream = test_stream();
  std::mt19937 rng{17};
  bool exact = false, leave_norm = false;
  std::vector<float> scratch;
  int planned_prefill = 4;
  Program program;
  op::GdnMix op{};
  int taps = 0;
  std::unique_ptr<StateLayout> layout;
  std::unique_ptr<ReplayLayout> replay;
  std::vector<std::vector<float>> want_state, got_state, records;
  std::vector<int> positions;
  std::vector<int32_t> arrivals;
};

double relative_error(const std::vector<float>& got, const std::vector<float>& want) {
  double worst = 0, squares = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double diff = std::fabs(double{got[i]} - want[i]);
    worst = std::isnan(diff) ? 1e9 : std::max(worst, diff);
    squares += double{want[i]} * want[i];
  }
  return worst / std::sqrt(squares / static_cast<double>(want.size()) + 1e-30);
}

void expect_matches(const Shape& shape, const std::vector<std::vector<SliceOf>>& batches, int n_sequences,
                    bool exact = true) {
  on_both_schedules([&] {
    Fixture f(shape, n_sequences);
    f.exact = exact;
    for (const std::vector<SliceOf>& slices : batches) {
      int n_rows = 0;
      for (const SliceOf& s : slices) n_rows += s.n_tokens;
      const Fixture::Inputs in = f.inputs(n_rows);
      std::vector<float> want;
      const std::vector<float> got = f.run(slices, in, &want);
      EXPECT_LT(relative_error(got, want), exact ? 2e-4 : 2e-2);
      for (int i = 0; i < n_sequences; ++i) {
        EXPECT_LT(relative_error(f.got_state[i], f.want_state[i]), exact ? 2e-5 : 5e-3);
      }
    }
  });
}

TEST(CudaGdn, DecodeMatchesReference) {
  expect_matches({2, 4, 128, 4, true}, {{{0, 1}, {1, 3}}, {{1, 1, true}, {0, 2}}}, 2);
  expect_matches({1, 2, 64, 4, false}, {{{0, 1}}, {{0, 16, true}}, {{0, 2}}}, 1);
  expect_matches({1, 2, 64, 6, true}, {{{0, 1}, {1, 0}}, {{0, 3}, {1, 2}}, {{0, 7}}}, 2);
}

TEST(CudaGdn, AnySizeMatchesReference) {
  expect_matches({2, 4, 48, 4, false}, {{{0, 1}, {1, 3}}, {{1, 20, true}, {0, 2}}}, 2);
  expect_matches({1, 3, 20, 2, true}, {{{0, 5}, {1, 0}}, {{0, 1}}, {{0, 33}}}, 2);
  expect_matches({2, 2, 16, 5, true}, {{{0, 1, true}}, {{0, 1}}, {{0, 2}}}, 1);
}

TEST(CudaGdn, PrefillMatchesReference) {
  expect_matches({1, 2, 128, 4, true}, {{{0, 70}}, {{0, 1}}, {{0, 17}}}, 1);
  expect_matches({2, 4, 64, 3, false}, {{{0, 40}, {1, 1}, {2, 130, true}}, {{2, 1}, {0, 67}}}, 3);
  expect_matches({1, 3, 64, 4, true}, {{{0, 20}}}, 1);
}

TEST(CudaGdn, ChunksMatchReference) {
  expect_matches({1, 2, 128, 4, true}, {{{0, 70}}, {{0, 1}}, {{0, 17}}, {{0, 150}}}, 1, false);
  expect_matches({2, 4, 64, 3, false}, {{{0, 40}, {1, 1}, {2, 130, true}}, {{2, 1}, {0, 67}}}, 3, false);
  with_shared_limit(200 << 10, [] {  // room for two stages
    expect_matches({1, 2, 128, 4, true}, {{{0, 70}}, {{0, 20}, {1, 200}}}, 2, false);
  });
}

TEST(CudaGdn, SameCutsOnTheGridGiveTheSameBits) {
  Fixture whole({1, 2, 64, 4, true}, 1), parts({1, 2, 64, 4, true}, 1);
  const Fixture::Inputs in = whole.inputs(192);
  parts.inputs(192);
  const std::vector<float> a = whole.run({{0, 192}}, in);
  std::vector<float> b = parts.run({{0, 64}}, in);
  Fixture::Inputs rest;
  for (size_t i = 0; i < in.buffers.size(); ++i) {
    rest.buffers.emplace_back(in.buffers[i].begin() + int64_t{64} * whole.program.buffers[i].width,
                              in.buffers[i].end());
  }
  const std::vector<float> more = parts.run({{0, 128}}, rest);
  b.insert(b.end(), more.begin(), more.end());
  EXPECT_EQ(a, b);
  EXPECT_EQ(whole.got_state, parts.got_state);
}

TEST(CudaGdn, MorePrefillThanPlannedIsStillRight) {
  Fixture f({1, 2, 64, 4, true}, 2);
  f.planned_prefill = 1;
  std::vector<float> want;
  const std::vector<float> got = f.run({{0, 20}, {1, 30}}, f.inputs(50), &want);
  EXPECT_LT(relative_error(got, want), 2e-4);
}

TEST(CudaGdn, TheBatchLeavesNoTraceOnDecoding) {
  for (const Shape& shape : {Shape{2, 4, 64, 4, true}, Shape{2, 4, 48, 4, true}}) {
    Fixture together(shape, 3), alone(shape, 3);
    const int value = shape.n_value_heads * shape.d_head;
    const Fixture::Inputs in = together.inputs(1 + 20 + 7);
    alone.inputs(1 + 20 + 7);
    const std::vector<float> got = together.run({{0, 1}, {1, 20}, {2, 7}}, in);
    std::vector<float> one_by_one;
    for (int t = 0; t < 7; ++t) {
      Fixture::Inputs row;
      for (size_t b = 0; b < in.buffers.size(); ++b) {
        const int width = together.program.buffers[b].width;
        const auto from = in.buffers[b].begin() + int64_t{21 + t} * width;
        row.buffers.emplace_back(from, from + width);
      }
      const std::vector<float> out = alone.run({{2, 1}}, row);
      one_by_one.insert(one_by_one.end(), out.begin(), out.end());
    }
    EXPECT_EQ(one_by_one, std::vector<float>(got.begin() + int64_t{21} * value, got.end()));
    EXPECT_EQ(together.got_state[2], alone.got_state[2]);
  }
}

// What the reader has to multiply by is beside the rows.
TEST(CudaGdn, NormCanBeLeftToTheReader) {
  for (const Shape& shape : {Shape{1, 2, 64, 4, true}, Shape{1, 2, 128, 4, false}}) {
    Fixture finished(shape, 2), left(shape, 2);
    left.leave_norm = true;
    EXPECT_TRUE(gdn_can_leave_norm(left.args()));
    const Fixture::Inputs in = finished.inputs(4);
    const std::vector<float> want = finished.run({{0, 1}, {1, 3}}, in);
    std::vector<float> got = left.run({{0, 1}, {1, 3}}, in);
    for (size_t i = 0; i < got.size(); ++i) {
      float squares = 0.0f;
      for (int j = 0; j < shape.d_head / 32; ++j) squares += left.scratch[i / shape.d_head * (shape.d_head / 32) + j];
      got[i] /= std::sqrt(squares / static_cast<float>(shape.d_head) + left.op.eps);
    }
    EXPECT_LT(relative_error(got, want), 1e-5);
    EXPECT_EQ(finished.got_state, left.got_state);
  }
  EXPECT_FALSE(gdn_can_leave_norm(Fixture({1, 2, 64, 3, true}, 1).args()));
}

TEST(CudaGdn, ReplayIsExact) {
  for (const Shape& shape : {Shape{2, 4, 64, 4, true}, Shape{1, 3, 20, 3, false}}) {
    Fixture f(shape, 1), straight(shape, 1);
    const std::vector<float> before = f.got_state[0];
    const Fixture::Inputs in = f.inputs(7);
    straight.inputs(7);
    f.run({{0, 7, true}}, in);
    straight.run({{0, 4}}, in);
    std::vector<float> replayed = before;
    EXPECT_TRUE(gdn_replay(f.stream, f.args(), replayed.data(), f.records[0].data(), 4));
    EXPECT_TRUE(f.stream.synchronize());
    EXPECT_EQ(replayed, straight.got_state[0]);
    EXPECT_NE(replayed, before);
  }
}

}  // namespace
}  // namespace chimere::cuda
