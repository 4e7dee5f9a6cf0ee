// matvec_rows.h  matvec.cu for many rows: products of bytes on the tensor cores.
//
// A block holds the quantised activations of a pass, up to 32 rows, in shared memory and walks over tiles of 16 weight
// rows. The tiles come by bulk copies into a ring of slots, the first of them before the kernel before has ended. Two
// teams of eight warps take a tile each; the warps of a team share its columns.
//
// A row's bits are those of the row alone. There, lane l of `lanes` adds up pairs of groups l, l + lanes, .. and a
// butterfly of steps lanes / 2 .. 1 makes the whole. Here warp w of a team takes the pairs of lanes w, w + 8, w + 16
// and w + 24, one lane after the other, and makes the steps 16 and 8 in registers; the steps 4, 2 and 1 are made over
// the sums of the eight warps in shared memory. So there have to be at least eight lanes. Where a block has a single
// tile, both teams take it: one the lanes whose bit 3 is clear, the other the rest, and step 8 is made with the others.
//
// Activations are stored in tensor-core order: by pass, then by pair of groups, then by column tile (eight rows), each
// 640 bytes:
//     32 x 16 bytes   for lane 4 c + q: the words of column c that belong to quarter q (weights/quarters.h), two of the
//                     first group, two of the second
//     8 x 16 bytes    of column c: { scale, scale * sum of the bytes } of the first group, and of the second
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/staged.h"
#include "backend/cuda/kernels/dense/matvec_device.h"

namespace chimere::cuda {

inline constexpr int kLaneSets = 4;  // sets of one-row lanes that a warp stands for, at most

struct RowsPlan {
  MatvecPlan plan;                     // tiles of 16 rows
  UnitSplit split;                     // of tiles among the blocks of a pass
  const uint8_t* fragments = nullptr;  // [n_passes][pairs][pass_tiles] of kPairBytes
  const float* inverses = nullptr;     // [n_rows], 1 / rms
  int pass_tiles = 0;                  // column tiles of a pass
  int n_slots = 0;
  bool together = false;               // both teams work on the same tile
  uint32_t stride = 0;                 // of a weight row in a slot
  uint32_t slots_at = 0, sums_at = 0;  // in shared memory, behind the activations

  CHIMERE_BOTH uint32_t pair_bytes() const { return static_cast<uint32_t>(pass_tiles) * kPairBytes; }
};

// Sets of pairs in the order in which a warp takes them, so that sums can be merged as soon as they are ready.
__device__ __forceinline__ int lane_set(int turn, int lanes_log2) {
  return lanes_log2 == 5 ? turn % 2 * 2 + turn / 2 : turn;
}

__device__ __forceinline__ int projection_of(const MatvecPlan& p, int tile) {
  int which = 0;
  while (which + 1 < p.n_own && tile >= p.first_tile[which + 1]) ++which;
  return which;
}

// The lanes of a warp issue the copies of a tile's rows. Rows past the end of a matrix are not copied: what the slot
// holds in their place is multiplied and not stored.
__device__ __forceinline__ void send_for_tile(const RowsPlan& r, int tile, uint8_t* slot, uint64_t* arrived) {
  const MatvecPlan& p = r.plan;
  const int which = projection_of(p, tile), lane = simt::lane_id();
  const Weight& w = p.args.outs[which].weight;
  const int row = (tile - p.first_tile[which]) * kTileRows + lane;
  if (lane < kTileRows && row < w.rows) {
    simt::bulk_stream(slot + static_cast<uint32_t>(lane) * r.stride, w.row(0, row), w.row_bytes, arrived);
  }
  __syncwarp();
  if (lane == 0) simt::bulk_end(arrived);
}

// The lanes of a warp issue the copies of the activations that the warps need in a round.
__device__ __forceinline__ void send_for_activations(const RowsPlan& r, int pass, int turn, uint8_t* to,
                                                     uint64_t* arrived) {
  const uint32_t P = row_groups(r.plan.args.in.width) / 2, bytes = r.pair_bytes();
  const auto lanes = static_cast<uint32_t>(r.plan.lanes()), lane = static_cast<uint32_t>(simt::lane_id());
  const auto begin = static_cast<uint32_t>(kTeamWarps * lane_set(turn, r.plan.lanes_log2));
  const uint8_t* from = r.fragments + static_cast<uint32_t>(pass) * P * bytes;
  for (uint32_t pair = begin + lane * lanes; pair < P; pair += 32u * lanes) {
    simt::bulk_copy(to + pair * bytes, from + pair * bytes, min(static_cast<uint32_t>(kTeamWarps), P - pair) * bytes,
                    arrived);
  }
  __syncwarp();
  if (lane == 0) simt::bulk_end(arrived);
}

// sums + the products of a group of two weight rows with a group of two columns: add_group of each of the four.
template <int kScales, int kMins>
__device__ __forceinline__ void add_fragment(const Group& upper, const Group& lower, uint32_t b0, uint32_t b1,
                                             float2 left, float2 right, float (&sums)[4]) {
  static_assert(kMins < 2);
  const float x_scale[2] = {left.x, right.x}, x_sum[2] = {left.y, right.y};
  if constexpr (kScales == 1) {
    const uint32_t a[4] = {upper.q[0], lower.q[0], upper.q[1], lower.q[1]}, b[2] = {b0, b1};
    int32_t dots[4];
    simt::mma_s8_from(kFloatBias, dots, a, b);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Group& w = i < 2 ? upper : lower;
      sums[i] = fmaf(times(w.scale[0], x_scale[i % 2]), unbias(dots[i]), sums[i]);
    }
  } else {
    const uint32_t a0[2] = {upper.q[0], lower.q[0]}, a1[2] = {upper.q[1], lower.q[1]};
    int32_t first[4], second[4];
    simt::mma_s8_half_from(kFloatBias, first, a0, b0);
    simt::mma_s8_half_from(kFloatBias, second, a1, b1);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Group& w = i < 2 ? upper : lower;
      const float begun = times(w.scale[0], unbias(first[i]));
      sums[i] = fmaf(x_scale[i % 2], fmaf(w.scale[1], unbias(second[i]), begun), sums[i]);
    }
  }
  if constexpr (kMins == 1) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] = fmaf((i < 2 ? upper : lower).min[0], x_sum[i % 2], sums[i]);
  }
}

