// matvec_staged_few.h   matvec.cu for 2 to 4 rows, where a block's share of the weights fits into its shared memory
// Shapes    as matvec.cu; widths of an even number of groups, at least two lanes a row; rows of another format are of
//           Q8_0
// Bytes     the weights once, by the bulk copies of matvec_staged.h; 4 * width * n_rows a block for the activations
// Launch    that of matvec_staged.h: a block of 16 warps per SM and 64 registers a thread. A warp takes two units, so
//           that activations read from shared memory serve two weight rows, and unpacked weights serve all rows
// Smem      the records of the rows (2.6 KB for 2048 elements) in place of one, else as matvec_staged.h
// Work      about 50 + 18 (n_rows - 1) instructions for 32 x 32 weights; the tensor cores take 108 for 16 x 64 and
//           eight columns (matvec_staged_rows.h), but have to wait for whole tiles and a barrier
// Numerics  the bits of matvec.cu for one row
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/staged.h"
#include "backend/cuda/kernels/dense/matvec_side.h"
#include "backend/cuda/kernels/dense/matvec_staged.h"
#include "backend/cuda/kernels/dense/row_maker.h"

namespace chimere::cuda {

// What the products of a few rows read of the activations.
struct FewRecords {
  const uint8_t* records;
  uint32_t bytes;  // of one
  int n;

