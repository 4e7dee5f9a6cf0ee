// gdn_mix.cpp  Gated DeltaNet of the oracle: the recurrence, token by token, for prefill and decode alike.
#include <cmath>
#include <cstring>

#include "backend/reference/reference.h"

namespace chimere::reference {
namespace {

// One token: advances the conv window and the state; writes [n_value_heads * d_head] outputs before norm and gate.
void gdn_step(const Context& c, const op::GdnMix& op, float* recurrent, const float* qkv, const float* alpha,
              const float* beta, float* out) {
  const RecurrentLayer& layer = c.layout.recurrent()[op.recurrent_layer];
  const int channels = layer.conv_channels, past = layer.conv_width, kernel = past + 1, dh = op.d_head;
  float* window = recurrent + c.layout.conv_offset(op.recurrent_layer);
  float* matrices = recurrent + c.layout.matrix_offset(op.recurrent_layer);

  std::vector<double> u(channels);
  for (int ch = 0; ch < channels; ++ch) {
    const float* w = c.vector(op.conv) + static_cast<int64_t>(ch) * kernel;
    double sum = static_cast<double>(w[past]) * qkv[ch];
    for (int j = 0; j < past; ++j) sum += static_cast<double>(w[j]) * window[j * channels + ch];
    u[ch] = silu(sum);
  }
  std::memmove(window, window + channels, sizeof(float) * (past - 1) * channels);
  std::memcpy(window + (past - 1) * channels, qkv, sizeof(float) * channels);

  auto unit = [&](double* v) {
    double sum = 0;
    for (int i = 0; i < dh; ++i) sum += v[i] * v[i];
    const double scale = 1.0 / std::sqrt(sum + 1e-6);
    for (int i = 0; i < dh; ++i) v[i] *= scale;
  };
  double* q = u.data();
  double* k = q + op.n_key_heads * dh;
  const double* v = k + op.n_key_heads * dh;
  for (int h = 0; h < op.n_key_heads; ++h) {
    unit(q + h * dh);
    unit(k + h * dh);
  }

  std::vector<double> delta(dh);
  for (int j = 0; j < op.n_value_heads; ++j) {
    const double* qh = q + op.key_head(j) * dh;
    const double* kh = k + op.key_head(j) * dh;
    const double* vh = v + j * dh;
    float* s = matrices + static_cast<int64_t>(j) * dh * dh;  // [d_key][d_value]
    const double dt = static_cast<double>(alpha[j]) + c.vector(op.dt_bias)[j];
    const double softplus = dt > 20 ? dt : std::log1p(std::exp(dt));
    const double decay = std::exp(c.vector(op.a)[j] * softplus);
    const double b = sigmoid(beta[j]);
    for (int x = 0; x < dh; ++x) {
      double seen = 0;
      for (int i = 0; i < dh; ++i) seen += decay * s[i * dh + x] * kh[i];
      delta[x] = b * (vh[x] - seen);
    }
    for (int x = 0; x < dh; ++x) {
      double o = 0;
      for (int i = 0; i < dh; ++i) {
        const double updated = decay * s[i * dh + x] + kh[i] * delta[x];
        s[i * dh + x] = static_cast<float>(updated);
        o += updated * qh[i];
      }
      out[j * dh + x] = static_cast<float>(o / std::sqrt(static_cast<double>(dh)));
    }
  }
}

}  // namespace

void replay(const Context& c, const op::GdnMix& op, float* recurrent, const float* record) {
  std::vector<float> out(static_cast<size_t>(op.n_value_heads) * op.d_head);
  const float* alpha = record + op.channels();
  gdn_step(c, op, recurrent, record, alpha, alpha + op.n_value_heads, out.data());
}

void run(const Context& c, const op::GdnMix& op) {
  const int dh = op.d_head;
  const ReplayLayout record(c.layout);
  for (const Slice& slice : c.batch.slices) {
    for (int t = 0; t < slice.n_tokens; ++t) {
      const int row = slice.first_row + t;
      const float *qkv = c.row(op.qkv, row), *alpha = c.row(op.alpha, row), *beta = c.row(op.beta, row);
      if (slice.state.replay) {
        float* to = slice.state.replay + t * record.floats_per_token + record.offset[op.recurrent_layer];
        std::copy_n(qkv, op.channels(), to);
        std::copy_n(alpha, op.n_value_heads, to + op.channels());
        std::copy_n(beta, op.n_value_heads, to + op.channels() + op.n_value_heads);
      }
      float* out = c.row(op.out, row);
      gdn_step(c, op, slice.state.recurrent, qkv, alpha, beta, out);
      for (int j = 0; j < op.n_value_heads; ++j) {
        rms_norm(out + j * dh, c.vector(op.norm), op.eps, dh, out + j * dh);
        for (int x = 0; x < dh; ++x) out[j * dh + x] *= static_cast<float>(silu(c.row(op.z, row)[j * dh + x]));
      }
    }
  }
}

}  // namespace chimere::reference
