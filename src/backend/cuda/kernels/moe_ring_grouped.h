// moe_ring_grouped.h  The down-projection of many rows: an expert is multiplied with all rows that chose it.
#pragma once

#include "backend/cuda/simt/simt.h"

#include <type_traits>

#include "backend/cuda/kernels/moe_ring.h"

namespace chimere::cuda {

template <class F>
inline constexpr int kGroupedRows = grouped_rows(F::kType);

// Many rows: the products of each expert with all rows that chose it, to be added up by add_experts.
template <class F, int kR, bool kShared>
struct RingGroupedDown {
  const MoePlan& p;

  __device__ __forceinline__ const Weight& down() const { return kShared ? p.args.shared_down : p.args.down; }
  __device__ __forceinline__ int log2() const { return kShared ? p.log2_shared : p.log2_hidden; }

  __device__ __forceinline__ void send(WarpRing& ring, int expert, int tile) const {
    const int n = kR * 32 >> log2(), first = tile * n;
    ring.send(0, down().row(expert, first), static_cast<uint32_t>(min(n, down().rows - first)) * down().row_bytes);
  }

  __device__ __forceinline__ void multiply(SharedRow slot, const UpChunk& u, int tile, const CodeBooks& books) const {
    const uint32_t G = row_groups(down().width), all = row_groups(p.hidden_width), bytes = record_bytes(p.hidden_width);
    const int lanes = 1 << log2(), side = 32 >> log2(), sub = simt::lane_id() >> log2();
    const int first = tile * kR * side, last = min(kR * side, down().rows - first) - 1;
    float acc[kMoeChunk * kR] = {};  // [pair][row]
    for (auto pair = static_cast<uint32_t>(simt::lane_id() & (lanes - 1)); pair < G / 2;
         pair += static_cast<uint32_t>(lanes)) {
#pragma unroll
      for (int r = 0; r < kR; r += 2) {
        const auto row = [&](int which) {
          return SharedRow{slot.at + static_cast<uint32_t>(min(which * side + sub, last)) * down().row_bytes};
        };
        const Pair<F> raw[2] = {F::load_pair(row(r), G, pair), F::load_pair(row(r + 1), G, pair)};
        const auto add_half = [&](auto half) {
          Group w[2];
          F::unpack(raw[0].of[half], books, w[0]);
          F::unpack(raw[1].of[half], books, w[1]);
#pragma unroll
          for (int i = 0; i < kMoeChunk; ++i) {
            if (i >= u.count) break;
            const uint8_t* record = p.scratch.hidden_records + static_cast<uint32_t>(u.pair[i] >> 16) * bytes;
            const uint32_t begin = kShared ? static_cast<uint32_t>(p.shared_at / kGroup / 2)
                                           : static_cast<uint32_t>(u.pair[i] & 0xFFFF) * (G / 2);
            const ActGroup x = load_act_half<half>(record, all, begin + pair);
            float* sums = acc + i * kR + r;
            sums[0] = add_group<F::kScales, F::kMins>(w[0], x, sums[0]);
            sums[1] = add_group<F::kScales, F::kMins>(w[1], x, sums[1]);
          }
        };
        add_half(std::integral_constant<int, 0>{});
        add_half(std::integral_constant<int, 1>{});
        if (kR > 2) keep_order();
      }
    }
    finish_sums(acc, lanes, [&](int j, float sum) {
      const int i = j / kR, o = j % kR * side + sub;
      if (i >= u.count || o > last) return;
      int pair = u.pair[0];
#pragma unroll
      for (int c = 1; c < kMoeChunk; ++c) pair = i == c ? u.pair[c] : pair;
      const int64_t row = kShared ? pair >> 16 : (pair >> 16) * p.args.n_used + (pair & 0xFFFF);
      (kShared ? p.scratch.shared_outputs : p.scratch.outputs)[row * down().rows + first + o] = sum;
    });
  }
};

struct RingGroupedPlan {
  MoePlan plan;
  Dealing dealing, own_dealing;
  GroupRoom groups;
  uint32_t slot_bytes = 0;
  int n_slots = 0;
  uint32_t rings = 0, grouped = 0;  // offsets in shared memory
};

template <class F, class S>
__global__ void __launch_bounds__(kDotThreads, kRingBlocks)
    ring_grouped_down_kernel(const __grid_constant__ RingGroupedPlan plan) {
  const MoePlan& p = plan.plan;
  const MoeArgs& a = p.args;
  auto* shared = simt::dynamic_shared<uint8_t>();
  WarpRing ring(shared + plan.rings, plan.slot_bytes, plan.n_slots);
  const RingGroupedDown<F, kGroupedRows<F>, false> routed{p};
  const RingGroupedDown<std::conditional_t<kHasFormat<S>, S, F>, kDownRows, true> own{p};
  const bool rings_shared = kHasFormat<S> && a.shared_down;
  const CodeBooks books = open_books<F>(a.down.grids, shared);
  if (!kHasFormat<S>) prefetch(a.shared_down);
  const MoeGroups groups{a, plan.groups, shared + plan.grouped};
  groups.begin();
  __syncthreads();
  // The choices were made before the previous kernel: they are complete when this one may start.
  const int n_chunks = groups.group(p.scratch.ids);
  const Dealing &dealing = plan.dealing, &own_dealing = plan.own_dealing;
  const int own_units = rings_shared ? simt::div_up(a.n_rows, kMoeChunk) * own_dealing.tiles : 0;
  DealtUnits fetched_own, fetched;
  fetched_own.begin(own_dealing, own_units, 0);
  fetched.begin(dealing, n_chunks * dealing.tiles, block_behind(own_units));
  DealtUnits own_at = fetched_own, at = fetched;
  const auto send_routed = [&] {
    if (fetched.left > 0) {
      routed.send(ring, groups.expert(fetched.chunk), fetched.tile);
      fetched.advance(dealing);
    }
    ring.close();
  };
  const auto send_next = [&] {
    if (fetched_own.left <= 0) return send_routed();
    own.send(ring, 0, fetched_own.tile);
    fetched_own.advance(own_dealing);
    ring.close();
  };
  for (int i = 0; i < ring.n_slots; ++i) send_next();
  simt::wait_for_previous();
  simt::allow_next();

  UpChunk u{};
  if constexpr (kHasFormat<S>) {
    for (int chunk = -1; own_at.left > 0; own_at.advance(own_dealing)) {
      if (own_at.chunk != chunk) u = shared_chunk<kMoeChunk>(p, chunk = own_at.chunk);
      own.multiply(ring.take(), u, own_at.tile, books);
      ring.release();
      send_next();
    }
  }
  for (int chunk = -1; at.left > 0; at.advance(dealing)) {
    if (at.chunk != chunk) u = groups.chunk(chunk = at.chunk);
    routed.multiply(ring.take(), u, at.tile, books);
    ring.release();
    send_routed();
  }
  if constexpr (!kHasFormat<S>) {
    if (!a.shared_down) return;
    const int stride = static_cast<int>(gridDim.x) * kDotWarps;
    for (int unit = static_cast<int>(blockIdx.x) * kDotWarps + simt::warp_id(); unit < a.down.rows * a.n_rows;
         unit += stride) {
      const int row = unit / a.n_rows, t = unit - row * a.n_rows;
      const ActRows acts{p.scratch.hidden_records + static_cast<int64_t>(t) * record_bytes(p.hidden_width), 0,
                         row_groups(p.hidden_width), static_cast<uint32_t>(p.shared_at / kGroup)};
      const float y = any_down(p, a.shared_down, 0, row, acts, p.any_log2_shared,
                               p.scratch.hidden + static_cast<int64_t>(t) * p.hidden_width + p.shared_at);
      if (simt::lane_id() == 0) p.scratch.shared_outputs[static_cast<int64_t>(t) * a.down.rows + row] = y;
    }
  }
}

}  // namespace chimere::cuda
