// matvec_ring.h  matvec.cu for one row and matrices of which a block's share does not fit into its shared memory.
//
// A warp's weights come through slots in shared memory that bulk copies fill, issued before the wait for the previous
// kernel as far as there are slots: what is in flight is limited by shared memory and not by registers. The rest keeps
// the instruction count low: a slot holds several rows, so that copies, sums and stores are paid once for all of them;
// where a lane takes one pair of groups per row, the activations stay in registers; the projection is looked up only
// when a warp passes from one to the next.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/ring.h"
#include "backend/cuda/kernels/common/staged.h"
#include "backend/cuda/kernels/dense/matvec_device.h"

namespace chimere::cuda {

struct RingMatvecPlan {
  MatvecPlan plan;
  UnitSplit split;  // of the tiles of the kernel's own format; a slot holds one tile
  int slot_rows;
  uint32_t slot_bytes;
  int n_slots;
};

// Copies the tiles of a warp to its slots. By one lane.
struct TileSender {
  Weight weight;  // of the projection that is being copied
  ProjectionCursor at;
  int slot_rows;

  __device__ __forceinline__ explicit TileSender(const RingMatvecPlan& r)
      : weight(r.plan.args.outs[0].weight), at(r.plan), slot_rows(r.slot_rows) {}

  // If the last tile of a projection is incomplete, the missing rows are not copied.
  __device__ __forceinline__ void send(const MatvecPlan& p, int tile, const BulkSlots& slots, int to) {
    if (at.seek(p, tile)) weight = p.args.outs[at.which].weight;
    const int row = (tile - at.first) * slot_rows, n = min(slot_rows, weight.rows - row);
    uint64_t* counter = slots.counter(simt::warp_id(), to);
    simt::bulk_stream(slots.slot(simt::warp_id(), to), weight.row(0, row), static_cast<uint32_t>(n) * weight.row_bytes,
                      counter);
    simt::bulk_end(counter);
  }
};

// The tiles of a warp. A lane works on kR rows of a slot; of one row, 32 / lanes of them lie side by side. kHeld: of
// rows that HeldPair fits.
template <class F, int kR, bool kHeld>
__device__ __forceinline__ void multiply_ring(const MatvecPlan& p, const BlockUnits& tiles, const BulkSlots& slots,
                                              TileSender& sender, const CodeBooks& books, const uint8_t* record,
                                              float inverse) {
  const uint32_t G = row_groups(p.args.in.width), row_bytes = p.args.outs[0].weight.row_bytes;
  const int lanes = kR == 1 ? p.lanes() : 32, sub = kR == 1 ? simt::lane_id() >> p.lanes_log2 : 0;
  const auto lane = static_cast<uint32_t>(simt::lane_id() & (lanes - 1));
  const int mine = kR == 1 ? sub : simt::lane_id() / (32 / kR);  // the row of the slot that the lane ends with
  const bool stores = kR == 1 ? lane == 0 : simt::lane_id() % (32 / kR) == 0;
  HeldPair held;
  if (kHeld) held.load(record);
  ProjectionCursor at(p);
  MatvecOut o = p.args.outs[0];
  BulkTurn turn;
  for (int tile = tiles.first + simt::warp_id(); tile < tiles.end; tile += kDotWarps) {
    const SharedRow slot = turn.take(slots);
    float acc[kR] = {};
    if constexpr (kHeld) {
#pragma unroll
      for (int r = 0; r < kR; ++r) {
        acc[r] = held.template add<F>({slot.at + r * F::row_bytes(HeldPair::kGroups)}, books, 0.0f);
      }
    } else if constexpr (kR == 2) {
      const SharedRow rows[2] = {slot, {slot.at + row_bytes}};
      for (uint32_t pair = lane; pair < G / 2; pair += 32u) {
        add_staged_pairs<F>(rows, G, pair, books, record, G, 0, acc);
      }
    } else {
      const SharedRow row{slot.at + static_cast<uint32_t>(sub) * row_bytes};
      for (uint32_t pair = lane; pair < G / 2; pair += static_cast<uint32_t>(lanes)) {
        acc[0] = add_staged_pair<F>(row, G, pair, books, record, G, 0, acc[0]);
      }
    }
    if (const int next = tile + slots.n_slots * kDotWarps; next < tiles.end) {
      turn.refill(slots, [&](int to) { sender.send(p, next, slots, to); });
    }
    turn.advance(slots);
    if constexpr (kR == 1) {
      acc[0] = lane_sum(acc[0], lanes);
    } else {
      scatter_sums<32>(acc);
    }
    if (at.seek(p, tile)) o = p.args.outs[at.which];
    const int row = (tile - at.first) * sender.slot_rows + mine;
    if (stores && row < o.weight.rows) store_output(o, 0, row, times(acc[0], inverse));
  }
}

template <class F>
__global__ void __launch_bounds__(kDotThreads, 2) ring_matvec_kernel(const __grid_constant__ RingMatvecPlan ringed) {
  const MatvecPlan& p = ringed.plan;
  SIMT_SHARED(uint64_t, arrived, kDotWarps * kMostRingSlots);
  auto* smem = simt::dynamic_shared<uint8_t>();
  uint8_t* record = smem + book_bytes<F>();
  const BlockUnits tiles(ringed.split, static_cast<int>(blockIdx.x));
  const BulkSlots slots{record + record_bytes(p.args.in.width), arrived, ringed.slot_bytes, ringed.n_slots};
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
  const int64_t in_row = p.args.in.gather ? p.args.in.gather[0] : 0;
  const float inverse = stage_one(p.args.in, in_row, norms, load_row<4>(p.args.in, in_row), p.quantise, record);

  if (p.lanes_log2 < 5) {
    multiply_ring<F, 1, false>(p, tiles, slots, sender, books, record, inverse);
  } else if (!HeldPair::fits(p.args.in.width)) {
    multiply_ring<F, 2, false>(p, tiles, slots, sender, books, record, inverse);
  } else if (sender.slot_rows == 2) {
    multiply_ring<F, 2, true>(p, tiles, slots, sender, books, record, inverse);
  } else {
    multiply_ring<F, 4, true>(p, tiles, slots, sender, books, record, inverse);
  }
  // Rows in another format are few.
  for (int tile = p.own_tiles + static_cast<int>(blockIdx.x) * kDotWarps + simt::warp_id(); tile < p.all_tiles;
       tile += static_cast<int>(gridDim.x) * kDotWarps) {
    side_tile(p, tile, 0, 1, record, [inverse](int) { return inverse; });
  }
}

template <class F>
Status launch_ring(const Stream& stream, const MatvecPlan& plan, const MatvecChoice& c) {
  const RingMatvecPlan ringed{plan, UnitSplit(plan.own_tiles, c.blocks), c.tile_rows,
                              static_cast<uint32_t>(c.tile_rows) * plan.args.outs[0].weight.row_bytes, c.n_slots};
  return simt::launch(ring_matvec_kernel<F>,
                      {static_cast<unsigned>(c.blocks), kDotThreads, c.shared_bytes, stream, plan.args.dependent},
                      ringed);
}

}  // namespace chimere::cuda
