// moe_ring_down.h  The experts' down-projection for one format, for few rows and for many, through moe_ring.h's rings.
#pragma once

#include "backend/cuda/simt/simt.h"

#include <type_traits>

#include "backend/cuda/kernels/experts/moe_ring_grouped.h"

namespace chimere::cuda {

// Outputs of one expert for one row of activations: kR rows a lane, side by side as many as there is room for in a
// warp.
template <class F, int kR>
__device__ __forceinline__ void multiply_down(SharedRow slot, uint32_t row_bytes, uint32_t G, int log2_lanes, int last,
                                              const CodeBooks& books, const uint8_t* record, uint32_t record_groups,
                                              uint32_t first_pair, float (&acc)[kR]) {
  const int lanes = 1 << log2_lanes, sub = simt::lane_id() >> log2_lanes, side = 32 >> log2_lanes;
  for (auto pair = static_cast<uint32_t>(simt::lane_id() & (lanes - 1)); pair < G / 2;
       pair += static_cast<uint32_t>(lanes)) {
    Pair<F> raw[kR];
#pragma unroll
    for (int r = 0; r < kR; ++r) {
      raw[r] = F::load_pair(SharedRow{slot.at + static_cast<uint32_t>(min(r * side + sub, last)) * row_bytes}, G, pair);
    }
    const auto add_half = [&](auto half) {
      const ActGroup x = load_act_half<half>(record, record_groups, first_pair + pair);
#pragma unroll
      for (int r = 0; r < kR; ++r) {
        Group w;
        F::unpack(raw[r].of[half], books, w);
        acc[r] = add_group<F::kScales, F::kMins>(w, x, acc[r]);
      }
    };
    add_half(std::integral_constant<int, 0>{});
    add_half(std::integral_constant<int, 1>{});
  }
}

// Few rows: every block takes some outputs of all experts and sums over the experts itself. A chunk is one choice of a
// row, a unit some of its outputs.
struct RingDownPlan {
  MoePlan plan;
  UnitSplit outputs;
  uint32_t slot_bytes = 0;
  int n_slots = 0;
  uint32_t rings = 0, shares = 0, records = 0;  // offsets in shared memory
};

// The outputs of a thread block, in tiles of as many as a slot holds.
struct DownOutputs : BlockUnits {
  __device__ __forceinline__ DownOutputs(const UnitSplit& split, int block) : BlockUnits(split, block) {}

  __device__ static __forceinline__ int per_tile(int log2) { return kDownRows * 32 >> log2; }
  __device__ __forceinline__ int tiles(int log2) const { return simt::div_up(size(), per_tile(log2)); }
  // The last row of a tile's slot that is an output of the block.
  __device__ __forceinline__ int last(int log2, int tile) const { return size() - tile * per_tile(log2) - 1; }

  __device__ __forceinline__ void send(WarpRing& ring, const Weight& w, int expert, int log2, int tile) const {
    const int begin = first + tile * per_tile(log2);
    ring.send(0, w.expert_row(expert, begin), static_cast<uint32_t>(min(per_tile(log2), end - begin)) * w.row_bytes);
  }
};

// What the experts add to each output of a thread block, before it is weighted: in shared memory, as all warps have
// some of it.
struct DownShares {
  const MoePlan& p;
  const DownOutputs& outputs;
  int n_rows, n_used;
  float* shares;  // [output][row of activations][choice, shared expert]

  // What choice k of row t adds to the outputs of a tile.
  __device__ __forceinline__ void store(int t, int k, int log2, int tile, float (&acc)[kDownRows]) const {
    const int first = tile * DownOutputs::per_tile(log2) + (simt::lane_id() >> log2);
    finish_sums(acc, 1 << log2, [&](int r, float sum) {
      const int o = first + (r << (5 - log2));
      if (o < outputs.size()) shares[(o * n_rows + t) * (n_used + 1) + k] = sum;
    });
  }

  // The shared expert where its format has no kernels: a warp an output of a row.
  __device__ __forceinline__ void multiply_any_shared(const uint8_t* records, uint32_t bytes, uint32_t all) const {
    const Weight& down = p.args.shared_down;
    for (int i = simt::warp_id(); down && i < n_rows * outputs.size(); i += kDotWarps) {
      const int o = i / n_rows, t = i - o * n_rows;
      const float y = any_down(
          p, down, 0, outputs.first + o, {records + t * bytes, 0, all, static_cast<uint32_t>(p.shared_at / kGroup)},
          p.any_log2_shared, p.scratch.hidden + static_cast<int64_t>(t) * p.hidden_width + p.shared_at);
      if (simt::lane_id() == 0) shares[i * (n_used + 1) + n_used] = y;
    }
  }

