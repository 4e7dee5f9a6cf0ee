// matvec_staged_rows.h   matvec.cu for 2 to 8 rows on the tensor cores, where a block's share of the weights fits into
//           its shared memory: the step of a few streams, or of a draft that is checked, for little more than one row
// Shapes    as matvec.cu; widths of an even number of groups, at least eight lanes a row and eight pairs of groups; rows
//           of another format are of Q8_0
// Bytes     the weights once, by bulk copies that begin before the wait for the previous kernel; 4 * width * n_rows a
//           block for the activations, from the L2 cache. Q5_K [12352, 2048]: 17.8 MB, 4.6 us of an H200's memory
// Launch    a block of 16 warps per SM and 64 registers a thread, so that one of the kernel before and one of this find
//           room together. A block takes neighbouring tiles of 16 weight rows; a warp takes parts of tiles: all pairs of
//           groups that some of a row's lanes would take (matvec_device.h), so that five or six tiles occupy 16 warps
// Smem      the records of the rows (2.6 KB for 2048 elements), the weights, rows padded to an odd number of 16-byte
//           pieces, and slots for rows of Q8_0 beside them. The sums of a part of a tile lie where the codes of its
//           first pair were: nobody else reads those, so tiles need no barrier of their own, and there is one in all
// Work      about 108 instructions for 16 x 64 weights and eight columns, where the kernel for one row has 50 for 32 x
//           32 and one: Q5_K [12352, 2048] 2.7 us instead of 1.3, most of it while the last weights arrive. dp4a would
//           be cheaper for two rows, equal for four and dearer from five on
// Numerics  the bits of matvec.cu for one row. There, lane l of `lanes` adds up pairs of groups l, l + lanes, .. and a
//           butterfly of steps lanes / 2 .. 1 makes the whole. Here part w of 8 or 16 takes the lanes w, w + parts, ..
//           one after the other and makes the steps from `parts` on in registers; the others are made over the parts
// Measured  H200, Q5_K [12352, 2048] in a step: 13.8 us for 2 rows, 14.9 for 4, 16.8 for 8 (before 12.0, 15.6, 22.9);
//           Q5_K [2048, 4096]: 7.0, 9.7, 8.4 with a launch that quantises (before 7.9, 12.1, 9.5). Twice what the bytes
//           take and more: most of it is not the memory
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/staged.h"
#include "backend/cuda/kernels/dense/matvec_device.h"
#include "backend/cuda/kernels/dense/matvec_rows.h"
#include "backend/cuda/kernels/dense/matvec_side.h"
#include "backend/cuda/kernels/dense/row_maker.h"

namespace chimere::cuda {

struct StagedRowsPlan {
  MatvecPlan plan;  // tiles of 16 rows; args.records is null where blocks make the records
  UnitSplit split;  // of tiles among the blocks
  SideRoom side;
  uint32_t stride;                   // of a weight row in shared memory
  uint32_t weights_at, side_offset;  // behind the records, and behind the weights
  int parts_log2;                    // of a tile: 3 or 4

  CHIMERE_BOTH int parts() const { return 1 << parts_log2; }
  CHIMERE_BOTH uint32_t tile_bytes() const { return kTileRows * stride; }
};

// The lanes of a warp issue the copies of a tile's rows: one copy where rows lie as they did. Rows past the end of a
// matrix are not copied: what lies in their place is multiplied and not stored.
__device__ __forceinline__ void send_for_rows(const StagedRowsPlan& r, int tile, uint8_t* to, uint64_t* arrived) {
  const MatvecPlan& p = r.plan;
  const int which = projection_of(p, tile), lane = simt::lane_id();
  const Weight& w = p.args.outs[which].weight;
  const int row = (tile - p.first_tile[which]) * kTileRows, n = min(kTileRows, w.rows - row);
  if (lane == 0) simt::bulk_begin(arrived);
  __syncwarp();
  if (r.stride == w.row_bytes) {
    if (lane == 0) simt::bulk_stream(to, w.row(0, row), static_cast<uint32_t>(n) * w.row_bytes, arrived);
  } else if (lane < n) {
    simt::bulk_stream(to + static_cast<uint32_t>(lane) * r.stride, w.row(0, row + lane), w.row_bytes, arrived);
  }
  __syncwarp();
  if (lane == 0) simt::bulk_end(arrived);
}

// What a lane reads of the records: its column of the products, and the scales of the two that its sums are of. Columns
// past the last row repeat it. Offsets: pointers would take the registers that the products need.
template <class F>
struct Columns {
  const uint8_t* records;
  uint32_t words, left, right;

