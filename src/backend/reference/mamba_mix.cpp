// mamba_mix.cpp  Mamba-2 and Mamba-1 of the oracle: the recurrences, token by token, for prefill and decode alike.
#include <cmath>
#include <cstring>

#include "backend/reference/reference.h"

namespace chimere::reference {
namespace {

double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }

// Conv and SiLU of one token; its input becomes the newest row of the window.
std::vector<double> conv_step(const RecurrentLayer& layer, const float* weights, const float* bias, float* window,
                              const float* in) {
  const int channels = layer.conv_channels, past = layer.conv_width, kernel = past + 1;
  std::vector<double> out(channels);
  for (int c = 0; c < channels; ++c) {
    const float* w = weights + static_cast<int64_t>(c) * kernel;
    double sum = static_cast<double>(w[past]) * in[c] + (bias ? bias[c] : 0.0);
    for (int j = 0; j < past; ++j) sum += static_cast<double>(w[j]) * window[j * channels + c];
    out[c] = silu(sum);
  }
  std::memmove(window, window + channels, sizeof(float) * (past - 1) * channels);
  std::memcpy(window + (past - 1) * channels, in, sizeof(float) * channels);
  return out;
}

float* record_of(const Context& c, const Slice& slice, int t, int recurrent_layer) {
  if (!slice.state.replay) return nullptr;
  const ReplayLayout record(c.layout);
  return slice.state.replay + t * record.floats_per_token + record.offset[recurrent_layer];
}

// One token: advances window and state; writes d_inner outputs before gate and norm.
void mamba2_step(const Context& c, const op::Mamba2Mix& op, float* recurrent, const float* xbc, const float* dt_in,
                 double* out) {
  const RecurrentLayer& layer = c.layout.recurrent()[op.recurrent_layer];
  const std::vector<double> u = conv_step(layer, c.vector(op.conv), c.vector(op.conv_bias),
                                          recurrent + c.layout.conv_offset(op.recurrent_layer), xbc);
  const int p = op.d_head, n = op.d_state;
  for (int h = 0; h < op.n_heads; ++h) {
    const double* x = u.data() + h * p;
    const double* b = u.data() + op.d_inner() + op.group(h) * n;
    const double* cc = b + op.n_groups * n;
    float* s = recurrent + c.layout.matrix_offset(op.recurrent_layer) + static_cast<int64_t>(h) * n * p;
    const double dt = softplus(static_cast<double>(dt_in[h]) + c.vector(op.dt_bias)[h]);
    const double decay = std::exp(dt * c.vector(op.a)[h]);
    for (int i = 0; i < p; ++i) {
      double y = c.vector(op.d)[h] * x[i];
      for (int j = 0; j < n; ++j) {
        const double updated = decay * s[j * p + i] + dt * x[i] * b[j];
        s[j * p + i] = static_cast<float>(updated);
        y += updated * cc[j];
      }
      out[h * p + i] = y;
    }
  }
}

// One token of the scan; `out` [channels] before the gate. C may be null when only the state is wanted.
void scan_step(const Context& c, const op::SelectiveScan& op, float* recurrent, const float* x, const float* dt_in,
               const float* b_in, const float* c_in, double* out) {
  std::vector<float> b(b_in, b_in + op.d_state), cc(op.d_state, 0.0f);
  if (c_in) cc.assign(c_in, c_in + op.d_state);
  if (op.b_norm != kNone) rms_norm(b.data(), c.vector(op.b_norm), op.eps, op.d_state, b.data());
  if (op.c_norm != kNone) rms_norm(cc.data(), c.vector(op.c_norm), op.eps, op.d_state, cc.data());
  float* s = recurrent + c.layout.matrix_offset(op.recurrent_layer);
  for (int ch = 0; ch < op.channels; ++ch) {
    const double dt = softplus(dt_in[ch]);
    double y = static_cast<double>(c.vector(op.d)[ch]) * x[ch];
    for (int n = 0; n < op.d_state; ++n) {
      float& state = s[static_cast<int64_t>(n) * op.channels + ch];
      const double a = c.vector(op.a)[static_cast<int64_t>(ch) * op.d_state + n];
      const double updated = std::exp(dt * a) * state + dt * b[n] * x[ch];
      state = static_cast<float>(updated);
      y += updated * cc[n];
    }
    out[ch] = y;
  }
}

}  // namespace

