// mamba1_test.cpp  The kernels of Mamba-1 against the oracle.
#include "backend/cuda/kernels/recurrence/mamba1.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "backend/cuda/kernels/common/kernel_test.h"
#include "backend/cuda/kernels/common/test_weights.h"
#include "backend/reference/reference.h"

namespace chimere::cuda {
namespace {

struct Shape {
  int channels, d_state, taps;
  bool norms, bias;
};

// One layer with a state that both backends start from, and the device's arguments for it.
struct Layer {
  Program program;
  op::CausalConv conv{};
  op::SelectiveScan scan{};
  std::unique_ptr<StateLayout> layout;
  std::unique_ptr<ReplayLayout> replay;
  std::vector<float> state;

  explicit Layer(const Shape& s) {
    const auto n = static_cast<size_t>(s.channels), d = static_cast<size_t>(s.d_state);
    program.buffers = {{"xz", 2 * s.channels}, {"x", s.channels}, {"dt", s.channels},
                       {"b", s.d_state},       {"c", s.d_state},  {"out", s.channels}};
    program.vectors = {random_floats(n * static_cast<size_t>(s.taps), 1),
                       random_floats(n, 2),
                       random_floats(n * d, 3),
                       random_floats(n, 4),
                       random_floats(d, 5),
                       random_floats(d, 6)};
    for (float& a : program.vectors[2]) a = -0.5f * std::fabs(a);
    conv = {
        .in = 0, .conv = 0, .conv_bias = s.bias ? 1 : kNone, .channels = s.channels, .recurrent_layer = 0, .out = 1};
    scan.x = 1, scan.dt = 2, scan.b = 3, scan.c = 4, scan.z = 0, scan.z_at = s.channels, scan.a = 2, scan.d = 3;
    if (s.norms) scan.b_norm = 4, scan.c_norm = 5;
    scan.eps = 1e-5f, scan.channels = s.channels, scan.d_state = s.d_state, scan.recurrent_layer = 0, scan.out = 5;
    program.recurrent_layers = {
        RecurrentLayer{s.taps - 1, s.channels, 1, s.d_state, s.channels, 2 * s.channels + s.d_state}};
    auto made = StateLayout::create({}, program.recurrent_layers, KvFormat{});
    layout = std::make_unique<StateLayout>(std::move(*made));
    replay = std::make_unique<ReplayLayout>(*layout);
    state = random_floats(static_cast<size_t>(layout->recurrent_floats()), 7, 0.3f);
  }

  const float* vector(VectorId id) const { return id == kNone ? nullptr : program.vectors[id].data(); }

  CausalConvArgs conv_args(std::vector<std::vector<float>>& b) const {
    CausalConvArgs a;
    a.in = b[0].data(), a.in_stride = program.buffers[0].width;
    a.conv = vector(conv.conv), a.bias = vector(conv.conv_bias);
    a.channels = conv.channels, a.taps = program.recurrent_layers[0].conv_width + 1;
    a.conv_offset = layout->conv_offset(0);
    a.replay_offset = replay->offset[0], a.replay_stride = replay->floats_per_token;
    a.out = b[1].data(), a.out_stride = conv.channels;
    return a;
  }
  SelectiveScanArgs scan_args(std::vector<std::vector<float>>& b) const {
    SelectiveScanArgs a;
    a.x = b[1].data(), a.dt = b[2].data(), a.x_stride = a.dt_stride = scan.channels;
    a.b = b[3].data(), a.c = b[4].data(), a.b_stride = a.c_stride = scan.d_state;
    a.z = b[0].data() + scan.z_at, a.z_stride = program.buffers[0].width;
    a.a = vector(scan.a), a.d = vector(scan.d), a.b_norm = vector(scan.b_norm), a.c_norm = vector(scan.c_norm);
    a.eps = scan.eps, a.channels = scan.channels, a.d_state = scan.d_state;
    a.matrix_offset = layout->matrix_offset(0);
    a.replay_offset = replay->offset[0] + scan.channels, a.replay_stride = replay->floats_per_token;
    a.out = b[5].data(), a.out_stride = scan.channels;
    return a;
  }
  std::vector<std::vector<float>> inputs(int n_rows) const {
    std::vector<std::vector<float>> b;
    for (const Buffer& buffer : program.buffers) {
      b.push_back(random_floats(static_cast<size_t>(n_rows) * buffer.width, 10 + b.size()));
    }
    return b;
  }
};

void expect_near(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5f * (1 + std::fabs(want[i]))) << i;
}

// Two slices of two sequences, of which the first is recorded; then what was recorded is replayed.
void check(const Shape& shape, int n_first, int n_second) {
  const Layer layer(shape);
  const Stream stream = test_stream();
  std::vector<std::vector<float>> want_states(2, layer.state), got_states = want_states;
  const auto record_floats = static_cast<size_t>(n_first * layer.replay->floats_per_token);
  std::vector<float> want_record(record_floats), got_record(record_floats);
  Batch batch;
  std::vector<DeviceSlice> device;
  for (int i = 0; i < 2; ++i) {
    Slice slice;
    slice.state.recurrent = want_states[i].data();
    slice.state.replay = i == 0 ? want_record.data() : nullptr;
    slice.n_tokens = i == 0 ? n_first : n_second, slice.first_row = i == 0 ? 0 : n_first;
    batch.slices.push_back(slice);
    device.push_back(
        {nullptr, got_states[i].data(), i == 0 ? got_record.data() : nullptr, 0, slice.n_tokens, slice.first_row, 0});
  }
  batch.tokens.resize(n_first + n_second);
  std::vector<std::vector<float>> want = layer.inputs(batch.n_rows()), got = want;
  const reference::Context c{layer.program, *layer.layout, batch, want, Outputs{}};
  reference::run(c, layer.conv);
  reference::run(c, layer.scan);

  CausalConvArgs conv = layer.conv_args(got);
  SelectiveScanArgs scan = layer.scan_args(got);
  conv.batch = scan.batch = {nullptr, device.data(), nullptr, nullptr, nullptr, batch.n_rows(), 2, 0};
  EXPECT_TRUE(causal_conv(stream, conv));
  EXPECT_TRUE(selective_scan(stream, scan));
  EXPECT_TRUE(stream.synchronize());
  expect_near(got[5], want[5]);
  expect_near(got_record, want_record);
  for (int i = 0; i < 2; ++i) expect_near(got_states[i], want_states[i]);

  std::vector<float> replayed = layer.state;
  EXPECT_TRUE(causal_conv_replay(stream, conv, replayed.data(), got_record.data(), n_first));
  EXPECT_TRUE(selective_scan_replay(stream, scan, replayed.data(), got_record.data(), n_first));
  EXPECT_TRUE(stream.synchronize());
  EXPECT_EQ(replayed, got_states[0]);
}

TEST(CudaMamba1, MatchesReference) {
  on_both_schedules([] {
    check({70, 16, 4, false, true}, 3, 1);
    check({70, 16, 4, true, false}, 16, 37);
    check({20, 24, 3, true, true}, 2, 19);
    check({65, 5, 2, false, false}, 1, 0);
  });
}

}  // namespace
}  // namespace chimere::cuda
