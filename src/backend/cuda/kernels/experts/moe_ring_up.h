// moe_ring_up.h  The experts' up-projection for one format: hidden rows, through the rings of moe_ring.h.
#pragma once

#include "backend/cuda/simt/simt.h"

#include <type_traits>

#include "backend/cuda/kernels/experts/moe_ring.h"

namespace chimere::cuda {

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
  __device__ __forceinline__ int here(int first) const { return min(per_unit(p), n_elements(gate(), up()) - first); }

  __device__ __forceinline__ void send(WarpRing& ring, int expert, int tile) const {
    const int first = tile * per_unit(p);
    const uint32_t run = static_cast<uint32_t>(here(first)) * up().row_bytes;
    if (gate()) {
      ring.send(0, gate().expert_row(expert, first), run);
      ring.send(static_cast<uint32_t>(per_unit(p)) * up().row_bytes, up().expert_row(expert, first), run);
    } else {
      ring.send(0, up().expert_row(expert, 2 * first), 2 * run);
    }
  }

  // Element f of an assignment; without gates, elements 2f and 2f + 1.
  __device__ __forceinline__ void put(int expert, int assignment, int f, float of_gate, float of_up,
                                      float* hidden) const {
    float* to = hidden_row(p, hidden, assignment, up().rows);
    if (!gate()) {
      float none = 0;
      if (!kShared) add_up_biases(p, expert, 2 * f + 1, none, of_up);
      to[2 * f + 1] = activated(p.args.activation, none, of_up);
      of_up = of_gate;
      of_gate = 0;
      f *= 2;
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
    // Elements past the end repeat the last one: they are computed and not stored.
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
            const ActGroup x = load_act_half<half>(records + (u.assignment[i] >> 16) * record, G, pair);
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
    finish_twos(acc, lanes, [&](int j, float of_gate, float of_up) {
      const int i = j / kE, e = j % kE * side + sub;
      if (i >= u.count || e > last) return;
      int assignment = u.assignment[0];
#pragma unroll
      for (int c = 1; c < kT; ++c) assignment = i == c ? u.assignment[c] : assignment;
      const float by = kT == 1 ? one_inverse : stored_inverse(records + (assignment >> 16) * record, up().width);
      put(u.expert, assignment, first + e, of_gate * by, of_up * by, hidden);
    });
  }
};

struct RingUpPlan {
  MoePlan plan;
  Dealing dealing, shared_dealing;
  GroupRoom groups;  // of several rows
  uint32_t slot_bytes = 0;
  int n_slots = 0;
  uint32_t rings = 0, grouped = 0, records = 0;  // offsets in shared memory
};

// The choices of all rows, by a warp a row. What the kernels behind read of them is left by the first block. A barrier has
// to follow.
__device__ __forceinline__ void choose_for_all(const MoePlan& p, Choice* choices) {
  const MoeArgs& a = p.args;
  const int t = simt::warp_id(), n_used = a.n_used, lane = simt::lane_id();
  if (t >= a.n_rows) return;
  const Candidate mine = choose_ids(
      p, choices[t], [](int, int) {}, t);
  if (blockIdx.x > 0) return;
  weigh_choice(p, mine, choices[t], t);
  __syncwarp();
  if (lane <= n_used) p.scratch.weights[t * (n_used + 1) + lane] = choices[t].weight[lane];
  if (lane >= n_used) return;
  p.scratch.ids[t * n_used + lane] = choices[t].id[lane];
  count_use(a, choices[t].id[lane]);
}

// F: format of the routed experts; S: of the shared one; kT: 1 or kMoeChunk; kE: elements per lane; kWarps: of a block,
// kDotWarps or, with the records of all rows in its shared memory, kOneWarps.
template <class F, class S, int kT, int kE, int kWarps>
__global__ void __launch_bounds__(32 * kWarps, kWarps == kOneWarps ? 1
                                               : kT == 1           ? kRingBlocks + 1
                                                                   : kRingBlocks)
    ring_up_kernel(const __grid_constant__ RingUpPlan ring_plan) {
  constexpr bool kNear = kWarps == kOneWarps;
  SIMT_SHARED(Choice, choice, kNear ? kNearChoices : 1);
  SIMT_SHARED(uint64_t, records_arrived, 1);
  const MoePlan& p = ring_plan.plan;
  const MoeArgs& a = p.args;
  auto* smem = simt::dynamic_shared<uint8_t>();
  WarpRing ring(smem + ring_plan.rings, ring_plan.slot_bytes, ring_plan.n_slots);
  const RingUp<F, kT, kE, false> routed{p};
  const RingUp<std::conditional_t<kHasFormat<S>, S, F>, kT, 1, true> shared_expert{p};
  const bool rings_shared = kHasFormat<S> && a.shared_up;

  const Dealing &dealing = ring_plan.dealing, &shared_dealing = ring_plan.shared_dealing;
  const int shared_units = rings_shared ? simt::div_up(a.n_rows, kMoeChunk) * shared_dealing.tiles : 0;
  DealtUnits fetched_shared, fetched;
  int ahead = 0;
  fetched_shared.begin(shared_dealing, first_dealt<kWarps>(0), shared_units);
  DealtUnits at_shared = fetched_shared;
  for (; ahead < ring.n_slots && fetched_shared.left > 0; ++ahead) {
    shared_expert.send(ring, 0, fetched_shared.tile);
    ring.close();
    fetched_shared.advance(shared_dealing);
  }
  const GroupsOfBlock<kWarps> groups{a, ring_plan.groups, smem + ring_plan.grouped};
  if (kT > 1) groups.begin();
  if (kNear && simt::thread_id() == 0) simt::bulk_begin(records_arrived);
  const CodeBooks books = open_books<F>(a.up.grids, smem);
  const NormAhead norms = load_norm(a.in);
  if (!kHasFormat<S>) prefetch(a.shared_gate), prefetch(a.shared_up);
  simt::wait_for_previous();
  simt::allow_next();

  if (kNear && simt::thread_id() == 0) {
    simt::bulk_copy(smem + ring_plan.records, p.scratch.in_records,
                    static_cast<uint32_t>(a.n_rows) * record_bytes(a.in.width), records_arrived);
    simt::bulk_end(records_arrived);
  }
  RowAhead<2> row;
  if constexpr (kT == 1) row = load_row<2>(a.in, 0);
  int n_chunks = a.n_used;
  if constexpr (kNear) {
    if (p.choice_by_block) {
      choose_for_all(p, choice);
      __syncthreads();
      n_chunks = groups.group_by([&](int pair) { return choice[pair / a.n_used].id[pair % a.n_used]; });
    } else {
      __syncthreads();
      n_chunks = groups.group(p.scratch.ids);
    }
  } else if constexpr (kT > 1) {
    __syncthreads();
    n_chunks = groups.group(p.scratch.ids);
  } else if (p.choice_by_block) {
    choose_by_block(p, choice[0]);
  }
  const auto expert_of = [&](int chunk) {
    if (kT > 1) return groups.expert(chunk);
    return p.choice_by_block ? choice[0].id[chunk] : p.scratch.ids[chunk];
  };
  fetched.begin(dealing, first_dealt<kWarps>(block_behind<kWarps>(shared_units)), n_chunks * dealing.tiles);
  DealtUnits at = fetched;
  const auto send_routed = [&] {
    if (fetched.left > 0) {
      routed.send(ring, expert_of(fetched.chunk), fetched.tile);
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
  for (; ahead < ring.n_slots; ++ahead) send_next();

  const uint8_t* records = p.scratch.in_records;
  float one_inverse = 1.0f;
  if constexpr (kT == 1) {
    records = smem + ring_plan.records;
    one_inverse = stage_one(a.in, 0, norms, row, true, smem + ring_plan.records);
    if (p.choice_by_block && blockIdx.x == 0 && simt::thread_id() <= a.n_used) {
      p.scratch.weights[simt::thread_id()] = choice[0].weight[simt::thread_id()];
      if (simt::thread_id() < a.n_used) {
        p.scratch.ids[simt::thread_id()] = choice[0].id[simt::thread_id()];
        count_use(a, choice[0].id[simt::thread_id()]);
      }
    }
    if (!kHasFormat<S>) {
      if (simt::thread_id() == 0) stored_inverse(records, a.in.width) = one_inverse;
      __syncthreads();
    }
  } else if constexpr (kNear) {
    records = smem + ring_plan.records;
    simt::bulk_wait(records_arrived);
    __syncthreads();  // of the codebook
  } else if (!p.made_in) {
    records = smem + ring_plan.records;
    stage_records(a.in, norms, nullptr, 0, a.n_rows, true, smem + ring_plan.records);
  } else {
    __syncthreads();  // of the codebook
  }

  UpChunk u{};
  if constexpr (kHasFormat<S>) {
    for (int chunk = -1; at_shared.left > 0; at_shared.advance(shared_dealing)) {
      if (at_shared.chunk != chunk) u = shared_chunk<kT>(p, chunk = at_shared.chunk);
      shared_expert.multiply(ring.take(), u, at_shared.tile, books, records, one_inverse);
      ring.release();
      send_next();
    }
  }
  for (int chunk = -1; at.left > 0; at.advance(dealing)) {
    if (at.chunk != chunk) u = kT == 1 ? one_row_chunk(expert_of(at.chunk), at.chunk) : groups.chunk(at.chunk);
    chunk = at.chunk;
    routed.multiply(ring.take(), u, at.tile, books, records, one_inverse);
    ring.release();
    send_routed();
  }
  if constexpr (!kHasFormat<S>) {
    if (!a.shared_up) return;
    const int stride = static_cast<int>(gridDim.x) * kWarps;
    const int warp = static_cast<int>(blockIdx.x) * kWarps + simt::warp_id();
    any_up(p, a.shared_gate, a.shared_up, stride - 1 - warp, simt::div_up(a.n_rows, kMoeChunk), stride, records,
           p.scratch.hidden + p.shared_at, false, [&p](int i) { return shared_chunk<kMoeChunk>(p, i); });
  }
}

template <class F, class S, int kT, int kE, int kWarps = kDotWarps>
Status launch_ring_up(const Stream& stream, const MoePlan& p) {
  const MoeArgs& a = p.args;
  RingUpPlan plan;
  plan.plan = p;
  if (kT > 1) plan.groups = GroupRoom(a);
  plan.slot_bytes = ring_up_slot(p, kHasFormat<S>, kE);
  constexpr bool kNear = kWarps == kOneWarps;
  const size_t records = p.made_in && !kNear ? 0 : size_t{record_bytes(a.in.width)} * a.n_rows;
  int per_sm = 1;
  if constexpr (kNear) {
    plan.n_slots = near_slots(p, this_card(a.n_sms), kHasFormat<S>, kE);
  } else {
    const RingRoom room(simt::shared_limit(), book_bytes<F>() + plan.groups.bytes + records, plan.slot_bytes,
                        kDotWarps);
    per_sm = room.blocks;
    plan.n_slots = room.slots;
  }
  const int blocks = per_sm * a.n_sms;
  plan.dealing = deal_to_blocks(RingUp<F, kT, kE, false>::tiles(p), blocks, kWarps);
  if (kHasFormat<S> && a.shared_up) {
    plan.shared_dealing = deal_to_blocks(RingUp<F, kT, 1, true>::tiles(p), blocks, kWarps);
  }
  plan.rings = book_bytes<F>();
  plan.grouped = plan.rings + static_cast<uint32_t>(kWarps * plan.n_slots) * plan.slot_bytes;
  plan.records = plan.grouped + plan.groups.bytes;
  return simt::launch(ring_up_kernel<F, S, kT, kE, kWarps>,
                      {static_cast<unsigned>(blocks), 32 * kWarps, plan.records + records, stream, a.dependent}, plan);
}

// REQUIRES: ExpertsKernel::ring was chosen; of several rows, `elements` is what a lane takes, and `near` whether their
// records lie in shared memory.
template <class F, class S>
Status launch_ring_up(const Stream& stream, const MoePlan& p, int elements, bool near) {
  if (p.args.n_rows == 1) return launch_ring_up<F, S, 1, 1>(stream, p);
  if constexpr (most_up_elements(F::kType) == 2) {
    if (elements == 2 && near) return launch_ring_up<F, S, kMoeChunk, 2, kOneWarps>(stream, p);
    if (elements == 2) return launch_ring_up<F, S, kMoeChunk, 2>(stream, p);
  }
  if (near) return launch_ring_up<F, S, kMoeChunk, 1, kOneWarps>(stream, p);
  return launch_ring_up<F, S, kMoeChunk, 1>(stream, p);
}

}  // namespace chimere::cuda
