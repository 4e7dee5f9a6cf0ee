// mamba2_test.cpp  The Mamba-2 kernels against the oracle.
#include "backend/cuda/kernels/recurrence/mamba2.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "backend/cuda/kernels/common/kernel_test.h"
#include "backend/reference/reference.h"

namespace chimere::cuda {
namespace {

struct Shape {
  int n_heads, d_head, n_groups, d_state, taps;
  bool norm, conv_bias;
};

struct SliceOf {
  int sequence, n_tokens;
  bool recorded = false;
};

// One layer (the second of two, so that offsets matter), a number of sequences, and the same inputs for both backends.
struct Fixture {
  Fixture(const Shape& s, int n_sequences) {
    op.n_heads = s.n_heads, op.d_head = s.d_head, op.n_groups = s.n_groups, op.d_state = s.d_state;
    program.buffers = {{"in", op.width()}, {"out", op.d_inner()}};
    program.vectors = {random(int64_t{op.channels()} * s.taps, 0.5f),
                       random(op.channels(), 0.2f),
                       random(s.n_heads, 1.0f),
                       random(s.n_heads, 1.0f),
                       random(s.n_heads, 1.0f),
                       random(op.d_inner(), 1.0f)};
    for (float& a : program.vectors[2]) a = -0.3f * std::fabs(a);
    op.in = 0, op.out = 1;
    op.conv = 0, op.a = 2, op.d = 3, op.dt_bias = 4;
    if (s.conv_bias) op.conv_bias = 1;
    if (s.norm) op.norm = 5;
    op.eps = 1e-6f;
    op.recurrent_layer = 1;
    const RecurrentLayer layer{s.taps - 1, op.channels(), s.n_heads, s.d_state, s.d_head, s.n_heads};
    program.recurrent_layers = {layer, layer};
    auto made = StateLayout::create({}, program.recurrent_layers, KvFormat{});
    layout = std::make_unique<StateLayout>(std::move(*made));
    replay = std::make_unique<ReplayLayout>(*layout);
    for (int i = 0; i < n_sequences; ++i) want_state.push_back(random(layout->recurrent_floats(), 0.3f));
    got_state = want_state;
    taps = s.taps;
  }

  std::vector<float> random(int64_t n, float size) {
    std::vector<float> v(static_cast<size_t>(n));
    std::normal_distribution<float> normal(0.0f, size);
    for (float& x : v) x = normal(rng);
    return v;
  }
  std::vector<float> inputs(int n_rows) { return random(int64_t{n_rows} * op.width(), 1.0f); }

  Mamba2Args args() {
    const auto vector = [&](VectorId id) { return id == kNone ? nullptr : program.vectors[id].data(); };
    Mamba2Args a;
    a.conv = vector(op.conv), a.conv_bias = vector(op.conv_bias);
    a.a = vector(op.a), a.d = vector(op.d), a.dt_bias = vector(op.dt_bias), a.norm = vector(op.norm);
    a.eps = op.eps;
    a.n_heads = op.n_heads, a.d_head = op.d_head, a.n_groups = op.n_groups, a.d_state = op.d_state, a.taps = taps;
    a.conv_offset = layout->conv_offset(1), a.matrix_offset = layout->matrix_offset(1);
    a.replay_offset = replay->offset[1], a.replay_stride = replay->floats_per_token;
    a.in_stride = op.width(), a.out_stride = op.d_inner();
    arrivals.assign(static_cast<size_t>(mamba2_arrivals(a, 8)), 0);
    a.arrivals = arrivals.data();
    return a;
  }