// The same for a pair of groups and all columns of the pass, kPassTiles tiles of them where kFull. `tile` is the slot,
// `columns` the pair's activations.
template <class F, bool kFull>
__device__ __forceinline__ void add_pair(const uint8_t* tile, uint32_t stride, uint32_t G, uint32_t pair,
                                         const uint8_t* columns, int n_tiles, float (&sums)[kPassTiles][4]) {
  const auto lane = static_cast<uint32_t>(simt::lane_id()), q = lane % 4u;
  const uint8_t* row = tile + lane / 4u * stride;
  Group upper[2], lower[2];
  F::load_quarters(SharedRow{row}, G, pair, q, upper);
  F::load_quarters(SharedRow{row + 8u * stride}, G, pair, q, lower);
#pragma unroll
  for (int n = 0; n < kPassTiles; ++n) {
    if (!kFull && n >= n_tiles) break;
    const uint4 b = *reinterpret_cast<const uint4*>(columns + n * kPairBytes + 16u * lane);
    const float4 left = *reinterpret_cast<const float4*>(columns + n * kPairBytes + kPairScales + 32u * q);
    const float4 right = *reinterpret_cast<const float4*>(columns + n * kPairBytes + kPairScales + 32u * q + 16u);
    add_fragment<F::kScales, F::kMins>(upper[0], lower[0], b.x, b.y, make_float2(left.x, left.y),
                                       make_float2(right.x, right.y), sums[n]);
    add_fragment<F::kScales, F::kMins>(upper[1], lower[1], b.z, b.w, make_float2(left.z, left.w),
                                       make_float2(right.z, right.w), sums[n]);
  }
}

__device__ __forceinline__ void clear(float (&v)[kPassTiles][4]) {
#pragma unroll
  for (auto& tile : v) {
#pragma unroll
    for (float& x : tile) x = 0.0f;
  }
}
__device__ __forceinline__ void copy_all(float (&to)[kPassTiles][4], const float (&v)[kPassTiles][4]) {
#pragma unroll
  for (int n = 0; n < kPassTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[n][i] = v[n][i];
  }
}
__device__ __forceinline__ void add_all(float (&to)[kPassTiles][4], const float (&v)[kPassTiles][4]) {
#pragma unroll
  for (int n = 0; n < kPassTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[n][i] += v[n][i];
  }
}

