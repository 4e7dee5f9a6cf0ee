// moe_ring.h  The expert kernels of a format, with weights that come through a ring of each warp (ring.h).
//
// Units of the shared expert come first: their weights do not depend on the choice, and are sent for before anything
// else is known. Blocks take neighbouring units: the rows of activations that a chunk needs are then in the first-level
// cache.
#pragma once

#include "backend/cuda/simt/simt.h"

#include <algorithm>
#include <type_traits>

#include "backend/cuda/kernels/matvec_device.h"
#include "backend/cuda/kernels/moe_any.h"
#include "backend/cuda/kernels/ring.h"
#include "backend/cuda/kernels/staged.h"

namespace chimere::cuda {

// Of a multiprocessor, at most; registers of one row leave room for a block of the next kernel.
inline constexpr int kRingBlocks = 2;
using MoeUnits = WarpUnits<kDotWarps>;

// The largest working memory that blocks take for rows they quantise themselves.
inline constexpr size_t kFusedBytes = 48 * 1024;

template <class S>
inline constexpr bool kHasFormat = !std::is_same_v<S, NoFormat>;

// The part of `all` units that a block takes.
struct BlockPart {
  int first, end;
  __device__ __forceinline__ explicit BlockPart(int all) {
    const auto blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
    const int each = all / blocks, extra = all - each * blocks;
    first = block * each + min(block, extra);
    end = first + each + (block < extra ? 1 : 0);
  }
};

// Sums 2i and 2i + 1 of the kN values over each `lanes` neighbouring lanes: store(i, first, second), once for each i,
// on one of the lanes. The sums are lane_sum's, bit for bit.
template <int kLanes, int kN, class Store>
__device__ __forceinline__ void scatter_pairs(float (&v)[kN], Store store) {
  scatter_sums<kLanes>(v);
  const int lane = simt::lane_id() % kLanes;
  if constexpr (kN > kLanes) {
    constexpr int kMine = kN / kLanes / 2;
#pragma unroll
    for (int i = 0; i < kMine; ++i) store(lane * kMine + i, v[2 * i], v[2 * i + 1]);
  } else {
    constexpr int kShare = kLanes / kN;
    const float second = __shfl_down_sync(simt::kAllLanes, v[0], kShare);
    if (lane % (2 * kShare) == 0) store(lane / (2 * kShare), v[0], second);
  }
}
template <int kN, class Store>
__device__ __forceinline__ void finish_pairs(float (&v)[kN], int lanes, Store store) {
  if (lanes == 32) return scatter_pairs<32>(v, store);
  if (lanes == 16) return scatter_pairs<16>(v, store);
  if (lanes == 8) return scatter_pairs<8>(v, store);
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) {
    const float first = lane_sum(v[2 * i], lanes), second = lane_sum(v[2 * i + 1], lanes);
    if (simt::lane_id() % lanes == 0) store(i, first, second);
  }
}

// Loads behind it do not start before it: what is asked for too early takes registers that others need.
__device__ __forceinline__ void keep_order() { asm volatile("" ::: "memory"); }

// Elements of the hidden rows: rows of gate and up for up to kT rows of activations. An element is one row of each; of
// experts without gates it is two neighbouring rows of up. A unit is kE elements a lane, side by side as many as there
// is room for in a warp.
template <class F, int kT, int kE, bool kShared>
struct RingUp {
  const MoePlan& p;

  __device__ __forceinline__ const Weight& gate() const { return kShared ? p.args.shared_gate : p.args.gate; }
  __device__ __forceinline__ const Weight& up() const { return kShared ? p.args.shared_up : p.args.up; }

  CHIMERE_BOTH static int per_unit(const MoePlan& p) { return kE * 32 >> p.log2_in; }
  CHIMERE_BOTH static int n_elements(const Weight& gate, const Weight& up) { return gate ? up.rows : up.rows / 2; }
  static int tiles(const MoePlan& p) {
    return kShared ? simt::div_up(n_elements(p.args.shared_gate, p.args.shared_up), per_unit(p))
                   : simt::div_up(n_elements(p.args.gate, p.args.up), per_unit(p));
  }
  static uint32_t slot_bytes(const MoePlan& p) {
    const Weight& w = kShared ? p.args.shared_up : p.args.up;
    return 2u * static_cast<uint32_t>(per_unit(p)) * w.row_bytes;
  }