  // Outputs of the device and, where `want` is given, of the oracle.
  std::vector<float> run(const std::vector<SliceOf>& slices, std::vector<float> in, bool is_decode,
                         std::vector<float>* want = nullptr) {
    Batch batch;
    std::vector<DeviceSlice> device;
    std::vector<int32_t> row_slice;
    Mamba2Args a = args();
    a.is_decode = is_decode;
    a.leave_norm = leave_norm;
    a.max_tokens = 1;
    records.clear();
    for (const SliceOf& s : slices) {
      records.emplace_back(s.recorded ? static_cast<size_t>(s.n_tokens * replay->floats_per_token) : 0, -7.0f);
      a.max_tokens = std::max(a.max_tokens, s.n_tokens);
    }
    std::vector<std::vector<float>> want_records = records;
    for (size_t i = 0; i < slices.size(); ++i) {
      const SliceOf& s = slices[i];
      Slice slice;
      slice.state.recurrent = want_state[s.sequence].data();
      slice.state.replay = s.recorded ? want_records[i].data() : nullptr;
      slice.n_tokens = s.n_tokens, slice.first_row = batch.n_rows();
      batch.slices.push_back(slice);
      device.push_back({nullptr, got_state[s.sequence].data(), s.recorded ? records[i].data() : nullptr, 0, s.n_tokens,
                        slice.first_row, 0});
      batch.tokens.resize(batch.tokens.size() + s.n_tokens);
      row_slice.insert(row_slice.end(), static_cast<size_t>(s.n_tokens), static_cast<int32_t>(i));
    }
    const int n_rows = batch.n_rows();
    std::vector<float> out(static_cast<size_t>(n_rows) * op.d_inner(), NAN);
    a.batch = {nullptr, device.data(), row_slice.data(), nullptr, nullptr, n_rows, static_cast<int>(device.size()), 0};
    a.z = in.data(), a.xbc = a.z + op.d_inner(), a.dt = a.xbc + op.channels();
    a.out = out.data();
    scratch.assign(static_cast<size_t>(mamba2_scratch_floats(a, n_rows)), NAN);
    a.scratch = scratch.data();
    EXPECT_TRUE(mamba2_mix(stream, a));
    EXPECT_TRUE(stream.synchronize());
    EXPECT_EQ(std::count(arrivals.begin(), arrivals.end(), 0), static_cast<int64_t>(arrivals.size()));
    if (want != nullptr) {
      std::vector<std::vector<float>> buffers = {in, std::vector<float>(out.size())};
      const reference::Context c{program, *layout, batch, buffers, Outputs{}};
      reference::run(c, op);
      *want = buffers[1];
      EXPECT_EQ(records, want_records);
    }
    return out;
  }

