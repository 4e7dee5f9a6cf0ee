// matvec_staged_two.h   matvec.cu for two rows, where a block's share of the weights fits into its shared memory
// Shapes    as matvec.cu; widths of an even number of groups, at least two lanes a row; rows of another format are of
//           Q8_0
// Bytes     the weights once, by the bulk copies of matvec_staged.h; 8 * width a block for the activations
// Launch    that of matvec_staged.h: a block of 16 warps per SM and 64 registers a thread. A warp takes two units, so
//           that activations read from shared memory serve two weight rows, and unpacked weights serve both rows
// Smem      the records of the rows (2.6 KB for 2048 elements) in place of one, else as matvec_staged.h
// Numerics  the bits of matvec.cu for one row
// Measured  H200, in a step: Q5_K [12352, 2048] 9.7 us, [2048, 4096] 5.7 (through registers and on the tensor cores 13.2
//           and 7.0)
// Rejected  the same for four rows: 15.3 and 10.3 us, where the tensor cores take 14.8 and 9.8 (matvec_staged_rows.h):
//           64 registers do not hold it. To load what is added to, and 1 / rms, before the products: 10.1 and 6.0 us
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/staged.h"
#include "backend/cuda/kernels/dense/matvec_side.h"
#include "backend/cuda/kernels/dense/matvec_staged.h"
#include "backend/cuda/kernels/dense/row_maker.h"

namespace chimere::cuda {

struct TwoRecords {
  const uint8_t* records;
  uint32_t bytes;  // of one

  __device__ __forceinline__ const uint8_t* at(int t) const { return records + static_cast<uint32_t>(t) * bytes; }
};

// acc[2 r + t] + the lane's share of the product of weight row r with row t of the activations, of a pair of groups.
template <class F>
__device__ __forceinline__ void add_two_pairs(const SharedRow (&rows)[2], uint32_t G, uint32_t pair,
                                              const CodeBooks& books, const TwoRecords& two, float (&acc)[4]) {
  const Pair<F> raw[2] = {F::load_pair(rows[0], G, pair), F::load_pair(rows[1], G, pair)};
  const auto add_half = [&](auto half) {
    Group w[2];
    F::unpack(raw[0].of[half], books, w[0]);
    F::unpack(raw[1].of[half], books, w[1]);
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const ActGroup x = load_act_half<half>(two.at(t), G, pair);
      acc[t] = add_group<F::kScales, F::kMins>(w[0], x, acc[t]);
      acc[2 + t] = add_group<F::kScales, F::kMins>(w[1], x, acc[2 + t]);
    }
  };
  add_half(std::integral_constant<int, 0>{});
  add_half(std::integral_constant<int, 1>{});
}

// The units of a warp, two at a time; where there is but one left it is multiplied twice and stored once.
template <class F, class Inverse>
__device__ __forceinline__ void multiply_units_of_two(const MatvecPlan& p, const BlockUnits& units,
                                                      const uint8_t* weights, uint64_t* arrived, const CodeBooks& books,
                                                      const TwoRecords& two, const Inverse& inverse) {
  const uint32_t G = row_groups(p.args.in.width), row_bytes = p.args.outs[0].weight.row_bytes;
  const int lanes = p.lanes(), sub = simt::lane_id() >> p.lanes_log2;
  const auto lane = static_cast<uint32_t>(simt::lane_id() & (lanes - 1));
  const uint32_t step = static_cast<uint32_t>(kOneWarps << (5 - p.lanes_log2)) * row_bytes;
  const uint8_t* at = weights + static_cast<uint32_t>((simt::warp_id() << (5 - p.lanes_log2)) + sub) * row_bytes;
  StageWait wait{units, arrived};
#pragma unroll 1
  for (int unit = units.first + simt::warp_id(); unit < units.end; unit += 2 * kOneWarps, at += 2 * step) {
    const bool has_second = unit + kOneWarps < units.end;
    wait.until(has_second ? unit + kOneWarps : unit);
    const SharedRow rows[2] = {{at}, {has_second ? at + step : at}};
    float acc[4] = {};
#pragma unroll 1
    for (uint32_t pair = lane; pair < G / 2; pair += static_cast<uint32_t>(lanes)) {
      add_two_pairs<F>(rows, G, pair, books, two, acc);
    }
    finish_sums(acc, lanes, [&](int i, float sum) {
      const int t = i % 2, mine = unit + i / 2 * kOneWarps;
      if (mine >= units.end) return;
      const int which = OwnTile<F, 1>::find(p, mine);
      const MatvecOut& o = p.args.outs[which];
      const int row = ((mine - p.first_tile[which]) << (5 - p.lanes_log2)) + sub;
      if (row < o.weight.rows) store_output(o, t, row, times(sum, inverse(t)));
    });
  }
}

// Side tiles, all of which have slots.
template <class Inverse>
__device__ __forceinline__ void multiply_sides_of_two(const MatvecPlan& p, const SideRoom& room,
                                                      const BlockSides& sides, int n_units, const uint8_t* slots,
                                                      uint64_t* arrived, const TwoRecords& two,
                                                      const Inverse& inverse) {
  for (int i = first_side_of_warp(n_units); sides.at(i) < p.all_tiles; i += kOneWarps) {
    const int tile = sides.at(i), which = find_side(p, tile);
    const MatvecOut& o = p.args.outs[which];
    simt::bulk_wait(arrived);
#pragma unroll 1
    for (int t = 0; t < 2; ++t) {
      near_side_tile(p, o, (tile - p.first_tile[which]) << (5 - p.side_lanes_log2),
                     slots + static_cast<uint32_t>(i) * room.slot_bytes, two.at(t), inverse(t), t);
    }
  }
}

// args.records is null where blocks make the records.
template <class F>
__global__ void CHIMERE_ONE_ROW staged_two_kernel(const __grid_constant__ StagedMatvecPlan staged) {
  const MatvecPlan& p = staged.plan;
  SIMT_SHARED(uint64_t, arrived, kStages);
  SIMT_SHARED(uint64_t, sides_arrived, 1);
  SIMT_SHARED(uint64_t, records_arrived, 1);
  auto* smem = simt::dynamic_shared<uint8_t>();
  uint8_t* records = smem + book_bytes<F>();
  const TwoRecords two{records, record_bytes(p.args.in.width)};
  uint8_t* weights = records + 2 * two.bytes;
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
    maker.make(2, records);
  } else if (simt::thread_id() == 0) {
    simt::bulk_begin(records_arrived);
    simt::bulk_copy(records, p.args.records, 2 * two.bytes, records_arrived);
    simt::bulk_end(records_arrived);
  }
  __syncthreads();
  if (p.args.records) simt::bulk_wait(records_arrived);
  const auto inverse = [&](int t) { return row_inverse(p.args.in, two.at(t)); };

  multiply_sides_of_two(p, staged.side, sides, units.size(), side_slots, sides_arrived, two, inverse);
  multiply_units_of_two<F>(p, units, weights, arrived, books, two, inverse);
}

template <class F>
Status launch_staged_two(const Stream& stream, const MatvecPlan& plan, const MatvecChoice& c) {
  const StagedMatvecPlan staged{
      plan, UnitSplit(plan.own_tiles, c.blocks), {c.side_slots, c.side_slot_bytes}, c.staged_bytes};
  return simt::launch(staged_two_kernel<F>,
                      {static_cast<unsigned>(c.blocks), kOneThreads, c.shared_bytes, stream, plan.args.dependent},
                      staged);
}

}  // namespace chimere::cuda