__device__ __forceinline__ float4 plus(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// Where a thread block is in a launch: its pass, its rows of activations in it, and its tiles of weights.
struct RowsBlock {
  int pass, part;
  BlockUnits tiles;
  int first, n;  // rows of activations

  __device__ __forceinline__ explicit RowsBlock(const RowsPlan& r)
      : pass(static_cast<int>(blockIdx.x) % r.plan.n_passes),
        part(static_cast<int>(blockIdx.x) / r.plan.n_passes),
        tiles(r.split, part),
        first(pass * r.pass_tiles * kColumnTile),
        n(min(r.pass_tiles * kColumnTile, r.plan.args.n_rows - first)) {}
};

// Rows in another format are few, and computed while the rest is copied: a unit is a tile times up to four rows.
__device__ __forceinline__ void multiply_side_rows(const RowsPlan& r, const RowsBlock& block) {
  const MatvecPlan& p = r.plan;
  const int n_parts = static_cast<int>(gridDim.x) / p.n_passes, per_tile = simt::div_up(block.n, kAnyRows);
  const int side_units = (p.all_tiles - p.own_tiles) * per_tile;
  for (int unit = simt::warp_id() * n_parts + block.part; unit < side_units; unit += kTeams * kTeamWarps * n_parts) {
    const int from = block.first + unit % per_tile * kAnyRows;
    side_tile(p, p.own_tiles + unit / per_tile, from, min(kAnyRows, block.first + block.n - from),
              p.args.records + static_cast<int64_t>(from) * record_bytes(p.args.in.width),
              [&](int t) { return r.inverses[from + t]; });
  }
}

// The pairs of groups that a warp multiplies: those of the sets of lanes it stands for, lane_set() of turns first_turn
// .. first_turn + n_turns. Computed once: the compiler would read the plan anew in the loop over pairs.
struct WarpPairs {
  uint32_t G, P;  // groups and pairs of a row
  int lanes, first_turn, n_turns;
  int w;  // the warp's number in its team
};

// whole <- the products of a tile with all columns, over a warp's pairs. The activations of a turn are waited for if
// `awaits`: on the block's first tile.
template <class F>
__device__ __forceinline__ void multiply_tile(const RowsPlan& r, const WarpPairs& pairs, const uint8_t* weights,
                                              const uint8_t* acts, int n_tiles, uint64_t* acts_arrived, bool awaits,
                                              float (&whole)[kPassTiles][4]) {
  float half[kPassTiles][4] = {}, sum[kPassTiles][4] = {};
#pragma unroll 1
  for (int turn = 0; turn < pairs.n_turns; ++turn) {
    if (awaits) simt::bulk_wait(acts_arrived + pairs.first_turn + turn);
    auto pair = static_cast<uint32_t>(pairs.w + kTeamWarps * lane_set(pairs.first_turn + turn, r.plan.lanes_log2));
#pragma unroll 1
    for (; pair < pairs.P; pair += static_cast<uint32_t>(pairs.lanes)) {
      const uint8_t* columns = acts + pair * r.pair_bytes();
      if (n_tiles == kPassTiles) {
        add_pair<F, true>(weights, r.stride, pairs.G, pair, columns, n_tiles, sum);
      } else {
        add_pair<F, false>(weights, r.stride, pairs.G, pair, columns, n_tiles, sum);
      }
    }
    // Lanes l and l + 16 first, then l and l + 8.
    if (turn == 0) {
      copy_all(whole, sum);
    } else if (turn == 1) {
      add_all(whole, sum);
    } else if (turn == 2) {
      copy_all(half, sum);
    } else {
      add_all(half, sum);
      add_all(whole, half);
    }
    clear(sum);
  }
}

// The last steps of the butterfly: what the eight warps of a team left for column tile w. `together`: step 8 first,
// with what the other team left.
__device__ __forceinline__ float4 sum_warps(const float4* mine, int n_tiles, int w, bool together) {
  float4 of[kTeamWarps];
#pragma unroll
  for (int i = 0; i < kTeamWarps; ++i) {
    of[i] = mine[(i * n_tiles + w) * 32];
    if (together) of[i] = plus(of[i], mine[((kTeamWarps + i) * n_tiles + w) * 32]);
  }
#pragma unroll
  for (int step = kTeamWarps / 2; step > 0; step /= 2) {
#pragma unroll
    for (int i = 0; i < step; ++i) of[i] = plus(of[i], of[i + step]);
  }
  return of[0];
}

// Stores the results of a tile and a column tile that begins at row `column` of the activations. A lane has two weight
// rows of two columns.
__device__ __forceinline__ void store_tile(const RowsPlan& r, int tile, int column, float4 sums) {
  const MatvecPlan& p = r.plan;
  const int which = projection_of(p, tile);
  const MatvecOut& o = p.args.outs[which];
  const float results[4] = {sums.x, sums.y, sums.z, sums.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = (tile - p.first_tile[which]) * kTileRows + simt::lane_id() / 4 + i / 2 * 8;
    const int t = column + simt::lane_id() % 4 * 2 + i % 2;
    if (row < o.weight.rows && t < p.args.n_rows) store_output(o, t, row, times(results[i], r.inverses[t]));
  }
}

template <class F>
__global__ void __launch_bounds__(kTeams* kTeamThreads, 1) matvec_rows_kernel(const __grid_constant__ RowsPlan r) {
  SIMT_SHARED(uint64_t, arrived, kMaxSlots);
  SIMT_SHARED(uint64_t, acts_arrived, kLaneSets);
  auto* smem = simt::dynamic_shared<uint8_t>();
  uint8_t* slots = smem + r.slots_at;
  auto* sums = reinterpret_cast<float4*>(smem + r.sums_at);  // [kTeams][kTeamWarps][n_tiles][32]
  const uint32_t G = row_groups(r.plan.args.in.width), P = G / 2, slot_bytes = kTileRows * r.stride;
  const RowsBlock block(r);
  const BlockUnits& tiles = block.tiles;
  const int n_tiles = simt::div_up(block.n, kColumnTile);
  const int lanes = r.plan.lanes(), n_sets = lanes / kTeamWarps;
  const int team = simt::warp_id() / kTeamWarps, w = simt::warp_id() % kTeamWarps;

  // Weights do not depend on the previous kernel: they are copied while it ends.
  if (simt::warp_id() == 0) {
    if (simt::lane_id() == 0) {
      for (int i = 0; i < r.n_slots; ++i) simt::bulk_begin(arrived + i);
      for (int i = 0; i < n_sets; ++i) simt::bulk_begin(acts_arrived + i);
    }
    __syncwarp();
    for (int i = 0; i < min(r.n_slots, tiles.size()); ++i) {
      send_for_tile(r, tiles.first + i, slots + static_cast<uint32_t>(i) * slot_bytes, arrived + i);
    }
  }
  simt::wait_for_previous();
  simt::allow_next();
  if (simt::warp_id() == 0) {
    for (int i = 0; i < n_sets; ++i) {
      send_for_activations(r, block.pass, i, smem, acts_arrived + i);
    }
  }
  __syncthreads();
  multiply_side_rows(r, block);

  int slot = r.together ? 0 : team;
  const WarpPairs pairs{G, P, lanes, r.together ? team * n_sets / kTeams : 0, r.together ? n_sets / kTeams : n_sets, w};
  uint32_t parity = 0;
  for (int round = tiles.first; round < tiles.end; round += kTeams) {
    const int tile = r.together ? round : round + team;
    const bool present = tile < tiles.end;
    float whole[kPassTiles][4] = {};
    while (slot >= r.n_slots && present) {
      slot -= r.n_slots;
      parity ^= 1u;
    }
    uint8_t* weights = slots + static_cast<uint32_t>(slot) * slot_bytes;
    if (present) {
      simt::bulk_wait(arrived + slot, parity);
      multiply_tile<F>(r, pairs, weights, smem, n_tiles, acts_arrived, round == tiles.first, whole);
    }
    __syncthreads();  // the slot and the last round's sums have been read
    if (present && w == 0 && tile + r.n_slots < tiles.end) {
      if (simt::lane_id() == 0) simt::bulk_again(arrived + slot);
      __syncwarp();
      send_for_tile(r, tile + r.n_slots, weights, arrived + slot);
    }
    slot += kTeams;
    float4* mine = sums + team * kTeamWarps * n_tiles * 32 + simt::lane_id();
    if (present) {
#pragma unroll
      for (int i = 0; i < kPassTiles; ++i) {
        if (i < n_tiles) {
          mine[(w * n_tiles + i) * 32] = make_float4(whole[i][0], whole[i][1], whole[i][2], whole[i][3]);
        }
      }
    }
    __syncthreads();
    // From here on a warp has a column tile.
    if (!present || w >= n_tiles || (r.together && team > 0)) continue;
    store_tile(r, tile, block.first + w * kColumnTile, sum_warps(mine, n_tiles, w, r.together));
  }
}

// Quantises the rows, then multiplies. REQUIRES: MatvecKernel::tensor_rows was chosen.
Status matvec_rows(const Stream& stream, const MatvecPlan& plan, const MatvecChoice& choice);

}  // namespace chimere::cuda