  __device__ __forceinline__ Columns(const uint8_t* records, int width, int n) : records(records) {
    const int lane = simt::lane_id(), q = lane % 4;
    const uint32_t bytes = record_bytes(width), G = row_groups(width);
    const auto record = [&](int t) { return static_cast<uint32_t>(min(t, n - 1)) * bytes; };
    words = record(lane / 4) + (F::kNatural ? q / 2 * 16u * G + q % 2 * 8u : 4u * static_cast<uint32_t>(q));
    left = record(2 * q) + 32u * G;
    right = record(2 * q + 1) + 32u * G;
  }
  // The lane's words of group 2 pair + half (weights/quarters.h).
  __device__ __forceinline__ uint2 quarter(uint32_t G, uint32_t pair, uint32_t half) const {
    const uint8_t* at = records + (words + 16u * pair + 8u * G * half);
    if constexpr (F::kNatural) return *reinterpret_cast<const uint2*>(at);
    return make_uint2(*reinterpret_cast<const uint32_t*>(at), *reinterpret_cast<const uint32_t*>(at + 16u * G));
  }
  // { scale, scale * sum } of both groups of a pair.
  __device__ __forceinline__ float4 scales(uint32_t column, uint32_t pair) const {
    return *reinterpret_cast<const float4*>(records + (column + 16u * pair));
  }
};

// sums + the products of a pair of groups of the tile's rows, lane / 4 and the eighth behind it, with two columns.
template <class F>
__device__ __forceinline__ void add_columns(const uint8_t* tile, uint32_t stride, uint32_t G, uint32_t pair,
                                            const Columns<F>& columns, float (&sums)[4]) {
  const auto lane = static_cast<uint32_t>(simt::lane_id());
  const uint8_t* row = tile + lane / 4u * stride;
  Group upper[2], lower[2];
  F::load_quarters(SharedRow{row}, G, pair, lane % 4u, upper);
  F::load_quarters(SharedRow{row + 8u * stride}, G, pair, lane % 4u, lower);
  const float4 left = columns.scales(columns.left, pair), right = columns.scales(columns.right, pair);
  const uint2 first = columns.quarter(G, pair, 0), second = columns.quarter(G, pair, 1);
  add_fragment<F::kScales, F::kMins>(upper[0], lower[0], first.x, first.y, make_float2(left.x, left.y),
                                     make_float2(right.x, right.y), sums);
  add_fragment<F::kScales, F::kMins>(upper[1], lower[1], second.x, second.y, make_float2(left.z, left.w),
                                     make_float2(right.z, right.w), sums);
}

// Where the sums of a part of a tile lie: eight columns of each weight row, in place of 32 bytes of codes.
__device__ __forceinline__ float2* part_sums(uint8_t* tile, uint32_t stride, int part, int row) {
  return reinterpret_cast<float2*>(tile + static_cast<uint32_t>(row) * stride + 32u * static_cast<uint32_t>(part)) +
         simt::lane_id() % 4;
}

// A part of a tile, which has arrived. kGroups: of a row, or 0 where only the plan knows.
template <class F, uint32_t kGroups>
__device__ __forceinline__ void multiply_part(const StagedRowsPlan& r, uint8_t* tile, int part,
                                              const Columns<F>& columns) {
  const uint32_t G = kGroups > 0 ? kGroups : row_groups(r.plan.args.in.width);
  const uint32_t lanes = kGroups > 0 ? lanes_per_row(kGroups / 2) : static_cast<uint32_t>(r.plan.lanes());
  const int n_sets = static_cast<int>(lanes) >> r.parts_log2;  // lanes that the part stands for: 1, 2 or 4
  float both[4] = {};                                          // of two lanes
#pragma unroll 1
  for (int turn = 0; turn < n_sets; ++turn) {
    // Of four, lanes l and l + 2 parts come first: sums are merged as soon as they are there.
    const int set = n_sets == 4 ? turn % 2 * 2 + turn / 2 : turn;
    float sum[4] = {};
#pragma unroll 1
    for (auto pair = static_cast<uint32_t>(part + (set << r.parts_log2)); pair < G / 2; pair += lanes) {
      add_columns<F>(tile, r.stride, G, pair, columns, sum);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) both[i] = turn % 2 == 0 ? sum[i] : both[i] + sum[i];
    if (turn % 2 == 0 && n_sets > 1) continue;
    const int row = simt::lane_id() / 4;
    float2 *upper = part_sums(tile, r.stride, part, row), *lower = part_sums(tile, r.stride, part, row + 8);
    if (turn == 3) {
      both[0] += upper->x, both[1] += upper->y;
      both[2] += lower->x, both[3] += lower->y;
    }
    __syncwarp();  // the codes of the part's first pair have been read
    *upper = make_float2(both[0], both[1]);
    *lower = make_float2(both[2], both[3]);
  }
}

// The parts that a warp takes of the n_units of a block.
template <class F, uint32_t kGroups>
__device__ __forceinline__ void multiply_parts(const StagedRowsPlan& r, uint8_t* tiles, int n_units, uint64_t* arrived,
                                               const Columns<F>& columns) {
#pragma unroll 1
  for (int unit = simt::warp_id(); unit < n_units; unit += kOneWarps) {
    const int i = unit >> r.parts_log2;
    simt::bulk_wait(arrived + i);
    multiply_part<F, kGroups>(r, tiles + static_cast<uint32_t>(i) * r.tile_bytes(), unit & (r.parts() - 1), columns);
  }
}

// The outputs of a tile of which all parts are multiplied, by one warp: a lane has two columns of two weight rows.
template <class Inverse>
__device__ __forceinline__ void store_tile(const StagedRowsPlan& r, int tile, uint8_t* at, const Inverse& inverse) {
  const MatvecPlan& p = r.plan;
  const int lane_row = simt::lane_id() / 4, column = simt::lane_id() % 4 * 2;
  const auto sums_of = [&](int part) {
    const float2 a = *part_sums(at, r.stride, part, lane_row), b = *part_sums(at, r.stride, part, lane_row + 8);
    return make_float4(a.x, a.y, b.x, b.y);
  };
  float4 of[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    of[i] = sums_of(i);
    if (r.parts_log2 == 4) of[i] = plus(of[i], sums_of(i + 8));
  }
#pragma unroll
  for (int step = 4; step > 0; step /= 2) {
#pragma unroll
    for (int i = 0; i < step; ++i) of[i] = plus(of[i], of[i + step]);
  }
  const int which = projection_of(p, tile), first = (tile - p.first_tile[which]) * kTileRows + lane_row;
  const MatvecOut& o = p.args.outs[which];
  const float results[4] = {of[0].x, of[0].y, of[0].z, of[0].w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = first + i / 2 * 8, t = column + i % 2;
    if (row < o.weight.rows && t < p.args.n_rows) store_output(o, t, row, times(results[i], inverse(t)));
  }
}

// The block's rows of Q8_0 beside the kernel's format: a tile and a row of activations at a time, with which the warps go
// on behind the n_units parts that they take in turn.
template <class Inverse>
__device__ __forceinline__ void multiply_side_rows(const StagedRowsPlan& r, const BlockSides& sides, int n_units,
                                                   const uint8_t* slots, uint64_t* arrived, const uint8_t* records,
                                                   const Inverse& inverse) {
  const MatvecPlan& p = r.plan;
  const int n = p.args.n_rows;
  for (int unit = first_side_of_warp(n_units); unit < r.side.n_slots * n; unit += kOneWarps) {
    const int i = unit / n, t = unit % n, tile = sides.at(i);
    if (tile >= p.all_tiles) break;
    const int which = find_side(p, tile);
    simt::bulk_wait(arrived);
    near_side_tile(p, p.args.outs[which], (tile - p.first_tile[which]) << (5 - p.side_lanes_log2),
                   slots + static_cast<uint32_t>(i) * r.side.slot_bytes,
                   records + static_cast<uint32_t>(t) * record_bytes(p.args.in.width), inverse(t), t);
  }
}

template <class F>
__global__ void CHIMERE_ONE_ROW staged_rows_kernel(const __grid_constant__ StagedRowsPlan r) {
  const MatvecPlan& p = r.plan;
  SIMT_SHARED(uint64_t, arrived, kMaxStagedTiles);
  SIMT_SHARED(uint64_t, sides_arrived, 1);
  SIMT_SHARED(uint64_t, records_arrived, 1);
  auto* records = simt::dynamic_shared<uint8_t>();
  uint8_t* weights = records + r.weights_at;
  uint8_t* side_slots = weights + r.side_offset;
  const BlockUnits tiles(r.split, static_cast<int>(blockIdx.x));
  const int n_units = tiles.size() << r.parts_log2;
  const auto tile_at = [&](int i) { return weights + static_cast<uint32_t>(i) * r.tile_bytes(); };

  // Weights do not depend on the previous kernel: they are copied while it ends. One warp sends for all of them, so that
  // tiles arrive in the order in which they are multiplied.
  for (int i = 0; simt::warp_id() == 0 && i < tiles.size(); ++i) {
    send_for_rows(r, tiles.first + i, tile_at(i), arrived + i);
  }
  const BlockSides sides(p);
  if (simt::thread_id() == kOneThreads - 32) send_for_sides(p, r.side, sides, side_slots, sides_arrived);
  const RowMaker maker(p.args.in);
  simt::wait_for_previous();
  simt::allow_next();
  if (!p.args.records) {
    maker.make(p.args.n_rows, records);
  } else if (simt::thread_id() == 0) {
    simt::bulk_begin(records_arrived);
    simt::bulk_copy(records, p.args.records, static_cast<uint32_t>(p.args.n_rows) * record_bytes(p.args.in.width),
                    records_arrived);
    simt::bulk_end(records_arrived);
  }
  __syncthreads();
  if (p.args.records) simt::bulk_wait(records_arrived);
  const auto inverse = [&](int t) {
    return row_inverse(p.args.in, records + static_cast<uint32_t>(t) * record_bytes(p.args.in.width));
  };

  multiply_side_rows(r, sides, n_units, side_slots, sides_arrived, records, inverse);
  const Columns<F> columns(records, p.args.in.width, p.args.n_rows);
  if (HeldPair::fits(p.args.in.width)) {
    multiply_parts<F, HeldPair::kGroups>(r, weights, n_units, arrived, columns);
  } else {
    multiply_parts<F, 0>(r, weights, n_units, arrived, columns);
  }
  __syncthreads();
  for (int i = simt::warp_id(); i < tiles.size(); i += kOneWarps) store_tile(r, tiles.first + i, tile_at(i), inverse);
}

template <class F>
Status launch_staged_rows(const Stream& stream, const MatvecPlan& plan, const MatvecChoice& c) {
  const MatvecArgs& a = plan.args;
  const StagedRowsPlan rows{plan,
                            UnitSplit(plan.own_tiles, c.blocks),
                            {c.side_slots, c.side_slot_bytes},
                            padded_row(a.outs[0].weight.row_bytes),
                            static_cast<uint32_t>(a.n_rows) * record_bytes(a.in.width),
                            c.staged_bytes,
                            log2_of(c.parts)};
  return simt::launch(staged_rows_kernel<F>,
                      {static_cast<unsigned>(c.blocks), kOneThreads, c.shared_bytes, stream, a.dependent}, rows);
}

}  // namespace chimere::cuda
