// matvec_staged.h  matvec.cu for one row, where a block's share of the weights fits into its shared memory.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/staged.h"
#include "backend/cuda/kernels/dense/matvec_device.h"
#include "backend/cuda/kernels/dense/matvec_side.h"

namespace chimere::cuda {

// A unit is a tile of OwnTile<F, 1>: the rows that a warp multiplies in parallel. One lane issues a stage's copies.
__device__ __forceinline__ void send_for_stage(const MatvecPlan& p, const BlockUnits& units, int stage,
                                               uint8_t* weights, uint64_t* arrived) {
  const int per_unit = 32 >> p.lanes_log2, begin = units.stage_begin(stage), end = units.stage_begin(stage + 1);
  simt::bulk_begin(arrived);
  for (int i = 0; i < p.n_own; ++i) {
    const Weight& w = p.args.outs[i].weight;
    const int next = i + 1 < p.n_own ? p.first_tile[i + 1] : p.own_tiles;
    const int from = max(begin, p.first_tile[i]), to = min(end, next);
    if (from >= to) continue;
    // If the last unit of a projection is incomplete, the missing rows are not copied.
    const int row = (from - p.first_tile[i]) * per_unit;
    const int n = min((to - p.first_tile[i]) * per_unit, w.rows) - row;
    simt::bulk_stream(weights + static_cast<uint32_t>((from - units.first) * per_unit) * w.row_bytes, w.row(0, row),
                      static_cast<uint32_t>(n) * w.row_bytes, arrived);
  }
  simt::bulk_end(arrived);
}

struct StagedMatvecPlan {
  MatvecPlan plan;
  UnitSplit split;
  SideRoom side;
  uint32_t side_offset;  // of its slots behind the weights
  bool by_all = false;   // WholeRow makes the record, with all threads
};

// Where a lane stores a sum and what it adds to it: loaded before the products.
struct OutAhead {
  float* to;
  float before = 0.0f, bias = 0.0f;

