// matvec_device.h  The kernel template of matvec.cu, apart so that its instances can be compiled side by side.
#pragma once

#include "backend/cuda/simt/simt.h"

#include <type_traits>

#include "backend/cuda/kernels/common/dot_device.h"
#include "backend/cuda/kernels/dense/matvec_choice.h"

namespace chimere::cuda {

inline CardFacts this_card(int n_sms) { return {simt::has_bulk_copy(), simt::shared_limit(), n_sms}; }

// Tiles that a warp loads or prefetches before the input is there, the first included.
inline constexpr int kAheadTiles = 4;

__device__ __forceinline__ void store_output(const MatvecOut& o, int t, int row, float sum) {
  float* to = o.out + static_cast<int64_t>(t) * o.pitch + row;
  if (o.bias) sum += o.bias[row];
  *to = o.add ? fmaf(sum, o.scale, *to) : sum * o.scale;
}

// The projection that a tile of another format belongs to.
__device__ __forceinline__ int find_side(const MatvecPlan& p, int tile) {
  int which = p.n_own;
  while (which + 1 < p.args.n_outs && tile >= p.first_tile[which + 1]) ++which;
  return which;
}

// One tile of a projection in another format. Not inlined: kernels that have to fetch this code should be short.
template <class Inverse>
__device__ CHIMERE_NOINLINE void side_tile(const MatvecPlan& p, int tile, int first, int n, const uint8_t* records,
                                           const Inverse& inverse) {
  const int which = find_side(p, tile);
  const MatvecOut& o = p.args.outs[which];
  const Weight& w = o.weight;
  const bool whole_warp = p.args.exact || w.is_float();
  const int log2 = whole_warp ? 5 : p.side_lanes_log2, lanes = 1 << log2;
  const int row = (tile - p.first_tile[which]) * (32 >> log2) + (simt::lane_id() >> log2);
  const uint8_t* weights = w.row(0, min(row, w.rows - 1));
  const uint32_t bytes = record_bytes(w.width), G = row_groups(w.width);
  for (int t = 0; t < n; t += kAnyRows) {
    const int here = min(kAnyRows, n - t);
    float4 sums;
    if (p.args.exact || w.is_float()) {
      FloatRows rows{};
      rows.norm = p.args.in.norm;
      rows.activation = p.args.in.activation;
      for (int i = 0; i < here; ++i) {
        const int at = first + t + i;
        const int64_t from = static_cast<int64_t>(p.args.in.gather ? p.args.in.gather[at] : at) * w.width;
        rows.x[i] = p.args.in.x + from;
        rows.gate[i] = p.args.in.gate ? p.args.in.gate + from : nullptr;
        rows.inverse_rms[i] = inverse(t + i);
      }
      sums = w.is_float() ? float_dot(w.type, weights, w.width, rows, here)
                          : exact_dot(w.type, weights, G, w.grids, rows, here);
    } else {
      sums = any_dot(w.type, weights, G, lanes, w.grids, {records + t * bytes, bytes, G, 0}, here);
      float* sum[kAnyRows] = {&sums.x, &sums.y, &sums.z, &sums.w};
#pragma unroll
      for (int i = 0; i < kAnyRows; ++i) {
        if (i < here) *sum[i] = times(*sum[i], inverse(t + i));
      }
    }
    const float whole[kAnyRows] = {lane_sum(sums.x, lanes), lane_sum(sums.y, lanes), lane_sum(sums.z, lanes),
                                   lane_sum(sums.w, lanes)};
    if (simt::lane_id() % lanes == 0 && row < w.rows) {
#pragma unroll
      for (int i = 0; i < kAnyRows; ++i) {
        if (i < here) store_output(o, first + t + i, row, whole[i]);
      }
    }
  }
}

// Prefetches the weights of such a tile.
__device__ __forceinline__ void prefetch_side_tile(const MatvecPlan& p, int tile) {
  const int which = find_side(p, tile);
  const Weight& w = p.args.outs[which].weight;
  const int per_tile = side_rows_per_tile(p, p.args.outs[which]), row = (tile - p.first_tile[which]) * per_tile;
  const uint8_t* at = w.row(0, row);
  const uint32_t bytes = static_cast<uint32_t>(min(per_tile, w.rows - row)) * w.row_bytes;
  for (uint32_t i = 128u * simt::lane_id(); i < bytes; i += 128u * 32u) simt::prefetch_l2(at + i);
}

// The projection of the kernel's own format that a tile belongs to, for tiles taken in ascending order.
struct ProjectionCursor {
  int which = 0, first = 0, end;  // its tiles