  __device__ __forceinline__ int here(int first) const { return min(per_unit(p), n_elements(gate(), up()) - first); }

  __device__ __forceinline__ void send(WarpRing& ring, int expert, int tile) const {
    const int first = tile * per_unit(p);
    const uint32_t run = static_cast<uint32_t>(here(first)) * up().row_bytes;
    if (gate()) {
      ring.send(0, gate().row(expert, first), run);
      ring.send(static_cast<uint32_t>(per_unit(p)) * up().row_bytes, up().row(expert, first), run);
    } else {
      ring.send(0, up().row(expert, 2 * first), 2 * run);
    }
  }

  // Element f of pair i of chunk u.
  __device__ __forceinline__ void put(int expert, int pair, int f, float of_gate, float of_up, float* hidden) const {
    float* to = hidden_row(p, hidden, pair, up().rows);
    if (!gate()) {
      float none = 0;
      if (!kShared) add_up_biases(p, expert, 2 * f, none, of_gate);
      if (!kShared) add_up_biases(p, expert, 2 * f + 1, none, of_up);
      to[2 * f] = activated(p.args.activation, none, of_gate);
      to[2 * f + 1] = activated(p.args.activation, none, of_up);
      return;
    }
    if (!kShared) add_up_biases(p, expert, f, of_gate, of_up);
    to[f] = activated(p.args.activation, of_gate, of_up);
  }

  // The rows of a unit are at `slot`. one_inverse: 1 / rms of the row when there is but one.
  __device__ __forceinline__ void multiply(SharedRow slot, const UpChunk& u, int tile, const CodeBooks& books,
                                           const uint8_t* records, float one_inverse) const {
    const uint32_t G = row_groups(up().width), row_bytes = up().row_bytes, record = record_bytes(up().width);
    const int lanes = 1 << p.log2_in, first = tile * per_unit(p), last = here(first) - 1;
    const int sub = simt::lane_id() >> p.log2_in, side = 32 >> p.log2_in;
    // Elements past the end are the last one, once more: they are computed and not stored.
    SharedRow rows[2 * kE];
#pragma unroll
    for (int e = 0; e < kE; ++e) {
      const auto at = static_cast<uint32_t>(min(e * side + sub, last));
      const uint32_t second = gate() ? static_cast<uint32_t>(per_unit(p)) + at : 2 * at + 1;
      rows[2 * e] = {slot.at + (gate() ? at : 2 * at) * row_bytes};
      rows[2 * e + 1] = {slot.at + second * row_bytes};
    }
    float acc[kT * 2 * kE] = {};  // [row of activations][element][gate, up]
    for (auto pair = static_cast<uint32_t>(simt::lane_id() & (lanes - 1)); pair < G / 2;
         pair += static_cast<uint32_t>(lanes)) {
#pragma unroll
      for (int e = 0; e < kE; ++e) {
        const Pair<F> raw[2] = {F::load_pair(rows[2 * e], G, pair), F::load_pair(rows[2 * e + 1], G, pair)};
        const auto add_half = [&](auto half) {
          Group w[2];
          F::unpack(raw[0].of[half], books, w[0]);
          F::unpack(raw[1].of[half], books, w[1]);
#pragma unroll
          for (int i = 0; i < kT; ++i) {
            if (i >= u.count) break;
            const ActGroup x = load_act_half<half>(records + (u.pair[i] >> 16) * record, G, pair);
            float* sums = acc + 2 * (i * kE + e);
            sums[0] = add_group<F::kScales, F::kMins>(w[0], x, sums[0]);
            sums[1] = add_group<F::kScales, F::kMins>(w[1], x, sums[1]);
          }
        };
        add_half(std::integral_constant<int, 0>{});
        add_half(std::integral_constant<int, 1>{});
        if (kE > 1) keep_order();
      }
    }
    float* hidden = p.scratch.hidden + (kShared ? p.shared_at : 0);
    finish_pairs(acc, lanes, [&](int j, float of_gate, float of_up) {
      const int i = j / kE, e = j % kE * side + sub;
      if (i >= u.count || e > last) return;
      int pair = u.pair[0];
#pragma unroll
      for (int c = 1; c < kT; ++c) pair = i == c ? u.pair[c] : pair;
      const float by = kT == 1 ? one_inverse : stored_inverse(records + (pair >> 16) * record, up().width);
      put(u.expert, pair, first + e, of_gate * by, of_up * by, hidden);
    });
  }
};

