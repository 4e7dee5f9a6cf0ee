// moe_ring_grouped.h  The down-projection of many rows: an expert is multiplied with all rows that chose it.
#pragma once

#include "backend/cuda/simt/simt.h"

#include <type_traits>

#include "backend/cuda/kernels/experts/moe_ring.h"

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
    ring.send(0, down().expert_row(expert, first),
              static_cast<uint32_t>(min(n, down().rows - first)) * down().row_bytes);
  }

  __device__ __forceinline__ void multiply(SharedRow slot, const UpChunk& u, int tile, const CodeBooks& books) const {
    const uint32_t G = row_groups(down().width), all = row_groups(p.hidden_width), bytes = record_bytes(p.hidden_width);
    const int lanes = 1 << log2(), side = 32 >> log2(), sub = simt::lane_id() >> log2();
    const int first = tile * kR * side, last = min(kR * side, down().rows - first) - 1;
    float acc[kMoeChunk * kR] = {};  // [assignment][row]
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
            const uint8_t* record = p.scratch.hidden_records + static_cast<uint32_t>(u.assignment[i] >> 16) * bytes;
            const uint32_t begin = kShared ? static_cast<uint32_t>(p.shared_at / kGroup / 2)
                                           : static_cast<uint32_t>(u.assignment[i] & 0xFFFF) * (G / 2);
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
      int assignment = u.assignment[0];
#pragma unroll
      for (int c = 1; c < kMoeChunk; ++c) assignment = i == c ? u.assignment[c] : assignment;
      const int64_t row = kShared ? assignment >> 16 : (assignment >> 16) * p.args.n_used + (assignment & 0xFFFF);
      (kShared ? p.scratch.shared_outputs : p.scratch.outputs)[row * down().rows + first + o] = sum;
    });
  }
};

struct RingGroupedPlan {
  MoePlan plan;
  RunDealing dealing;
  Dealing shared_dealing;
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
  auto* smem = simt::dynamic_shared<uint8_t>();
  WarpRing ring(smem + plan.rings, plan.slot_bytes, plan.n_slots);
  const RingGroupedDown<F, kGroupedRows<F>, false> routed{p};
  const RingGroupedDown<std::conditional_t<kHasFormat<S>, S, F>, kDownRows, true> shared_expert{p};
  const bool rings_shared = kHasFormat<S> && a.shared_down;
  const CodeBooks books = open_books<F>(a.down.grids, smem);
  if (!kHasFormat<S>) prefetch(a.shared_down);
  const MoeGroups groups{a, plan.groups, smem + plan.grouped};
  groups.begin();
  __syncthreads();
  // The choices were made before the previous kernel: they are complete when this one may start.
  const int n_chunks = groups.group(p.scratch.ids);
  const RunDealing& dealing = plan.dealing;
  const Dealing& shared_dealing = plan.shared_dealing;
  const int shared_units = rings_shared ? simt::div_up(a.n_rows, kMoeChunk) * shared_dealing.tiles : 0;
  DealtUnits fetched_shared;
  DealtRuns fetched;
  fetched_shared.begin(shared_dealing, first_dealt(0), shared_units);
  fetched.begin(dealing, block_behind(shared_units), n_chunks);
  DealtUnits at_shared = fetched_shared;
  DealtRuns at = fetched;
  const auto send_routed = [&] {
    if (fetched.is_left()) {
      routed.send(ring, groups.expert(fetched.chunk()), fetched.tile);
      fetched.advance(dealing);
    }
    ring.close();
  };
  const auto send_next = [&] {
    if (fetched_shared.left <= 0) return send_routed();
    shared_expert.send(ring, 0, fetched_shared.tile);
    fetched_shared.advance(shared_dealing);
    ring.close();
  };
  for (int i = 0; i < ring.n_slots; ++i) send_next();
  simt::wait_for_previous();
  simt::allow_next();

  UpChunk u{};
  if constexpr (kHasFormat<S>) {
    for (int chunk = -1; at_shared.left > 0; at_shared.advance(shared_dealing)) {
      if (at_shared.chunk != chunk) u = shared_chunk<kMoeChunk>(p, chunk = at_shared.chunk);
      shared_expert.multiply(ring.take(), u, at_shared.tile, books);
      ring.release();
      send_next();
    }
  }
  for (int chunk = -1; at.is_left(); at.advance(dealing)) {
    if (at.chunk() != chunk) u = groups.chunk(chunk = at.chunk());
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