  __device__ __forceinline__ explicit ProjectionCursor(const MatvecPlan& p) : end(end_of(p, 0)) {}
  __device__ __forceinline__ static int end_of(const MatvecPlan& p, int which) {
    return which + 1 < p.n_own ? p.first_tile[which + 1] : p.own_tiles;
  }
  // True if it differs from the previous one.
  __device__ __forceinline__ bool seek(const MatvecPlan& p, int tile) {
    if (tile < end) return false;
    while (tile >= end) {
      first = end;
      end = end_of(p, ++which);
    }
    return true;
  }
};

// For rows of 2048 elements, of which a lane takes one pair of groups: it reads its activations once, and all offsets
// are constants.
struct HeldPair {
  static constexpr uint32_t kGroups = 64;
  ActGroup of[2] = {};

  CHIMERE_BOTH static bool fits(int width) { return holds_pair(width); }
  __device__ __forceinline__ void load(const uint8_t* record) {
    of[0] = load_act_half<0>(record, kGroups, static_cast<uint32_t>(simt::lane_id()));
    of[1] = load_act_half<1>(record, kGroups, static_cast<uint32_t>(simt::lane_id()));
  }
  // acc + the product with the lane's pair of a row.
  template <class F>
  __device__ __forceinline__ float add(SharedRow row, const CodeBooks& books, float acc) const {
    const Pair<F> raw = F::load_pair(row, kGroups, static_cast<uint32_t>(simt::lane_id()));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Group w;
      F::unpack(raw.of[half], books, w);
      acc = add_group<F::kScales, F::kMins>(w, of[half], acc);
    }
    return acc;
  }
};

// kR rows per lane in the kernel's own format, kR * 32 / lanes consecutive rows per warp.
template <class F, int kR>
struct OwnTile {
  const uint8_t* row;  // the lane's first
  uint32_t delta[kR];  // from there to its others

  __device__ __forceinline__ static int find(const MatvecPlan& p, int tile) {
    int which = 0;
    while (which + 1 < p.n_own && tile >= p.first_tile[which + 1]) ++which;
    return which;
  }
  __device__ __forceinline__ static int first_row(const MatvecPlan& p, int which, int tile) {
    return ((tile - p.first_tile[which]) * kR << (5 - p.lanes_log2)) + (simt::lane_id() >> p.lanes_log2);
  }

  // Rows past the end repeat the last ones: they are computed and not stored.
  __device__ __forceinline__ OwnTile(const MatvecPlan& p, int tile) {
    const int which = find(p, tile);
    const Weight& w = p.args.outs[which].weight;
    const int from = min(first_row(p, which, tile), w.rows - 1);
    row = w.row(0, from);
#pragma unroll
    for (int r = 0; r < kR; ++r) {
      delta[r] = static_cast<uint32_t>(min(r << (5 - p.lanes_log2), w.rows - 1 - from)) * w.row_bytes;
    }
  }

  __device__ __forceinline__ void load(uint32_t G, uint32_t pair, Pair<F> (&raw)[kR]) const {
#pragma unroll
    for (int r = 0; r < kR; ++r) raw[r] = F::load_pair(row + delta[r], G, min(pair, G / 2 - 1));
  }

  // Prefetches all of a tile; its rows are one run of bytes.
  __device__ __forceinline__ static void prefetch(const MatvecPlan& p, int tile) {
    const int which = find(p, tile);
    const Weight& w = p.args.outs[which].weight;
    const int from = (tile - p.first_tile[which]) * kR << (5 - p.lanes_log2);
    const int rows = min(kR << (5 - p.lanes_log2), w.rows - from);
    const uint8_t* at = w.row(0, from);
    for (uint32_t i = 128u * simt::lane_id(); i < rows * w.row_bytes; i += 128u * 32u) simt::prefetch_l2(at + i);
  }
};

