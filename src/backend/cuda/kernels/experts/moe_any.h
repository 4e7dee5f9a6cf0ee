// moe_any.h  What the expert kernels share, and products with experts of any format, for those without own kernels.
//
// A row's bits do not depend on the other rows: a product of an expert row with a row of activations is one sum over
// the lanes in the order of its width, and the experts' shares are added in the order of the row's choices.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/dot_device.h"
#include "backend/cuda/kernels/common/units.h"
#include "backend/cuda/kernels/experts/moe_choice.h"
#include "backend/cuda/kernels/experts/moe_plan.h"

namespace chimere::cuda {

// A lane's part of the product with one row of activations of any kind.
__device__ __forceinline__ float any_product(const Weight& w, const uint8_t* row, bool exact, int lanes,
                                             const ActRows& acts, const FloatRows& rows) {
  if (w.is_float()) return float_dot(w.type, row, w.width, rows, 1).x;
  if (exact) return exact_dot(w.type, row, row_groups(w.width), w.grids, rows, 1).x;
  return any_dot(w.type, row, row_groups(w.width), lanes, w.grids, acts, 1).x;
}
__device__ __forceinline__ int any_lanes(const Weight& w, bool exact, int log2) {
  return w.is_float() || exact ? 32 : 1 << log2;
}

// What a warp of the up kernel works on at a time: rows of one expert for up to kMoeChunk rows of activations.
struct UpChunk {
  int expert;
  int count;
  int assignment[kMoeChunk];  // row of the activations << 16 | choice
};

// A choice of a single row.
__device__ __forceinline__ UpChunk one_row_chunk(int expert, int choice) {
  UpChunk u{};
  u.expert = expert;
  u.count = 1;
  u.assignment[0] = choice;
  return u;
}

template <int kT>
__device__ __forceinline__ UpChunk shared_chunk(const MoePlan& p, int at) {
  UpChunk u;
  u.expert = 0;
  u.count = min(kMoeChunk, p.args.n_rows - at * kMoeChunk);
#pragma unroll
  for (int i = 0; i < kT; ++i) {
    const int row = at * kMoeChunk + min(i, u.count - 1);
    u.assignment[i] = row << 16;
  }
  return u;
}

// Where the hidden elements of an assignment go.
__device__ __forceinline__ float* hidden_row(const MoePlan& p, float* hidden, int assignment, int d_ff) {
  return hidden + static_cast<int64_t>(assignment >> 16) * p.hidden_width + (assignment & 0xFFFF) * d_ff;
}

// Of element f of a routed expert.
__device__ __forceinline__ void add_up_biases(const MoePlan& p, int expert, int f, float& gate, float& up) {
  const int64_t at = static_cast<int64_t>(expert) * p.args.up.rows + f;
  if (p.args.gate_bias) gate += p.args.gate_bias[at];
  if (p.args.up_bias) up += p.args.up_bias[at];
}

// Of output `row` of the activations' row t, behind the weighted sum of the experts.
__device__ __forceinline__ float add_down_biases(const MoePlan& p, int t, int row, const float* weights, float sum) {
  if (!p.args.down_bias) return sum;
  const int32_t* ids = p.scratch.ids + t * p.args.n_used;
  for (int k = 0; k < p.args.n_used; ++k) {
    sum = fmaf(weights[k], p.args.down_bias[static_cast<int64_t>(ids[k]) * p.args.down.rows + row], sum);
  }
  return sum;
}

// Units of n chunks, from `unit` on, of a type without kernel: `locate` says what a chunk is.
template <class Locate>
__device__ __forceinline__ void any_up(const MoePlan& p, const Weight& gate, const Weight& up, int unit, int n,
                                       int stride, const uint8_t* records, float* hidden, bool is_routed,
                                       Locate locate) {
  const int lanes_up = any_lanes(up, p.args.exact, p.any_log2_in);
  const int lanes_gate = gate ? any_lanes(gate, p.args.exact, p.any_log2_in) : lanes_up;
  const int lanes = max(lanes_gate, lanes_up);  // rows of mixed kinds are taken one at a time
  const int per_tile = lanes_gate == lanes_up ? 32 / lanes : 1;
  const uint32_t bytes = record_bytes(up.width);
  const Dealing dealing(simt::div_up(up.rows, per_tile), stride);
  DealtUnits at;
  for (at.begin(dealing, unit, n * dealing.tiles); at.left > 0; at.advance(dealing)) {
    const UpChunk u = locate(at.chunk);
    const int f = at.tile * per_tile + (per_tile == 1 ? 0 : simt::lane_id() / lanes);
    const int row = min(f, up.rows - 1);
#pragma unroll
    for (int i = 0; i < kMoeChunk; ++i) {
      if (i >= u.count) break;
      FloatRows rows{};
      rows.x[0] = p.args.in.x + static_cast<int64_t>((u.assignment[i] >> 16)) * up.width;
      const uint8_t* record = records + (u.assignment[i] >> 16) * bytes;
      rows.inverse_rms[0] = stored_inverse(record, up.width);
      rows.norm = p.args.in.norm;
      const ActRows acts{record, bytes, row_groups(up.width), 0};
      const auto product = [&](const Weight& w, int lanes_of) {
        const float sum =
            lane_sum(any_product(w, w.expert_row(u.expert, row), p.args.exact, lanes_of, acts, rows), lanes_of);
        return p.args.exact || w.is_float() ? sum : sum * rows.inverse_rms[0];
      };
      float g = gate ? product(gate, lanes_gate) : 0.0f, h = product(up, lanes_up);
      if (simt::lane_id() % lanes != 0 || f >= up.rows) continue;
      if (is_routed) add_up_biases(p, u.expert, f, g, h);
      hidden_row(p, hidden, u.assignment[i], up.rows)[f] = activated(p.args.activation, g, h);
    }
  }
}

// Prefetches a part of a matrix that does not depend on the choice of experts, before the choice is known.
__device__ __forceinline__ void prefetch(const Weight& w) {
  if (!w) return;
  const int64_t bytes = static_cast<int64_t>(w.rows) * w.row_bytes;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kDotThreads * 128;
  for (int64_t at = (static_cast<int64_t>(blockIdx.x) * kDotThreads + simt::thread_id()) * 128; at < bytes;
       at += stride) {
    simt::prefetch_l2(w.data + at);
  }
}

// One output of one expert of any format; every lane gets it. Lanes beyond those of the row repeat them.
__device__ __forceinline__ float any_down(const MoePlan& p, const Weight& down, int expert, int row,
                                          const ActRows& acts, int log2, const float* hidden) {
  FloatRows rows{};
  rows.x[0] = hidden;
  const int lanes = any_lanes(down, p.args.exact, log2);
  return lane_sum(any_product(down, down.expert_row(expert, row), p.args.exact, lanes, acts, rows), lanes);
}

}  // namespace chimere::cuda