struct RingUpPlan {
  MoePlan plan;
  int tiles = 0, shared_tiles = 0;  // of a chunk
  uint32_t slot_bytes = 0;
  int n_slots = 0;
  uint32_t rings = 0, records = 0;  // offsets in shared memory
};

// F: of the routed experts; S: of the shared one; kT: 1 or kMoeChunk; kE: elements of a lane.
template <class F, class S, int kT, int kE>
__global__ void __launch_bounds__(kDotThreads, kT == 1 ? kRingBlocks + 1 : kRingBlocks)
    ring_up_kernel(const __grid_constant__ RingUpPlan ring_plan) {
  SIMT_SHARED(uint16_t, experts, (kT == 1 ? 1 : kMoePairs));  // of the chunks
  SIMT_SHARED(Choice, choice, 1);
  const MoePlan& p = ring_plan.plan;
  const MoeArgs& a = p.args;
  auto* shared = simt::dynamic_shared<uint8_t>();
  WarpRing ring(shared + ring_plan.rings, ring_plan.slot_bytes, ring_plan.n_slots);
  const RingUp<F, kT, kE, false> routed{p};
  const RingUp<std::conditional_t<kHasFormat<S>, S, F>, kT, 1, true> own{p};
  const bool rings_shared = kHasFormat<S> && a.shared_up;

  MoeUnits fetched_own, fetched, own_at, at;
  int ahead = 0;
  if (rings_shared) {
    const BlockPart part(simt::div_up(a.n_rows, kMoeChunk) * ring_plan.shared_tiles);
    fetched_own.begin(part.first, part.end, ring_plan.shared_tiles);
    own_at = fetched_own;
    for (; ahead < ring.n_slots && fetched_own.left > 0; ++ahead) {
      own.send(ring, 0, fetched_own.tile);
      ring.close();
      fetched_own.advance(ring_plan.shared_tiles);
    }
  }
  const CodeBooks books = open_books<F>(a.up.grids, shared);
  const NormAhead norms = load_norm(a.in);
  if (!kHasFormat<S>) prefetch(a.shared_gate), prefetch(a.shared_up);
  simt::wait_for_previous();
  simt::allow_next();

  RowAhead<2> row;
  if constexpr (kT == 1) row = load_row<2>(a.in, 0);
  const int n_chunks = kT == 1 ? a.n_used : *p.scratch.n_chunks;
  if (kT > 1) {
    for (int i = simt::thread_id(); i < n_chunks; i += kDotThreads) {
      experts[i] = static_cast<uint16_t>(p.scratch.chunks[i].expert);
    }
    __syncthreads();
  } else if (p.choice_by_block) {
    choose_by_block(p, choice[0]);
  }
  const auto expert_of = [&](int chunk) {
    if (kT > 1) return static_cast<int>(experts[chunk]);
    return p.choice_by_block ? choice[0].id[chunk] : p.scratch.chunks[chunk].expert;
  };
  const BlockPart part(n_chunks * ring_plan.tiles);
  fetched.begin(part.first, part.end, ring_plan.tiles);
  at = fetched;
  const auto send_routed = [&] {
    if (fetched.left > 0) {
      routed.send(ring, expert_of(fetched.chunk), fetched.tile);
      fetched.advance(ring_plan.tiles);
    }
    ring.close();
  };
  const auto send_next = [&] {
    if (!rings_shared || fetched_own.left <= 0) return send_routed();
    own.send(ring, 0, fetched_own.tile);
    fetched_own.advance(ring_plan.shared_tiles);
    ring.close();
  };
  for (; ahead < ring.n_slots; ++ahead) send_next();

  const uint8_t* records = p.scratch.in_records;
  float one_inverse = 1.0f;
  if constexpr (kT == 1) {
    records = shared + ring_plan.records;
    one_inverse = stage_one(a.in, 0, norms, row, true, shared + ring_plan.records);
    if (p.choice_by_block && blockIdx.x == 0 && simt::thread_id() <= a.n_used) {
      p.scratch.weights[simt::thread_id()] = choice[0].weight[simt::thread_id()];
      if (simt::thread_id() < a.n_used) p.scratch.ids[simt::thread_id()] = choice[0].id[simt::thread_id()];
    }
    if (!kHasFormat<S>) {
      if (simt::thread_id() == 0) stored_inverse(records, a.in.width) = one_inverse;
      __syncthreads();
    }
  } else if (!p.made_in) {
    records = shared + ring_plan.records;
    stage_records(a.in, norms, nullptr, 0, a.n_rows, true, shared + ring_plan.records);
  } else {
    __syncthreads();  // of the code-book
  }

  UpChunk u{};
  if constexpr (kHasFormat<S>) {
    for (int chunk = -1; own_at.left > 0; own_at.advance(ring_plan.shared_tiles)) {
      if (own_at.chunk != chunk) u = shared_chunk<kT>(p, chunk = own_at.chunk);
      own.multiply(ring.take(), u, own_at.tile, books, records, one_inverse);
      ring.release();
      send_next();
    }
  }
  for (int chunk = -1; at.left > 0; at.advance(ring_plan.tiles)) {
    if (at.chunk != chunk) u = routed_chunk<kT>(p, chunk = at.chunk, choice[0].id);
    routed.multiply(ring.take(), u, at.tile, books, records, one_inverse);
    ring.release();
    send_routed();
  }
  if constexpr (!kHasFormat<S>) {
    if (!a.shared_up) return;
    const int stride = static_cast<int>(gridDim.x) * kDotWarps;
    const int warp = static_cast<int>(blockIdx.x) * kDotWarps + simt::warp_id();
    any_up(p, a.shared_gate, a.shared_up, stride - 1 - warp, simt::div_up(a.n_rows, kMoeChunk), stride, records,
           p.scratch.hidden + p.shared_at, false, [&p](int i) { return shared_chunk<kMoeChunk>(p, i); });
  }
}

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