  __device__ __forceinline__ OutAhead(const MatvecOut& o, int row, bool stores) : to(o.out + row) {
    if (!stores || !(o.add || o.bias)) return;
    if (o.add) before = *to;
    if (o.bias) bias = o.bias[row];
  }
  __device__ __forceinline__ void store(const MatvecOut& o, float sum) const {
    sum += bias;
    *to = o.add ? fmaf(sum, o.scale, before) : sum * o.scale;
  }
};

// The units of a warp, two at a time.
template <class F>
__device__ __forceinline__ void multiply_units(const MatvecPlan& p, const BlockUnits& units, const uint8_t* weights,
                                               uint64_t* arrived, const CodeBooks& books, const uint8_t* record,
                                               float inverse) {
  const uint32_t G = row_groups(p.args.in.width), row_bytes = p.args.outs[0].weight.row_bytes;
  const int lanes = p.lanes(), sub = simt::lane_id() >> p.lanes_log2;
  const auto lane = static_cast<uint32_t>(simt::lane_id() & (lanes - 1));
  const bool upper = lane >= static_cast<uint32_t>(lanes / 2);  // the lane ends with the second of two units
  const uint32_t step = static_cast<uint32_t>(kOneWarps << (5 - p.lanes_log2)) * row_bytes;
  const uint8_t* at = weights + static_cast<uint32_t>((simt::warp_id() << (5 - p.lanes_log2)) + sub) * row_bytes;
  StageWait wait{units, arrived};
  ProjectionCursor of(p);
  for (int unit = units.first + simt::warp_id(); unit < units.end; unit += 2 * kOneWarps, at += 2 * step) {
    const bool two = unit + kOneWarps < units.end;
    const int mine = unit + (upper && two ? kOneWarps : 0);
    of.seek(p, mine);
    const MatvecOut& o = p.args.outs[of.which];
    const int row = ((mine - of.first) << (5 - p.lanes_log2)) + sub;
    const bool stores = lane % (lanes / 2) == 0 && row < o.weight.rows && (two || !upper);
    const OutAhead out(o, row, stores);
    wait.until(two ? unit + kOneWarps : unit);
    const SharedRow rows[2] = {{at}, {at + step}};
    float acc[2] = {};
    if (two) {
      for (uint32_t pair = lane; pair < G / 2; pair += lanes) {
        add_staged_pairs<F>(rows, G, pair, books, record, G, 0, acc);
      }
    } else {
      for (uint32_t pair = lane; pair < G / 2; pair += lanes) {
        acc[0] = add_staged_pair<F>(rows[0], G, pair, books, record, G, 0, acc[0]);
      }
    }
    const float sum = times(two_lane_sums(acc[0], acc[1], lanes), inverse);
    if (stores) out.store(o, sum);
  }
}

// The same for rows that HeldPair fits, one per unit: everything but the products is done once for four of them.
template <class F>
__device__ __forceinline__ void multiply_held_units(const MatvecPlan& p, const BlockUnits& units,
                                                    const uint8_t* weights, uint64_t* arrived, const CodeBooks& books,
                                                    const uint8_t* record, float inverse) {
  constexpr int kAtOnce = 4, kShare = 32 / kAtOnce;
  constexpr uint32_t kStep = kOneWarps * F::row_bytes(HeldPair::kGroups);
  const uint8_t* at = weights + static_cast<uint32_t>(simt::warp_id()) * F::row_bytes(HeldPair::kGroups);
  HeldPair held;
  held.load(record);
  StageWait wait{units, arrived};
  ProjectionCursor of(p);
  for (int unit = units.first + simt::warp_id(); unit < units.end; unit += kAtOnce * kOneWarps, at += kAtOnce * kStep) {
    const int mine = unit + simt::lane_id() / kShare * kOneWarps;  // the lane ends with its sum
    const bool stores = simt::lane_id() % kShare == 0 && mine < units.end;
    if (stores) of.seek(p, mine);
    const MatvecOut& o = p.args.outs[of.which];
    const OutAhead out(o, mine - of.first, stores);
    float acc[kAtOnce] = {};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (unit + i * kOneWarps >= units.end) break;
      wait.until(unit + i * kOneWarps);
      acc[i] = held.template add<F>({at + static_cast<uint32_t>(i) * kStep}, books, 0.0f);
    }
    scatter_sums<32>(acc);
    if (stores) out.store(o, times(acc[0], inverse));
  }
}

// Makes the record of a row with all warps of a block, four elements per thread, at most twice. All threads quantise;
// the sums of squares of a norm, whose order is fixed, are made by the upper half.
struct WholeRow {
  static constexpr int kPieces = 2;
  float4 norm[kPieces];

  CHIMERE_BOTH static bool fits(const InputRows& in) {
    return !in.activates() && in.width % kGroup == 0 && in.width <= 4 * kPieces * kOneThreads;
  }

  __device__ __forceinline__ static int place(int piece) { return simt::thread_id() + piece * kOneThreads; }

  __device__ __forceinline__ void load_norm(const InputRows& in) {
#pragma unroll
    for (int j = 0; j < kPieces; ++j) {
      const bool has = in.norm && 4 * place(j) < in.width;
      norm[j] = has ? __ldg(reinterpret_cast<const float4*>(in.norm) + place(j)) : make_float4(0, 0, 0, 0);
    }
  }