  __device__ __forceinline__ const uint8_t* at(int t) const { return records + static_cast<uint32_t>(t) * bytes; }
};

// acc[r][t] + the lane's share of the products of two weight rows with the first n of kT rows of activations.
template <class F, int kT>
__device__ __forceinline__ void add_few_pairs(const SharedRow (&rows)[2], uint32_t G, uint32_t pair,
                                              const CodeBooks& books, const FewRecords& few, float (&acc)[2 * kT]) {
  const Pair<F> raw[2] = {F::load_pair(rows[0], G, pair), F::load_pair(rows[1], G, pair)};
  const auto add_half = [&](auto half) {
    Group w[2];
    F::unpack(raw[0].of[half], books, w[0]);
    F::unpack(raw[1].of[half], books, w[1]);
#pragma unroll
    for (int t = 0; t < kT; ++t) {
      if (kT > 2 && t >= few.n) break;
      const ActGroup x = load_act_half<half>(few.at(t), G, pair);
      acc[t] = add_group<F::kScales, F::kMins>(w[0], x, acc[t]);
      acc[kT + t] = add_group<F::kScales, F::kMins>(w[1], x, acc[kT + t]);
    }
  };
  add_half(std::integral_constant<int, 0>{});
  add_half(std::integral_constant<int, 1>{});
}

// The units of a warp, two at a time; where there is but one left it is multiplied twice and stored once.
template <class F, int kT, class Inverse>
__device__ __forceinline__ void multiply_few_units(const MatvecPlan& p, const BlockUnits& units, const uint8_t* weights,
                                                   uint64_t* arrived, const CodeBooks& books, const FewRecords& few,
                                                   const Inverse& inverse) {
  const uint32_t G = row_groups(p.args.in.width), row_bytes = p.args.outs[0].weight.row_bytes;
  const int lanes = p.lanes(), sub = simt::lane_id() >> p.lanes_log2;
  const auto lane = static_cast<uint32_t>(simt::lane_id() & (lanes - 1));
  const uint32_t step = static_cast<uint32_t>(kOneWarps << (5 - p.lanes_log2)) * row_bytes;
  const uint8_t* at = weights + static_cast<uint32_t>((simt::warp_id() << (5 - p.lanes_log2)) + sub) * row_bytes;
  StageWait wait{units, arrived};
#pragma unroll 1
  for (int unit = units.first + simt::warp_id(); unit < units.end; unit += 2 * kOneWarps, at += 2 * step) {
    const bool two = unit + kOneWarps < units.end;
    wait.until(two ? unit + kOneWarps : unit);
    const SharedRow rows[2] = {{at}, {two ? at + step : at}};
    float acc[2 * kT] = {};
#pragma unroll 1
    for (uint32_t pair = lane; pair < G / 2; pair += static_cast<uint32_t>(lanes)) {
      add_few_pairs<F, kT>(rows, G, pair, books, few, acc);
    }
    finish_sums(acc, lanes, [&](int i, float sum) {
      const int t = i % kT, mine = unit + i / kT * kOneWarps;
      if (t >= few.n || mine >= units.end) return;
      const int which = OwnTile<F, 1>::find(p, mine);
      const MatvecOut& o = p.args.outs[which];
      const int row = ((mine - p.first_tile[which]) << (5 - p.lanes_log2)) + sub;
      if (row < o.weight.rows) store_output(o, t, row, times(sum, inverse(t)));
    });
  }
}

// Side tiles of a few rows, all of which have slots.
template <class Inverse>
__device__ __forceinline__ void multiply_few_sides(const MatvecPlan& p, const SideRoom& room, const BlockSides& sides,
                                                   int n_units, const uint8_t* slots, uint64_t* arrived,
                                                   const FewRecords& few, const Inverse& inverse) {
  for (int i = first_side_of_warp(n_units); sides.at(i) < p.all_tiles; i += kOneWarps) {
    const int tile = sides.at(i), which = find_side(p, tile);
    const MatvecOut& o = p.args.outs[which];
    simt::bulk_wait(arrived);
#pragma unroll 1
    for (int t = 0; t < few.n; ++t) {
      near_side_tile(p, o, (tile - p.first_tile[which]) << (5 - p.side_lanes_log2),
                     slots + static_cast<uint32_t>(i) * room.slot_bytes, few.at(t), inverse(t), t);
    }
  }
}

// kT: 2 or 4. args.records is null where blocks make the records.
template <class F, int kT>
__global__ void CHIMERE_ONE_ROW staged_few_kernel(const __grid_constant__ StagedMatvecPlan staged) {
  const MatvecPlan& p = staged.plan;
  SIMT_SHARED(uint64_t, arrived, kStages);
  SIMT_SHARED(uint64_t, sides_arrived, 1);
  SIMT_SHARED(uint64_t, records_arrived, 1);
  auto* smem = simt::dynamic_shared<uint8_t>();
  uint8_t* records = smem + book_bytes<F>();
  const FewRecords few{records, record_bytes(p.args.in.width), p.args.n_rows};
  const uint32_t all_bytes = static_cast<uint32_t>(few.n) * few.bytes;
  uint8_t* weights = records + all_bytes;
  const BlockUnits units(staged.split, static_cast<int>(blockIdx.x));
  if (simt::thread_id() < kStages) {
    send_for_stage(p, units, simt::thread_id(), weights, arrived + simt::thread_id());
  }
  const BlockSides sides(p);
  uint8_t* side_slots = weights + staged.side_offset;
  if (simt::thread_id() == kOneThreads - 32) send_for_sides(p, staged.side, sides, side_slots, sides_arrived);
  const CodeBooks books = open_books<F>(p.args.outs[0].weight.grids, smem);
  const RowMaker maker(p.args.in);
  simt::wait_for_previous();
  simt::allow_next();
  if (!p.args.records) {
    maker.make(few.n, records);
  } else if (simt::thread_id() == 0) {
    simt::bulk_begin(records_arrived);
    simt::bulk_copy(records, p.args.records, all_bytes, records_arrived);
    simt::bulk_end(records_arrived);
  }
  __syncthreads();
  if (p.args.records) simt::bulk_wait(records_arrived);
  const auto inverse = [&](int t) { return row_inverse(p.args.in, few.at(t)); };

  multiply_few_sides(p, staged.side, sides, units.size(), side_slots, sides_arrived, few, inverse);
  multiply_few_units<F, kT>(p, units, weights, arrived, books, few, inverse);
}

template <class F>
Status launch_staged_few(const Stream& stream, const MatvecPlan& plan, const MatvecChoice& c) {
  const StagedMatvecPlan staged{
      plan, UnitSplit(plan.own_tiles, c.blocks), {c.side_slots, c.side_slot_bytes}, c.staged_bytes};
  const simt::Launch launch{static_cast<unsigned>(c.blocks), kOneThreads, c.shared_bytes, stream, plan.args.dependent};
  return plan.args.n_rows == 2 ? simt::launch(staged_few_kernel<F, 2>, launch, staged)
                               : simt::launch(staged_few_kernel<F, 4>, launch, staged);
}

}  // namespace chimere::cuda