inline constexpr int kDownRows = 2;     // outputs of a lane
inline constexpr int kFewOutputs = 32;  // of a block, at most, when there are few rows

// Few rows: every block takes some outputs of all experts and adds their shares itself. A chunk is one choice of one
// row, a unit some outputs of it.
struct RingDownPlan {
  MoePlan plan;
  UnitSplit outputs;
  uint32_t slot_bytes = 0;
  int n_slots = 0;
  uint32_t rings = 0, shares = 0, records = 0;  // offsets in shared memory
};

template <class F, class S>
__global__ void __launch_bounds__(kDotThreads, kRingBlocks + 1)
    ring_down_kernel(const __grid_constant__ RingDownPlan plan) {
  SIMT_SHARED(Choice, choice, 1);
  SIMT_SHARED(int32_t, ids, kMoePairs);
  using Own = std::conditional_t<kHasFormat<S>, S, F>;
  const MoePlan& p = plan.plan;
  const MoeArgs& a = p.args;
  auto* shared = simt::dynamic_shared<uint8_t>();
  WarpRing ring(shared + plan.rings, plan.slot_bytes, plan.n_slots);
  const BlockUnits outputs(plan.outputs, static_cast<int>(blockIdx.x));
  const int n_used = a.n_used, n_rows = a.n_rows;
  const bool rings_shared = kHasFormat<S> && a.shared_down;
  const auto per_unit = [](int log2) { return kDownRows * 32 >> log2; };
  const int tiles = simt::div_up(outputs.size(), per_unit(p.log2_hidden));
  const int own_tiles = simt::div_up(outputs.size(), per_unit(p.log2_shared));
  const auto send = [&](const Weight& w, int expert, int log2, int tile) {
    const int first = outputs.first + tile * per_unit(log2);
    ring.send(0, w.row(expert, first), static_cast<uint32_t>(min(per_unit(log2), outputs.end - first)) * w.row_bytes);
  };

  MoeUnits fetched_own, fetched, own_at, at;
  int ahead = 0;
  if (rings_shared) {
    fetched_own.begin(0, n_rows * own_tiles, own_tiles);
    own_at = fetched_own;
    for (; ahead < ring.n_slots && fetched_own.left > 0; ++ahead) {
      send(a.shared_down, 0, p.log2_shared, fetched_own.tile);
      ring.close();
      fetched_own.advance(own_tiles);
    }
  }
  const CodeBooks books = open_books<F>(a.down.grids, shared);
  if (!kHasFormat<S>) prefetch(a.shared_down);
  // The logits are those of the kernel before the one before: they are there when this one may start.
  if (p.choice_by_block) choose_by_block(p, choice[0]);
  fetched.begin(0, n_rows * n_used * tiles, tiles);
  at = fetched;
  const auto send_routed = [&] {
    if (fetched.left > 0) {
      send(a.down, p.choice_by_block ? choice[0].id[fetched.chunk] : ids[fetched.chunk], p.log2_hidden, fetched.tile);
      fetched.advance(tiles);
    }
    ring.close();
  };
  const auto send_next = [&] {
    if (!rings_shared || fetched_own.left <= 0) return send_routed();
    send(a.shared_down, 0, p.log2_shared, fetched_own.tile);
    fetched_own.advance(own_tiles);
    ring.close();
  };
  if (p.choice_by_block) {
    for (; ahead < ring.n_slots; ++ahead) send_next();
  }
  simt::wait_for_previous();
  simt::allow_next();

  const InputRows hidden{p.scratch.hidden, nullptr, 0, p.hidden_width};
  const uint32_t bytes = record_bytes(p.hidden_width), all = row_groups(p.hidden_width);
  uint8_t* records = shared + plan.records;
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

  auto* shares = reinterpret_cast<float*>(shared + plan.shares);  // [output][row of activations][choice, shared]
  const auto store = [&](int t, int k, int log2, int tile, float(&acc)[kDownRows]) {
    const int first = tile * per_unit(log2) + (simt::lane_id() >> log2);
    finish_sums(acc, 1 << log2, [&](int r, float sum) {
      const int o = first + (r << (5 - log2));
      if (o < outputs.size()) shares[(o * n_rows + t) * (n_used + 1) + k] = sum;
    });
  };
  if constexpr (kHasFormat<S>) {
    for (; own_at.left > 0; own_at.advance(own_tiles)) {
      float acc[kDownRows] = {};
      const int last = outputs.size() - own_at.tile * per_unit(p.log2_shared) - 1;
      multiply_down<Own>(ring.take(), a.shared_down.row_bytes, row_groups(a.shared_down.width), p.log2_shared, last,
                         books, records + own_at.chunk * bytes, all, static_cast<uint32_t>(p.shared_at / kGroup / 2),
                         acc);
      ring.release();
      send_next();
      store(own_at.chunk, n_used, p.log2_shared, own_at.tile, acc);
    }
  }
  const uint32_t G = row_groups(a.down.width);
  for (; at.left > 0; at.advance(tiles)) {
    const int t = n_rows == 1 ? 0 : at.chunk / n_used, k = at.chunk - t * n_used;
    float acc[kDownRows] = {};
    const int last = outputs.size() - at.tile * per_unit(p.log2_hidden) - 1;
    multiply_down<F>(ring.take(), a.down.row_bytes, G, p.log2_hidden, last, books, records + t * bytes, all,
                     static_cast<uint32_t>(k) * (G / 2), acc);
    ring.release();
    send_routed();
    store(t, k, p.log2_hidden, at.tile, acc);
  }
  if constexpr (!kHasFormat<S>) {
    for (int i = simt::warp_id(); a.shared_down && i < n_rows * outputs.size(); i += kDotWarps) {
      const int o = i / n_rows, t = i - o * n_rows;
      const float y =
          any_down(p, a.shared_down, 0, outputs.first + o,
                   {records + t * bytes, 0, all, static_cast<uint32_t>(p.shared_at / kGroup)}, p.any_log2_shared,
                   p.scratch.hidden + static_cast<int64_t>(t) * p.hidden_width + p.shared_at);
      if (simt::lane_id() == 0) shares[i * (n_used + 1) + n_used] = y;
    }
  }
  __syncthreads();
  for (int i = simt::thread_id(); i < n_rows * outputs.size(); i += kDotThreads) {
    const int o = i / n_rows, t = i - o * n_rows;
    const float* weights = p.choice_by_block ? choice[0].weight : p.scratch.weights + t * (n_used + 1);
    float sum = 0;
    for (int k = 0; k < n_used; ++k) sum = fmaf(weights[k], shares[i * (n_used + 1) + k], sum);
    sum = add_down_biases(p, t, outputs.first + o, weights, sum);
    if (a.shared_down) sum = fmaf(weights[n_used], shares[i * (n_used + 1) + n_used], sum);
    a.residual[static_cast<int64_t>(t) * a.down.rows + outputs.first + o] += sum;
  }
}

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

