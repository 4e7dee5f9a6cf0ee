// matvec_ring_two.h   matvec_ring.h for two rows: the head of two streams, or of a draft of one token
// Shapes    as matvec.cu; 32 lanes a row
// Launch    that of matvec_ring.h. A slot holds two weight rows; unpacked weights serve both rows of activations, which
//           are read from shared memory for both weight rows at once
// Numerics  the bits of matvec.cu for one row
// Measured  H200, Q6_K [248320, 2048]: 128 us (through registers 160)
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/dense/matvec_ring.h"
#include "backend/cuda/kernels/dense/matvec_staged_two.h"

namespace chimere::cuda {

// The tiles of a warp.
template <class F, class Inverse>
__device__ __forceinline__ void multiply_ring_of_two(const MatvecPlan& p, const BlockUnits& tiles,
                                                     const BulkSlots& slots, TileSender& sender, const CodeBooks& books,
                                                     const TwoRecords& two, const Inverse& inverse) {
  const uint32_t G = row_groups(p.args.in.width), row_bytes = p.args.outs[0].weight.row_bytes;
  const auto lane = static_cast<uint32_t>(simt::lane_id());
  const int mine = simt::lane_id() / 16;  // the row of the slot that the lane ends with
  const float inverses[2] = {inverse(0), inverse(1)};
  ProjectionCursor at(p);
  MatvecOut o = p.args.outs[0];
  BulkTurn turn;
  for (int tile = tiles.first + simt::warp_id(); tile < tiles.end; tile += kDotWarps) {
    const SharedRow slot = turn.take(slots);
    const SharedRow rows[2] = {slot, {slot.at + row_bytes}};
    float acc[4] = {};
    for (uint32_t pair = lane; pair < G / 2; pair += 32u) add_two_pairs<F>(rows, G, pair, books, two, acc);
    if (const int next = tile + slots.n_slots * kDotWarps; next < tiles.end) {
      turn.refill(slots, [&](int to) { sender.send(p, next, slots, to); });
    }
    turn.advance(slots);
    const float first = two_lane_sums(acc[0], acc[2], 32), second = two_lane_sums(acc[1], acc[3], 32);
    if (at.seek(p, tile)) o = p.args.outs[at.which];
    const int row = (tile - at.first) * 2 + mine;
    if (simt::lane_id() % 16 != 0 || row >= o.weight.rows) continue;
    store_output(o, 0, row, times(first, inverses[0]));
    store_output(o, 1, row, times(second, inverses[1]));
  }
}

template <class F>
__global__ void __launch_bounds__(kDotThreads, 2) ring_two_kernel(const __grid_constant__ RingMatvecPlan ringed) {
  const MatvecPlan& p = ringed.plan;
  SIMT_SHARED(uint64_t, arrived, kDotWarps * kMostRingSlots);
  auto* smem = simt::dynamic_shared<uint8_t>();
  uint8_t* records = smem + book_bytes<F>();
  const TwoRecords two{records, record_bytes(p.args.in.width)};
  const BlockUnits tiles(ringed.split, static_cast<int>(blockIdx.x));
  const BulkSlots slots{records + 2 * two.bytes, arrived, ringed.slot_bytes, ringed.n_slots};
  TileSender sender(ringed);
  slots.open();
  if (simt::lane_id() == 0) {
    int tile = tiles.first + simt::warp_id();
    for (int i = 0; i < slots.n_slots && tile < tiles.end; ++i, tile += kDotWarps) sender.send(p, tile, slots, i);
  }
  __syncwarp();
  const CodeBooks books = open_books<F>(p.args.outs[0].weight.grids, smem);
  const NormAhead norms = load_norm(p.args.in);
  simt::wait_for_previous();
  simt::allow_next();
  stage_records(p.args.in, norms, p.args.records, 0, 2, p.quantise, records);
  const auto inverse = [&](int t) {
    return stored_inverse(records + static_cast<uint32_t>(t) * record_bytes(p.args.in.width), p.args.in.width);
  };
  multiply_ring_of_two<F>(p, tiles, slots, sender, books, two, inverse);
  // Rows in another format are few.
  for (int tile = p.own_tiles + static_cast<int>(blockIdx.x) * kDotWarps + simt::warp_id(); tile < p.all_tiles;
       tile += static_cast<int>(gridDim.x) * kDotWarps) {
    side_tile(p, tile, 0, 2, records, inverse);
  }
}

template <class F>
Status launch_ring_two(const Stream& stream, const MatvecPlan& plan, const MatvecChoice& c) {
  const RingMatvecPlan ringed{plan, UnitSplit(plan.own_tiles, c.blocks), c.tile_rows,
                              static_cast<uint32_t>(c.tile_rows) * plan.args.outs[0].weight.row_bytes, c.n_slots};
  return simt::launch(ring_two_kernel<F>,
                      {static_cast<unsigned>(c.blocks), kDotThreads, c.shared_bytes, stream, plan.args.dependent},
                      ringed);
}

}  // namespace chimere::cuda
