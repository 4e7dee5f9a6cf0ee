#include "backend/cpu/ops/recurrent.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/ops/gdn_mix.h"
#include "backend/cpu/ops/mamba_mix.h"
#include "base/check.h"

namespace chimere::cpu {
namespace {

constexpr int kMambaConvBlock = 128;

// A head's part of a row is too short, and the next row too far, for the processor to see the pattern: ask ahead.
constexpr int kConvPrefetchTokens = 3;

}  // namespace

void RecurrentScratch::add_conv(const Program& program, const StateLayout& layout, int recurrent_layer,
                                int64_t channels, int block, VectorId conv, VectorId bias) {
  const RecurrentLayer& state = layout.recurrent()[recurrent_layer];
  const std::vector<float>& by_channel = program.vectors[conv];
  ConvWeights& w = conv_[recurrent_layer];
  w.taps = state.conv_width + 1;
  w.block = block;
  w.channels = channels;
  w.has_bias = bias != kNone;
  CHECK(state.conv_channels == channels && static_cast<int64_t>(by_channel.size()) == channels * w.taps);
  w.values.assign(static_cast<size_t>(w.n_blocks() * block * w.rows()), 0.0f);
  for (int64_t c = 0; c < channels; ++c) {
    float* to = w.values.data() + c / block * block * w.rows() + c % block;
    for (int j = 0; j < w.taps; ++j) to[j * block] = by_channel[c * w.taps + j];
    if (w.has_bias) to[w.taps * block] = program.vectors[bias][c];
  }
  ones_.resize(std::max(ones_.size(), static_cast<size_t>(block)), 1.0f);
}

int64_t RecurrentScratch::convolved_row(const op::Mamba2Mix& op) {
  // Not a multiple of a page, or rows would fight for the same cache sets.
  return (op.channels() + 15) / 16 * 16 + 16;
}

void RecurrentScratch::reserve(const Program& program, const StateLayout& layout, int max_rows, int n_threads) {
  const ReplayLayout replay(layout);
  replay_offset_ = replay.offset;
  replay_stride_ = replay.floats_per_token;
  max_rows_ = max_rows;
  conv_.resize(layout.recurrent().size());
  rates_.resize(layout.recurrent().size());
  size_t floats = 0, convolved = 0, steps = 0;
  for (const Op& any : program.ops) {
    if (const auto* op = std::get_if<op::GdnMix>(&any)) {
      const RecurrentLayer& state = layout.recurrent()[op->recurrent_layer];
      CHECK(state.n_heads == op->n_value_heads && state.d_key == op->d_head && state.d_value == op->d_head);
      CHECK(op->n_value_heads % op->n_key_heads == 0);
      add_conv(program, layout, op->recurrent_layer, op->channels(), op->d_head, op->conv, kNone);
      floats = std::max(floats, gdn_worker_floats(*op));
    }
    if (const auto* op = std::get_if<op::Mamba2Mix>(&any)) {
      const RecurrentLayer& state = layout.recurrent()[op->recurrent_layer];
      CHECK(state.n_heads == op->n_heads && state.d_key == op->d_state && state.d_value == op->d_head);
      CHECK(op->n_heads % op->n_groups == 0 && state.recorded_gates == op->n_heads);
      add_conv(program, layout, op->recurrent_layer, op->channels(), kMambaConvBlock, op->conv, op->conv_bias);
      floats = std::max(floats, mamba2_worker_floats(*op));
      convolved = std::max(convolved, static_cast<size_t>(convolved_row(*op)) * max_rows);
      steps = std::max(steps, static_cast<size_t>(op->n_heads) * max_rows);
    }
    if (const auto* op = std::get_if<op::CausalConv>(&any)) {
      add_conv(program, layout, op->recurrent_layer, op->channels, kMambaConvBlock, op->conv, op->conv_bias);
    }
    if (const auto* op = std::get_if<op::SelectiveScan>(&any)) {
      const RecurrentLayer& state = layout.recurrent()[op->recurrent_layer];
      CHECK(state.n_heads == 1 && state.d_key == op->d_state && state.d_value == op->channels);
      CHECK(state.recorded_gates == 2 * op->channels + op->d_state);
      floats = std::max(floats, scan_worker_floats(*op));
      AlignedFloats& rates = rates_[op->recurrent_layer];
      rates.resize(static_cast<size_t>(op->channels) * op->d_state);
      for (int64_t c = 0; c < op->channels; ++c) {
        for (int n = 0; n < op->d_state; ++n) {
          rates[int64_t{n} * op->channels + c] = program.vectors[op->a][c * op->d_state + n];
        }
      }
    }
  }
  convolved_.resize(convolved);
  steps_.resize(steps);
  int max_taps = 1;
  for (const ConvWeights& w : conv_) max_taps = std::max(max_taps, w.rows());
  workers_.resize(static_cast<size_t>(n_threads));
  for (Worker& w : workers_) {
    w.memory.resize(floats);
    w.taps.resize(static_cast<size_t>(max_taps));
  }
}

uint64_t RecurrentScratch::size_bytes() const {
  uint64_t floats = ones_.size() + convolved_.size() + steps_.size();
  for (const ConvWeights& c : conv_) floats += c.values.size();
  for (const AlignedFloats& r : rates_) floats += r.size();
  for (const Worker& w : workers_) floats += w.memory.size();
  return floats * sizeof(float);
}

void RecurrentScratch::conv_block(const VecKernels& v, const ConvWeights& weights, const ConvRows& rows, int t,
                                  int64_t block, int rank, float* out) {
  std::vector<const float*>& taps = workers_[rank].taps;
  const int64_t channel = block * weights.block;
  const int n = static_cast<int>(std::min<int64_t>(weights.block, weights.channels - channel));
  const int width = weights.taps - 1;
  for (int j = 0; j < weights.taps; ++j) {
    const int at = t + j - width;
    taps[j] = at < 0 ? rows.window + (at + width) * weights.channels + channel : rows.in + at * rows.in_row + channel;
  }
  if (weights.has_bias) taps[weights.taps] = ones_.data();
  if (t + kConvPrefetchTokens < rows.n_tokens) {
    const float* ahead = rows.in + (t + kConvPrefetchTokens) * rows.in_row + channel;
    for (int i = 0; i < n; i += 16) __builtin_prefetch(ahead + i);
  }
  v.conv_silu(n, weights.rows(), taps.data(), weights.values.data() + channel * weights.rows(), weights.block, out);
}

ConvRows conv_rows(const Context& context, BufferId in, int64_t column, int recurrent_layer, const Slice& slice) {
  const int64_t window = context.layout.conv_offset(recurrent_layer);
  return {context.row(in, slice.first_row) + column, context.width(in), slice.state.recurrent + window,
          slice.state.behind_first() + window, slice.n_tokens};
}

void advance_window(const ConvWeights& weights, const ConvRows& rows, int64_t channel, int64_t n) {
  const int width = weights.taps - 1;
  const auto advance = [&](int n_tokens, float* to) {
    // Rows move towards older places only, so ascending order is safe.
    for (int i = 0; i < width; ++i) {
      const int at = n_tokens - width + i;
      const float* from =
          at < 0 ? rows.window + (at + width) * weights.channels + channel : rows.in + at * rows.in_row + channel;
      std::memcpy(to + i * weights.channels + channel, from, static_cast<size_t>(n) * sizeof(float));
    }
  };
  advance(rows.n_tokens, rows.ahead);
  if (rows.ahead != rows.window) advance(1, rows.window);
}

}  // namespace chimere::cpu