// Rows of code-books are short: more of them at a time cost less for each.
template <class F>
inline constexpr bool kShortRows = F::kType == DType::IQ3_S;
template <class F>
inline constexpr int kGroupedRows = kShortRows<F> ? 2 * kDownRows : kDownRows;

struct RingGroupedPlan {
  MoePlan plan;
  int tiles = 0, shared_tiles = 0;
  uint32_t slot_bytes = 0;
  int n_slots = 0;
  uint32_t rings = 0;
};

template <class F, class S>
__global__ void __launch_bounds__(kDotThreads, kRingBlocks)
    ring_grouped_down_kernel(const __grid_constant__ RingGroupedPlan plan) {
  SIMT_SHARED(uint16_t, experts, kMoePairs);
  const MoePlan& p = plan.plan;
  const MoeArgs& a = p.args;
  auto* shared = simt::dynamic_shared<uint8_t>();
  WarpRing ring(shared + plan.rings, plan.slot_bytes, plan.n_slots);
  const RingGroupedDown<F, kGroupedRows<F>, false> routed{p};
  const RingGroupedDown<std::conditional_t<kHasFormat<S>, S, F>, kDownRows, true> own{p};
  const bool rings_shared = kHasFormat<S> && a.shared_down;
  // The chunks are older than the kernel before: they are there when this one may start.
  const int n_chunks = __ldcg(p.scratch.n_chunks);
  for (int i = simt::thread_id(); i < n_chunks; i += kDotThreads) {
    experts[i] = static_cast<uint16_t>(__ldcg(&p.scratch.chunks[i].expert));
  }
  const CodeBooks books = open_books<F>(a.down.grids, shared);
  if (!kHasFormat<S>) prefetch(a.shared_down);
  __syncthreads();
  MoeUnits fetched_own, fetched;
  if (rings_shared) {
    const BlockPart part(simt::div_up(a.n_rows, kMoeChunk) * plan.shared_tiles);
    fetched_own.begin(part.first, part.end, plan.shared_tiles);
  }
  const BlockPart part(n_chunks * plan.tiles);
  fetched.begin(part.first, part.end, plan.tiles);
  MoeUnits own_at = fetched_own, at = fetched;
  const auto send_routed = [&] {
    if (fetched.left > 0) {
      routed.send(ring, experts[fetched.chunk], fetched.tile);
      fetched.advance(plan.tiles);
    }
    ring.close();
  };
  const auto send_next = [&] {
    if (!rings_shared || fetched_own.left <= 0) return send_routed();
    own.send(ring, 0, fetched_own.tile);
    fetched_own.advance(plan.shared_tiles);
    ring.close();
  };
  for (int i = 0; i < ring.n_slots; ++i) send_next();
  simt::wait_for_previous();
  simt::allow_next();

  UpChunk u{};
  if constexpr (kHasFormat<S>) {
    for (int chunk = -1; own_at.left > 0; own_at.advance(plan.shared_tiles)) {
      if (own_at.chunk != chunk) u = shared_chunk<kMoeChunk>(p, chunk = own_at.chunk);
      own.multiply(ring.take(), u, own_at.tile, books);
      ring.release();
      send_next();
    }
  }
  for (int chunk = -1; at.left > 0; at.advance(plan.tiles)) {
    if (at.chunk != chunk) u = routed_chunk<kMoeChunk>(p, chunk = at.chunk, nullptr);
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

Status launch_any_up(const Stream& stream, const MoePlan& p);
Status launch_any_down(const Stream& stream, const MoePlan& p);
// residual += the weighted outputs that ring_grouped_down_kernel left.
Status launch_add_experts(const Stream& stream, const MoePlan& p);

// The records that the blocks of a launch for few rows have room for. Whether there is room for a kernel at all must
// not depend on the number of rows: the kernels for any type have another order of additions.
inline size_t few_records_bytes(int width) {
  const size_t bytes = record_bytes(width);
  return bytes * std::clamp<size_t>(kFusedBytes / bytes, 1, kFusedRows);
}

// False when the blocks do not find room.
template <class F, class S, int kT, int kE>
Result<bool> launch_ring_up(const Stream& stream, const MoePlan& p) {
  using Routed = RingUp<F, kT, kE, false>;
  using Own = RingUp<F, kT, 1, true>;
  const MoeArgs& a = p.args;
  RingUpPlan plan;
  plan.plan = p;
  plan.tiles = Routed::tiles(p);
  plan.slot_bytes = Routed::slot_bytes(p);
  if (kHasFormat<S> && a.shared_up) {
    plan.shared_tiles = Own::tiles(p);
    plan.slot_bytes = max(plan.slot_bytes, Own::slot_bytes(p));
  }
  const size_t records = p.made_in ? 0 : size_t{record_bytes(a.in.width)} * a.n_rows;
  const RingRoom least(book_bytes<F>() + few_records_bytes(a.in.width), plan.slot_bytes, kDotWarps);
  const RingRoom room(book_bytes<F>() + records, plan.slot_bytes, kDotWarps);
  if (least.blocks == 0) return false;
  plan.n_slots = room.slots;
  plan.rings = book_bytes<F>();
  plan.records = plan.rings + static_cast<uint32_t>(kDotWarps * plan.n_slots) * plan.slot_bytes;
  TRY(simt::launch(
      ring_up_kernel<F, S, kT, kE>,
      {static_cast<unsigned>(room.blocks * a.n_sms), kDotThreads, plan.records + records, stream, a.dependent}, plan));
  return true;
}

template <class F, class S>
Status launch_moe_up(const Stream& stream, const MoePlan& p) {
  if (p.args.n_rows == 1) {
    TRY_ASSIGN(const bool done, (launch_ring_up<F, S, 1, 1>(stream, p)));
    return done ? Status{Ok{}} : launch_any_up(stream, p);
  }
  if constexpr (kShortRows<F>) {
    TRY_ASSIGN(const bool done, (launch_ring_up<F, S, kMoeChunk, 2>(stream, p)));
    if (done) return Ok{};
  }
  TRY_ASSIGN(const bool done, (launch_ring_up<F, S, kMoeChunk, 1>(stream, p)));
  return done ? Status{Ok{}} : launch_any_up(stream, p);
}

template <class F, class S>
Status launch_moe_down(const Stream& stream, const MoePlan& p) {
  const MoeArgs& a = p.args;
  const auto slot = [&](int n) {
    const uint32_t routed = static_cast<uint32_t>(n * 32 >> p.log2_hidden) * a.down.row_bytes;
    const uint32_t own = static_cast<uint32_t>(kDownRows * 32 >> p.log2_shared) * a.shared_down.row_bytes;
    return kHasFormat<S> && a.shared_down ? max(routed, own) : routed;
  };
  const size_t shares = sizeof(float) * static_cast<size_t>(kFewOutputs * (a.n_used + 1));  // of a row
  const RingRoom least(book_bytes<F>() + few_records_bytes(p.hidden_width) + shares * kFusedRows, slot(kDownRows),
                       kDotWarps);
  const RingRoom grouped(book_bytes<F>(), slot(kGroupedRows<F>), kDotWarps);
  if (least.blocks == 0 || grouped.blocks == 0) return launch_any_down(stream, p);
  if (!p.made_hidden) {
    RingDownPlan plan;
    plan.plan = p;
    plan.slot_bytes = slot(kDownRows);
    const size_t records = size_t{record_bytes(p.hidden_width)} * a.n_rows;
    const RingRoom room(book_bytes<F>() + records + shares * a.n_rows, plan.slot_bytes, kDotWarps);
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
  plan.tiles = simt::div_up(a.down.rows, kGroupedRows<F> * 32 >> p.log2_hidden);
  plan.shared_tiles = simt::div_up(a.down.rows, kDownRows * 32 >> p.log2_shared);
  plan.slot_bytes = slot(kGroupedRows<F>);
  plan.n_slots = grouped.slots;
  plan.rings = book_bytes<F>();
  const size_t shared = plan.rings + static_cast<size_t>(kDotWarps * plan.n_slots) * plan.slot_bytes;
  TRY(simt::launch(ring_grouped_down_kernel<F, S>,
                   {static_cast<unsigned>(grouped.blocks * a.n_sms), kDotThreads, shared, stream, a.dependent}, plan));
  return launch_add_experts(stream, p);
}

}  // namespace chimere::cuda
