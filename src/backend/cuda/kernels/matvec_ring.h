// matvec_ring.h  matvec.cu for one row and matrices of which a block's share does not fit into its shared memory.
//
// A warp's weights come through a ring of slots (ring.h), sent for before the wait for the previous kernel as far as
// there are slots. What is under way is then a matter of shared memory and not of registers, whatever the width is.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/matvec_device.h"
#include "backend/cuda/kernels/ring.h"
#include "backend/cuda/kernels/staged.h"

namespace chimere::cuda {

struct RingMatvecPlan {
  MatvecPlan plan;
  UnitSplit split;  // of the tiles of the kernel's own format: what a slot holds
  uint32_t slot_bytes;
  int n_slots;
};

// Rows of a slot: two where a warp works on one row, so that the activations are read once for both, else those that it
// works on side by side.
CHIMERE_BOTH constexpr int ring_slot_rows(int lanes_log2) { return lanes_log2 == 5 ? 2 : 32 >> lanes_log2; }

template <class F>
__global__ void __launch_bounds__(kDotThreads, 2) ring_matvec_kernel(const __grid_constant__ RingMatvecPlan ringed) {
  const MatvecPlan& p = ringed.plan;
  auto* shared = simt::dynamic_shared<uint8_t>();
  uint8_t* record = shared + book_bytes<F>();
  const BlockUnits tiles(ringed.split, static_cast<int>(blockIdx.x));
  const int slot_rows = ring_slot_rows(p.lanes_log2);
  const auto find = [&p](int tile) { return OwnTile<F, 1>::find(p, tile); };

  WarpRing ring(record + record_bytes(p.args.in.width), ringed.slot_bytes, ringed.n_slots);
  int next = tiles.first + simt::warp_id();
  const auto send_next = [&] {
    if (next < tiles.end) {
      const int which = find(next);
      const Weight& w = p.args.outs[which].weight;
      // Of a projection whose last tile is not whole, what is missing is not copied.
      const int row = (next - p.first_tile[which]) * slot_rows, n = min(slot_rows, w.rows - row);
      ring.send(0, w.row(0, row), static_cast<uint32_t>(n) * w.row_bytes);
    }
    ring.close();
    next += kDotWarps;
  };
  for (int i = 0; i < ringed.n_slots; ++i) send_next();
  const CodeBooks books = open_books<F>(p.args.outs[0].weight.grids, shared);
  const NormAhead norms = load_norm(p.args.in);
  simt::wait_for_previous();
  simt::allow_next();
  const int64_t in_row = p.args.in.gather ? p.args.in.gather[0] : 0;
  const float inverse = stage_one(p.args.in, in_row, norms, load_row<4>(p.args.in, in_row), p.quantise, record);

  const uint32_t G = row_groups(p.args.in.width), row_bytes = p.args.outs[0].weight.row_bytes;
  const int lanes = p.lanes(), sub = simt::lane_id() >> p.lanes_log2;
  const auto lane = static_cast<uint32_t>(simt::lane_id() & (lanes - 1));
  const bool two_rows = p.lanes_log2 == 5;
  const int mine = two_rows ? simt::lane_id() >> 4 : sub;  // the row of the slot that the lane ends with
  const bool stores = two_rows ? simt::lane_id() % 16 == 0 : lane == 0;
  for (int tile = tiles.first + simt::warp_id(); tile < tiles.end; tile += kDotWarps) {
    const SharedRow slot = ring.take();
    float acc[2] = {};
    if (two_rows) {
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
    ring.release();
    send_next();
    const float sum = times(two_rows ? two_lane_sums(acc[0], acc[1], 32) : lane_sum(acc[0], lanes), inverse);
    const int which = find(tile);
    const MatvecOut& o = p.args.outs[which];
    const int row = (tile - p.first_tile[which]) * slot_rows + mine;
    if (stores && row < o.weight.rows) store_output(o, 0, row, sum);
  }
  // What has another format is little.
  for (int tile = p.own_tiles + static_cast<int>(blockIdx.x) * kDotWarps + simt::warp_id(); tile < p.all_tiles;
       tile += static_cast<int>(gridDim.x) * kDotWarps) {
    side_tile(p, tile, 0, 1, record, [inverse](int) { return inverse; });
  }
}

// False where there is too little for every warp to go round its ring, or a ring finds no room; the plan is then of
// no use.
template <class F>
bool plan_ring(RingMatvecPlan& ringed, int& blocks, size_t& shared) {
  MatvecPlan& plan = ringed.plan;
  const MatvecArgs& a = plan.args;
  if (a.n_rows != 1) return false;
  const int slot_rows = ring_slot_rows(plan.lanes_log2);
  const size_t fixed = book_bytes<F>() + record_bytes(a.in.width);
  ringed.slot_bytes = static_cast<uint32_t>(slot_rows) * a.outs[0].weight.row_bytes;
  const RingRoom room(fixed, ringed.slot_bytes, kDotWarps);
  int own = 0;
  for (int i = 0; i < plan.n_own; ++i) own += simt::div_up(a.outs[i].weight.rows, slot_rows);
  blocks = a.n_sms * room.blocks;
  if (room.blocks == 0 || own < blocks * kDotWarps * room.slots) return false;
  ringed.n_slots = room.slots;
  ringed.split = UnitSplit(own, blocks);
  shared = fixed + static_cast<size_t>(room.slots * kDotWarps) * ringed.slot_bytes;
  number_tiles(plan, slot_rows);
  return true;
}

template <class F>
Status launch_ring_or_not(const Stream& stream, MatvecPlan& plan) {
  RingMatvecPlan ringed{plan, {}, 0, 0};
  int blocks = 0;
  size_t shared = 0;
  if (!plan_ring<F>(ringed, blocks, shared)) return launch_matvec<F>(stream, plan);
  return simt::launch(ring_matvec_kernel<F>,
                      {static_cast<unsigned>(blocks), kDotThreads, shared, stream, plan.args.dependent}, ringed);
}

}  // namespace chimere::cuda