template <class F, int kT>
__global__ void __launch_bounds__(kDotThreads, matvec_blocks(kT)) matvec_kernel(const __grid_constant__ MatvecPlan p) {
  constexpr bool kOwn = !std::is_same_v<F, NoFormat>;
  auto* smem = simt::dynamic_shared<uint8_t>();
  const int n_blocks = static_cast<int>(gridDim.x) / p.n_passes;
  const int pass = static_cast<int>(blockIdx.x) % p.n_passes;
  const int stride = n_blocks * kDotWarps;
  int tile = static_cast<int>(blockIdx.x) / p.n_passes * kDotWarps + simt::warp_id();
  const int first = pass * kT, n = min(kT, p.args.n_rows - first);

  if constexpr (kOwn) {
    constexpr int kR = tile_rows(kT);
    using Tile = OwnTile<F, kR>;
    using Raws = Pair<F>[kR];
    uint8_t* records = smem + book_bytes<F>();
    const uint32_t G = row_groups(p.args.in.width), bytes = record_bytes(p.args.in.width);
    const int lanes = p.lanes(), steps = (static_cast<int>(G / 2) + lanes - 1) >> p.lanes_log2;
    const auto first_pair = static_cast<uint32_t>(simt::lane_id() & (lanes - 1));

    // Weights do not depend on the previous kernel: the first of them are loaded while it ends.
    Tile at(p, min(tile, p.own_tiles - 1));
    Raws raw;
    if (tile < p.own_tiles) {
      at.load(G, first_pair, raw);
    }
    // So are prefetches to the L2 cache: the first half of the blocks, which fit while the previous kernel still runs,
    // prefetch the tiles of the second half too.
    const int half = (n_blocks + 1) / 2, block = static_cast<int>(blockIdx.x) / p.n_passes;
    if (pass == 0 && block < half) {
      for (int ahead = 0; ahead < kAheadTiles; ++ahead) {
        for (const int other : {0, half * kDotWarps}) {
          const int wanted = tile + other + ahead * stride;
          if (block + (other ? half : 0) < n_blocks && wanted < p.own_tiles) Tile::prefetch(p, wanted);
        }
      }
    }
    const CodeBooks books = open_books<F>(p.args.outs[0].weight.grids, smem);
    const NormAhead norms = load_norm(p.args.in);
    simt::wait_for_previous();
    simt::allow_next();
    float one_inverse = 1.0f;
    if constexpr (kT == 1) {
      if (p.args.records) {
        stage_records(p.args.in, norms, p.args.records, first, n, p.quantise, records);
        one_inverse = stored_inverse(records, p.args.in.width);
      } else {
        const int64_t row = p.args.in.gather ? p.args.in.gather[first] : first;
        one_inverse = stage_one(p.args.in, row, norms, load_row<4>(p.args.in, row), p.quantise, records);
      }
    } else {
      stage_records(p.args.in, norms, p.args.records, first, n, p.quantise, records);
    }
    const auto inverse = [&](int t) {
      return kT == 1 ? one_inverse : stored_inverse(records + t * bytes, p.args.in.width);
    };

    float acc[kT * kR] = {};  // [t][r]
    int step = 0;
    // The weights of the next step arrive while sums are finished; they are in the L2 cache already.
    for (bool more = tile < p.own_tiles; more;) {
      const auto pair = static_cast<uint32_t>(step << p.lanes_log2) + first_pair;
      const auto add_half = [&](auto half) {
        Group w[kR];
#pragma unroll
        for (int r = 0; r < kR; ++r) F::unpack(raw[r].of[half], books, w[r]);
#pragma unroll
        for (int t = 0; t < kT; ++t) {
          if (t >= n) break;
          const ActGroup x = load_act_half<half>(records + t * bytes, G, pair);
#pragma unroll
          for (int r = 0; r < kR; ++r) acc[t * kR + r] = add_group<F::kScales, F::kMins>(w[r], x, acc[t * kR + r]);
        }
      };
      if (pair < G / 2) {
        add_half(std::integral_constant<int, 0>{});
        add_half(std::integral_constant<int, 1>{});
      }
      if (++step < steps) {
        at.load(G, pair + static_cast<uint32_t>(lanes), raw);
        continue;
      }
      const int done = tile;
      tile += stride;
      step = 0;
      more = tile < p.own_tiles;
      if (more) {
        at = Tile(p, tile);
        at.load(G, first_pair, raw);
      }
      const int which = Tile::find(p, done);
      const MatvecOut& o = p.args.outs[which];
      const int row = Tile::first_row(p, which, done);
      finish_sums(acc, lanes, [&](int i, float sum) {
        const int t = i / kR, r = row + ((i % kR) << (5 - p.lanes_log2));
        if (t < n && r < o.weight.rows) store_output(o, first + t, r, times(sum, inverse(t)));
      });
#pragma unroll
      for (float& a : acc) a = 0;
    }
    for (; tile < p.all_tiles; tile += stride) side_tile(p, tile, first, n, records, inverse);
  } else {
    const NormAhead norms = load_norm(p.args.in);
    simt::wait_for_previous();
    simt::allow_next();
    stage_records(p.args.in, norms, p.args.records, first, n, p.quantise, smem);
    const auto inverse = [&](int t) {
      return stored_inverse(smem + t * record_bytes(p.args.in.width), p.args.in.width);
    };
    for (; tile < p.all_tiles; tile += stride) side_tile(p, tile, first, n, smem, inverse);
  }
}

// F: NoFormat for MatvecKernel::any_format.
template <class F>
Status launch_registers(const Stream& stream, const MatvecPlan& plan, const MatvecChoice& c) {
  const auto launch = [&](auto kernel) {
    return simt::launch(
        kernel, {static_cast<unsigned>(c.blocks), kDotThreads, c.shared_bytes, stream, plan.args.dependent}, plan);
  };
  switch (c.pass_rows) {
    case 16: return launch(matvec_kernel<F, 16>);
    case 8: return launch(matvec_kernel<F, 8>);
    case 4: return launch(matvec_kernel<F, 4>);
    default: return launch(matvec_kernel<F, 1>);
  }
}

}  // namespace chimere::cuda