  // residual += the shares, each times its weight, in the order of the choices.
  __device__ __forceinline__ void add_to_residual(const Choice& choice) const {
    const MoeArgs& a = p.args;
    for (int i = simt::thread_id(); i < n_rows * outputs.size(); i += kDotThreads) {
      const int o = i / n_rows, t = i - o * n_rows;
      const float* weights = p.choice_by_block ? choice.weight : p.scratch.weights + t * (n_used + 1);
      float sum = 0;
      for (int k = 0; k < n_used; ++k) sum = fmaf(weights[k], shares[i * (n_used + 1) + k], sum);
      sum = add_down_biases(p, t, outputs.first + o, weights, sum);
      if (a.shared_down) sum = fmaf(weights[n_used], shares[i * (n_used + 1) + n_used], sum);
      a.residual[static_cast<int64_t>(t) * a.down.rows + outputs.first + o] += sum;
    }
  }
};

template <class F, class S>
__global__ void __launch_bounds__(kDotThreads, kRingBlocks + 1)
    ring_down_kernel(const __grid_constant__ RingDownPlan plan) {
  SIMT_SHARED(Choice, choice, 1);
  SIMT_SHARED(int32_t, ids, kMoePairs);
  using SharedFormat = std::conditional_t<kHasFormat<S>, S, F>;
  const MoePlan& p = plan.plan;
  const MoeArgs& a = p.args;
  auto* smem = simt::dynamic_shared<uint8_t>();
  WarpRing ring(smem + plan.rings, plan.slot_bytes, plan.n_slots);
  const DownOutputs outputs(plan.outputs, static_cast<int>(blockIdx.x));
  const int n_used = a.n_used, n_rows = a.n_rows;
  const bool rings_shared = kHasFormat<S> && a.shared_down;
  const Dealing dealing(outputs.tiles(p.log2_hidden), kDotWarps);
  const Dealing shared_dealing(outputs.tiles(p.log2_shared), kDotWarps);

  DealtUnits fetched_shared, fetched, at_shared, at;
  int ahead = 0;
  if (rings_shared) {
    fetched_shared.begin(shared_dealing, simt::warp_id(), n_rows * shared_dealing.tiles);
    at_shared = fetched_shared;
    for (; ahead < ring.n_slots && fetched_shared.left > 0; ++ahead) {
      outputs.send(ring, a.shared_down, 0, p.log2_shared, fetched_shared.tile);
      ring.close();
      fetched_shared.advance(shared_dealing);
    }
  }
  const CodeBooks books = open_books<F>(a.down.grids, smem);
  if (!kHasFormat<S>) prefetch(a.shared_down);
  // The router's logits are complete: the up-projection waits for the router before it allows this kernel to start.
  if (p.choice_by_block) choose_by_block(p, choice[0]);
  fetched.begin(dealing, simt::warp_id(), n_rows * n_used * dealing.tiles);
  at = fetched;
  const auto send_routed = [&] {
    if (fetched.left > 0) {
      const int expert = p.choice_by_block ? choice[0].id[fetched.chunk] : ids[fetched.chunk];
      outputs.send(ring, a.down, expert, p.log2_hidden, fetched.tile);
      fetched.advance(dealing);
    }
    ring.close();
  };
  const auto send_next = [&] {
    if (!rings_shared || fetched_shared.left <= 0) return send_routed();
    outputs.send(ring, a.shared_down, 0, p.log2_shared, fetched_shared.tile);
    fetched_shared.advance(shared_dealing);
    ring.close();
  };
  if (p.choice_by_block) {
    for (; ahead < ring.n_slots; ++ahead) send_next();
  }
  simt::wait_for_previous();
  simt::allow_next();

  const InputRows hidden{p.scratch.hidden, nullptr, 0, p.hidden_width};
  const uint32_t bytes = record_bytes(p.hidden_width), all = row_groups(p.hidden_width);
  uint8_t* records = smem + plan.records;
  if (!p.choice_by_block) {
    for (int i = simt::thread_id(); i < n_rows * n_used; i += kDotThreads) ids[i] = p.scratch.ids[i];
    __syncthreads();
    for (; ahead < ring.n_slots; ++ahead) send_next();
  }
  for (int t = 0; t < n_rows; ++t) {
    if (p.hidden_width > 5 * 4 * kDotThreads) {
      make_record(hidden, t, true, {}, load_row<8>(hidden, t), records + t * bytes);
    } else {
      make_record(hidden, t, true, {}, load_row<5>(hidden, t), records + t * bytes);
    }
  }
  __syncthreads();

  const DownShares shares{p, outputs, n_rows, n_used, reinterpret_cast<float*>(smem + plan.shares)};
  if constexpr (kHasFormat<S>) {
    for (; at_shared.left > 0; at_shared.advance(shared_dealing)) {
      float acc[kDownRows] = {};
      const int last = outputs.last(p.log2_shared, at_shared.tile);
      multiply_down<SharedFormat>(ring.take(), a.shared_down.row_bytes, row_groups(a.shared_down.width), p.log2_shared,
                                  last, books, records + at_shared.chunk * bytes, all,
                                  static_cast<uint32_t>(p.shared_at / kGroup / 2), acc);
      ring.release();
      send_next();
      shares.store(at_shared.chunk, n_used, p.log2_shared, at_shared.tile, acc);
    }
  }
  const uint32_t G = row_groups(a.down.width);
  for (; at.left > 0; at.advance(dealing)) {
    const int t = n_rows == 1 ? 0 : at.chunk / n_used, k = at.chunk - t * n_used;
    float acc[kDownRows] = {};
    const int last = outputs.last(p.log2_hidden, at.tile);
    multiply_down<F>(ring.take(), a.down.row_bytes, G, p.log2_hidden, last, books, records + t * bytes, all,
                     static_cast<uint32_t>(k) * (G / 2), acc);
    ring.release();
    send_routed();
    shares.store(t, k, p.log2_hidden, at.tile, acc);
  }
  if constexpr (!kHasFormat<S>) shares.multiply_any_shared(records, bytes, all);
  __syncthreads();
  shares.add_to_residual(choice[0]);
}

template <class F, class S>
Status launch_ring_down(const Stream& stream, const MoePlan& p) {
  const MoeArgs& a = p.args;
  if (!p.made_hidden) {
    RingDownPlan plan;
    plan.plan = p;
    plan.slot_bytes = ring_down_slot(p, kHasFormat<S>, kDownRows);
    const size_t records = size_t{record_bytes(p.hidden_width)} * a.n_rows;
    const RingRoom room(simt::shared_limit(), book_bytes<F>() + records + few_shares_bytes(p) * a.n_rows,
                        plan.slot_bytes, kDotWarps);
    plan.n_slots = room.slots;
    const int blocks = min(a.down.rows, max(room.blocks * a.n_sms, simt::div_up(a.down.rows, kFewOutputs)));
    plan.outputs = UnitSplit(a.down.rows, blocks);
    plan.rings = book_bytes<F>();
    plan.records = plan.rings + static_cast<uint32_t>(kDotWarps * plan.n_slots) * plan.slot_bytes;
    plan.shares = plan.records + static_cast<uint32_t>(records);
    const size_t shared =
        plan.shares + sizeof(float) * static_cast<size_t>(plan.outputs.most() * a.n_rows * (a.n_used + 1));
    return simt::launch(ring_down_kernel<F, S>,
                        {static_cast<unsigned>(blocks), kDotThreads, shared, stream, a.dependent}, plan);
  }
  RingGroupedPlan plan;
  plan.plan = p;
  plan.slot_bytes = ring_down_slot(p, kHasFormat<S>, kGroupedRows<F>);
  plan.groups = GroupRoom(a);
  const RingRoom grouped(simt::shared_limit(), book_bytes<F>() + plan.groups.bytes, plan.slot_bytes, kDotWarps);
  const int blocks = grouped.blocks * a.n_sms;
  const int tiles = simt::div_up(a.down.rows, kGroupedRows<F> * 32 >> p.log2_hidden);
  plan.dealing = RunDealing(tiles, down_rounds(p), kDotWarps, blocks);
  plan.shared_dealing = deal_to_blocks(simt::div_up(a.down.rows, kDownRows * 32 >> p.log2_shared), blocks);
  plan.n_slots = grouped.slots;
  plan.rings = book_bytes<F>();
  plan.grouped = plan.rings + static_cast<uint32_t>(kDotWarps * plan.n_slots) * plan.slot_bytes;
  TRY(simt::launch(ring_grouped_down_kernel<F, S>,
                   {static_cast<unsigned>(blocks), kDotThreads, plan.grouped + plan.groups.bytes, stream, a.dependent},
                   plan));
  return launch_add_experts(stream, p);
}

}  // namespace chimere::cuda