  Stream stream = test_stream();
  std::mt19937 rng{17};
  bool leave_norm = false;
  std::vector<float> scratch;
  Program program;
  op::Mamba2Mix op{};
  int taps = 0;
  std::unique_ptr<StateLayout> layout;
  std::unique_ptr<ReplayLayout> replay;
  std::vector<std::vector<float>> want_state, got_state, records;
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
                    bool is_decode) {
  on_both_schedules([&] {
    Fixture f(shape, n_sequences);
    for (const std::vector<SliceOf>& slices : batches) {
      int n_rows = 0;
      for (const SliceOf& s : slices) n_rows += s.n_tokens;
      std::vector<float> want;
      const std::vector<float> got = f.run(slices, f.inputs(n_rows), is_decode, &want);
      EXPECT_LT(relative_error(got, want), 2e-4);
      for (int i = 0; i < n_sequences; ++i) EXPECT_LT(relative_error(f.got_state[i], f.want_state[i]), 2e-5);
    }
  });
}

TEST(CudaMamba2, DecodeMatchesReference) {
  const std::vector<std::vector<SliceOf>> batches = {{{0, 1}, {1, 3}}, {{1, 1, true}, {0, 2}}, {{0, 16}, {1, 0}}};
  expect_matches({4, 32, 2, 128, 4, true, true}, batches, 2, true);
  expect_matches({2, 64, 1, 128, 4, true, false}, batches, 2, true);
  expect_matches({1, 64, 1, 256, 4, false, true}, batches, 2, true);
  expect_matches({8, 64, 1, 256, 4, true, false}, batches, 2, true);
  // Groups that no reader divides, and heads of three blocks.
  expect_matches({4, 96, 2, 128, 4, true, true}, batches, 2, true);
  expect_matches({2, 32, 2, 128, 4, true, true}, batches, 2, true);
}

// What the reader has to multiply by is beside the rows.
TEST(CudaMamba2, NormCanBeLeftToTheReader) {
  for (const Shape& shape :
       {Shape{4, 32, 2, 128, 4, true, true}, Shape{4, 64, 2, 128, 4, true, false}, Shape{8, 32, 1, 256, 4, true, true},
        Shape{16, 64, 2, 128, 4, true, true}, Shape{8, 128, 1, 128, 4, true, true}}) {
    Fixture finished(shape, 2), left(shape, 2);
    left.leave_norm = true;
    EXPECT_TRUE(mamba2_can_leave_norm(left.args()));
    const std::vector<float> in = finished.inputs(6);
    std::vector<float> want;
    const std::vector<float> whole = finished.run({{0, 1}, {1, 5}}, in, true, &want);
    std::vector<float> got = left.run({{0, 1}, {1, 5}}, in, true);
    const auto width = static_cast<size_t>(shape.n_heads * shape.d_head / shape.n_groups);
    for (size_t i = 0; i < got.size(); ++i) {
      float squares = 0.0f;
      for (size_t j = 0; j < width / 32; ++j) squares += left.scratch[i / width * (width / 32) + j];
      got[i] /= std::sqrt(squares / static_cast<float>(width) + left.op.eps);
    }
    EXPECT_LT(relative_error(got, whole), 1e-5) << width;
    EXPECT_LT(relative_error(got, want), 2e-4) << width;
    EXPECT_EQ(finished.got_state, left.got_state);
  }
  EXPECT_FALSE(mamba2_can_leave_norm(Fixture({2, 32, 1, 128, 3, true, true}, 1).args()));
  EXPECT_FALSE(mamba2_can_leave_norm(Fixture({3, 32, 1, 128, 4, true, true}, 1).args()));
}

TEST(CudaMamba2, PrefillMatchesReference) {
  expect_matches({4, 32, 2, 128, 4, true, true}, {{{0, 35}, {1, 17, true}}, {{0, 18}}}, 2, false);
}

TEST(CudaMamba2, AnySizeMatchesReference) {
  const std::vector<std::vector<SliceOf>> batches = {{{0, 1}, {1, 3}}, {{1, 20, true}, {0, 2}}};
  expect_matches({6, 20, 2, 24, 4, true, true}, batches, 2, true);
  expect_matches({2, 32, 1, 128, 3, true, false}, batches, 2, true);
  expect_matches({3, 16, 3, 16, 2, false, false}, batches, 2, false);
}

TEST(CudaMamba2, TheBatchLeavesNoTraceOnDecoding) {
  for (const Shape& shape : {Shape{4, 32, 2, 128, 4, true, true}, Shape{8, 64, 1, 128, 4, true, false},
                             Shape{6, 32, 2, 256, 4, true, true}, Shape{2, 24, 1, 16, 4, true, true}}) {
    Fixture together(shape, 2), alone(shape, 2);
    const std::vector<float> in = together.inputs(8);
    alone.inputs(8);
    const std::vector<float> got = together.run({{0, 3}, {1, 5}}, in, true);
    std::vector<float> one_by_one;
    const auto width = static_cast<std::ptrdiff_t>(together.op.width());
    for (int t = 3; t < 8; ++t) {
      const std::vector<float> out = alone.run({{1, 1}}, {in.begin() + t * width, in.begin() + (t + 1) * width}, true);
      one_by_one.insert(one_by_one.end(), out.begin(), out.end());
    }
    EXPECT_EQ(one_by_one, std::vector<float>(got.begin() + std::ptrdiff_t{3} * together.op.d_inner(), got.end()));
    EXPECT_EQ(together.got_state[1], alone.got_state[1]);
  }
}

TEST(CudaMamba2, ReplayIsExact) {
  for (const Shape& shape : {Shape{4, 32, 2, 128, 4, true, true}, Shape{2, 24, 1, 16, 3, true, false}}) {
    Fixture f(shape, 1), straight(shape, 1);
    const std::vector<float> before = f.got_state[0], in = f.inputs(7);
    straight.inputs(7);
    f.run({{0, 7, true}}, in, true);
    straight.run({{0, 4}}, {in.begin(), in.begin() + std::ptrdiff_t{4} * f.op.width()}, true);
    std::vector<float> replayed = before;
    EXPECT_TRUE(mamba2_replay(f.stream, f.args(), replayed.data(), f.records[0].data(), 4));
    EXPECT_TRUE(f.stream.synchronize());
    EXPECT_EQ(replayed, straight.got_state[0]);
    EXPECT_NE(replayed, before);
  }
}

// A rollback may go over the records of several slices.
TEST(CudaMamba2, ReplayOfManyTokensIsExact) {
  for (const Shape& shape : {Shape{2, 64, 1, 128, 4, true, true}, Shape{2, 24, 1, 16, 3, true, false}}) {
    Fixture f(shape, 1);
    std::vector<float> replayed = f.got_state[0], records;
    for (const int n_tokens : {16, 3}) {
      f.run({{0, n_tokens, true}}, f.inputs(n_tokens), true);
      records.insert(records.end(), f.records[0].begin(), f.records[0].end());
    }
    EXPECT_TRUE(mamba2_replay(f.stream, f.args(), replayed.data(), records.data(), 19));
    EXPECT_TRUE(f.stream.synchronize());
    EXPECT_EQ(replayed, f.got_state[0]);
  }
}

}  // namespace
}  // namespace chimere::cuda
