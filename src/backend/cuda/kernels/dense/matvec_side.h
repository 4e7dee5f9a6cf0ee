// matvec_side.h  In the staged kernels: the few weight rows in another format than the kernel's own.
//
// Usually a handful of Q8_0 rows beside a layer's projections. Their weights are copied like all others and their
// products are inlined; a row through side_tile would take longer than a warp's whole share of the others. Side tiles
// continue the distribution of units: after the last unit of a block the next warp takes its first side tile, and the
// last blocks, which have one unit less than the first, get side tiles before the others.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/staged.h"
#include "backend/cuda/kernels/dense/matvec_device.h"

namespace chimere::cuda {

// What the launcher found room for: the first n_slots side tiles of a block are copied where they are of Q8_0.
struct SideRoom {
  int n_slots = 0;
  uint32_t slot_bytes = 0;
};

// The side tiles of a block: its i-th is at(i).
struct BlockSides {
  int first;

  __device__ __forceinline__ explicit BlockSides(const MatvecPlan& p)
      : first(p.own_tiles + static_cast<int>(gridDim.x - 1 - blockIdx.x)) {}
  __device__ __forceinline__ int at(int i) const { return first + i * static_cast<int>(gridDim.x); }
};

// One lane sends for them.
__device__ __forceinline__ void send_for_sides(const MatvecPlan& p, const SideRoom& room, const BlockSides& sides,
                                               uint8_t* slots, uint64_t* arrived) {
  simt::bulk_begin(arrived);
  for (int i = 0; i < room.n_slots && sides.at(i) < p.all_tiles; ++i) {
    const int which = find_side(p, sides.at(i));
    const Weight& w = p.args.outs[which].weight;
    if (w.type != DType::Q8_0) continue;
    // Of a projection whose last tile is not whole, what is missing is not copied.
    const int per_tile = 32 >> p.side_lanes_log2, row = (sides.at(i) - p.first_tile[which]) * per_tile;
    simt::bulk_stream(slots + static_cast<uint32_t>(i) * room.slot_bytes, w.row(0, row),
                      static_cast<uint32_t>(min(per_tile, w.rows - row)) * w.row_bytes, arrived);
  }
  simt::bulk_end(arrived);
}

// side_tile for Q8_0 in a slot and row t of the activations, bit for bit.
__device__ __forceinline__ void near_side_tile(const MatvecPlan& p, const MatvecOut& o, int first_row,
                                               const uint8_t* slot, const uint8_t* record, float inverse, int t = 0) {
  const int lanes = 1 << p.side_lanes_log2, sub = simt::lane_id() >> p.side_lanes_log2, row = first_row + sub;
  const uint32_t G = row_groups(p.args.in.width);
  const SharedRow weights{slot + static_cast<uint32_t>(row < o.weight.rows ? sub : 0) * o.weight.row_bytes};
  float acc = 0.0f;
  for (uint32_t g = simt::lane_id() & (lanes - 1); g < G; g += lanes) {
    Group w;
    format::Q8_0::unpack(format::Q8_0::load(weights, G, g), {}, w);
    w.scale[1] = w.scale[0];
    acc = add_group<2, 0>(w, load_act(record, G, g), acc);
  }
  const float sum = lane_sum(times(acc, inverse), lanes);
  if (simt::lane_id() % lanes == 0 && row < o.weight.rows) store_output(o, t, row, sum);
}

// The warp's share of a block's side tiles, whose warps have taken n_units units in turn.
__device__ __forceinline__ int first_side_of_warp(int n_units) { return (simt::warp_id() - n_units) & (kOneWarps - 1); }
static_assert((kOneWarps & (kOneWarps - 1)) == 0);

// Prefetches the warp's tiles that have no slot to the L2 cache.
__device__ __forceinline__ void prefetch_sides(const MatvecPlan& p, const SideRoom& room, const BlockSides& sides,
                                               int n_units) {
  for (int i = first_side_of_warp(n_units); sides.at(i) < p.all_tiles; i += kOneWarps) {
    const bool has_slot = i < room.n_slots && p.args.outs[find_side(p, sides.at(i))].weight.type == DType::Q8_0;
    if (!has_slot) prefetch_side_tile(p, sides.at(i));
  }
}

__device__ __forceinline__ void multiply_sides(const MatvecPlan& p, const SideRoom& room, const BlockSides& sides,
                                               int n_units, const uint8_t* slots, uint64_t* arrived,
                                               const uint8_t* record, float inverse) {
  for (int i = first_side_of_warp(n_units); sides.at(i) < p.all_tiles; i += kOneWarps) {
    const int tile = sides.at(i), which = find_side(p, tile);
    const MatvecOut& o = p.args.outs[which];
    if (i < room.n_slots && o.weight.type == DType::Q8_0) {
      simt::bulk_wait(arrived);
      near_side_tile(p, o, (tile - p.first_tile[which]) << (5 - p.side_lanes_log2),
                     slots + static_cast<uint32_t>(i) * room.slot_bytes, record, inverse);
    } else {
      side_tile(p, tile, 0, 1, record, [inverse](int) { return inverse; });
    }
  }
}

}  // namespace chimere::cuda