void run(const Context& c, const op::Mamba2Mix& op) {
  const int inner = op.d_inner(), group = inner / op.n_groups;
  std::vector<double> y(inner);
  for (const Slice& slice : c.batch.slices) {
    for (int t = 0; t < slice.n_tokens; ++t) {
      const int row = slice.first_row + t;
      const float* z = c.row(op.in, row);
      const float* xbc = z + inner;
      const float* dt = xbc + op.channels();
      if (float* to = record_of(c, slice, t, op.recurrent_layer)) {
        std::copy_n(xbc, op.channels(), to);
        std::copy_n(dt, op.n_heads, to + op.channels());
      }
      mamba2_step(c, op, slice.state.recurrent, xbc, dt, y.data());
      float* out = c.row(op.out, row);
      for (int g = 0; g < op.n_groups; ++g) {
        double sum = 0;
        for (int i = g * group; i < (g + 1) * group; ++i) {
          y[i] *= silu(z[i]);
          sum += y[i] * y[i];
        }
        const double scale = 1.0 / std::sqrt(sum / group + op.eps);
        for (int i = g * group; i < (g + 1) * group; ++i) {
          out[i] = static_cast<float>(op.norm == kNone ? y[i] : y[i] * scale * c.vector(op.norm)[i]);
        }
      }
    }
  }
}

void run(const Context& c, const op::CausalConv& op) {
  const RecurrentLayer& layer = c.layout.recurrent()[op.recurrent_layer];
  for (const Slice& slice : c.batch.slices) {
    for (int t = 0; t < slice.n_tokens; ++t) {
      const int row = slice.first_row + t;
      if (float* to = record_of(c, slice, t, op.recurrent_layer)) std::copy_n(c.row(op.in, row), op.channels, to);
      const std::vector<double> out =
          conv_step(layer, c.vector(op.conv), c.vector(op.conv_bias),
                    slice.state.recurrent + c.layout.conv_offset(op.recurrent_layer), c.row(op.in, row));
      std::copy(out.begin(), out.end(), c.row(op.out, row));
    }
  }
}

void run(const Context& c, const op::SelectiveScan& op) {
  std::vector<double> y(op.channels);
  for (const Slice& slice : c.batch.slices) {
    for (int t = 0; t < slice.n_tokens; ++t) {
      const int row = slice.first_row + t;
      const float *x = c.row(op.x, row), *dt = c.row(op.dt, row), *b = c.row(op.b, row);
      if (float* to = record_of(c, slice, t, op.recurrent_layer)) {
        to += op.channels;  // behind what the conv recorded
        std::copy_n(x, op.channels, to);
        std::copy_n(dt, op.channels, to + op.channels);
        std::copy_n(b, op.d_state, to + 2 * op.channels);
      }
      scan_step(c, op, slice.state.recurrent, x, dt, b, c.row(op.c, row), y.data());
      const float* z = c.row(op.z, row) + op.z_at;
      for (int i = 0; i < op.channels; ++i) c.row(op.out, row)[i] = static_cast<float>(y[i] * silu(z[i]));
    }
  }
}

void replay(const Context& c, const op::Mamba2Mix& op, float* recurrent, const float* record) {
  std::vector<double> out(op.d_inner());
  mamba2_step(c, op, recurrent, record, record + op.channels(), out.data());
}

void replay(const Context& c, const op::CausalConv& op, float* recurrent, const float* record) {
  conv_step(c.layout.recurrent()[op.recurrent_layer], c.vector(op.conv), c.vector(op.conv_bias),
            recurrent + c.layout.conv_offset(op.recurrent_layer), record);
}

void replay(const Context& c, const op::SelectiveScan& op, float* recurrent, const float* record) {
  std::vector<double> out(op.channels);
  const float* x = record + op.channels;
  scan_step(c, op, recurrent, x, x + op.channels, x + 2 * op.channels, nullptr, out.data());
}

}  // namespace chimere::reference