  __device__ __forceinline__ void make(const InputRows& in, int64_t row, uint8_t* record) const {
    const auto* x4 = reinterpret_cast<const float4*>(in.x + row * in.width);
    const int n = in.width / 4;
    const bool sums = in.norm && simt::warp_id() >= kDotWarps;
    float4 own[kPieces], others[kPieces];
#pragma unroll
    for (int j = 0; j < kPieces; ++j) {
      const int i = place(j), other = i - kDotThreads;
      own[j] = i < n ? x4[i] : make_float4(0, 0, 0, 0);
      others[j] = sums && other < n ? x4[other] : make_float4(0, 0, 0, 0);
    }
    float inverses = 1.0f;
    if (in.head_squares) inverses = head_inverse(load_squares(in, row, 0, kOneThreads), in.head_width, in.eps);
#pragma unroll
    for (int j = 0; j < kPieces; ++j) {
      if (simt::warp_id() * 32 + j * kOneThreads >= n) break;
      float4 v = own[j];
      if (in.norm) v = times_each(v, norm[j]);
      if (in.head_squares) v = times_all(v, __shfl_sync(simt::kAllLanes, inverses, 4 * j + simt::lane_id() / 8));
      quantise_quad(v, static_cast<uint32_t>(place(j)), place(j) < n, row_groups(in.width), record);
    }
    if (!sums) return;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kPieces; ++j) sum = square_sum(own[j], square_sum(others[j], sum));
    sum = simt::warp_sum(sum);
    if (simt::lane_id() != 0) return;
    reinterpret_cast<float*>(record + record_squares_offset(in.width))[simt::warp_id() - kDotWarps] = sum;
  }
};
static_assert(kOneThreads == 2 * kDotThreads);

template <class F>
__global__ void CHIMERE_ONE_ROW staged_matvec_kernel(const __grid_constant__ StagedMatvecPlan staged) {
  const MatvecPlan& p = staged.plan;
  SIMT_SHARED(uint64_t, arrived, kStages);
  SIMT_SHARED(uint64_t, sides_arrived, 1);
  auto* smem = simt::dynamic_shared<uint8_t>();
  uint8_t* record = smem + book_bytes<F>();
  uint8_t* weights = record + record_bytes(p.args.in.width);
  const BlockUnits units(staged.split, static_cast<int>(blockIdx.x));
  if (simt::thread_id() < kStages) {
    send_for_stage(p, units, simt::thread_id(), weights, arrived + simt::thread_id());
  }
  const BlockSides sides(p);
  uint8_t* side_slots = weights + staged.side_offset;
  if (simt::thread_id() == kOneThreads - 32) send_for_sides(p, staged.side, sides, side_slots, sides_arrived);
  const CodeBooks books = open_books<F>(p.args.outs[0].weight.grids, smem);
  prefetch_sides(p, staged.side, sides, units.size());
  // All threads make the record, unless the order of the sums of squares forbids it.
  const int makers = p.args.in.norm ? kDotThreads : kOneThreads;
  const bool makes_record = simt::thread_id() < makers;
  NormAhead norms{};
  WholeRow whole;
  const bool by_all = staged.by_all;
  if (by_all) {
    whole.load_norm(p.args.in);
  } else if (makes_record) {
    norms = load_norm(p.args.in);
  }
  simt::wait_for_previous();
  simt::allow_next();
  if (by_all) {
    whole.make(p.args.in, p.args.in.gather ? p.args.in.gather[0] : 0, record);
  } else if (makes_record) {
    const int64_t in_row = p.args.in.gather ? p.args.in.gather[0] : 0;
    make_record(p.args.in, in_row, p.quantise, norms, load_row<3>(p.args.in, in_row, makers), record, makers);
  }
  __syncthreads();
  const float inverse = row_inverse(p.args.in, record);

  multiply_sides(p, staged.side, sides, units.size(), side_slots, sides_arrived, record, inverse);

  if (HeldPair::fits(p.args.in.width)) {
    multiply_held_units<F>(p, units, weights, arrived, books, record, inverse);
  } else {
    multiply_units<F>(p, units, weights, arrived, books, record, inverse);
  }
}

template <class F>
Status launch_staged(const Stream& stream, const MatvecPlan& plan, const MatvecChoice& c) {
  const StagedMatvecPlan staged{plan,
                                UnitSplit(plan.own_tiles, c.blocks),
                                {c.side_slots, c.side_slot_bytes},
                                c.staged_bytes,
                                plan.quantise && WholeRow::fits(plan.args.in)};
  return simt::launch(staged_matvec_kernel<F>,
                      {static_cast<unsigned>(c.blocks), kOneThreads, c.shared_bytes, stream, plan.args.dependent},
                      staged);
}

}  // namespace chimere::cuda
