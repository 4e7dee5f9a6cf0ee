// moe_one_up.h  The way up of the experts for one row: quantised hidden elements.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/moe_one.h"

namespace chimere::cuda {

inline constexpr int kOneUpWarps = 16;
inline constexpr size_t kOneUpBytes = 136 * 1024;          // of slots, at most
inline constexpr int kOneElements = kGroup / kOneUpWarps;  // of a warp, in a group
static_assert(kOneElements == 2 && kOneUpWarps > kDotWarps);

// 45,056 of a multiprocessor's 65,536 registers, as the products before and after.
#if defined(__CUDACC__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1204
#define CHIMERE_ONE_UP __maxnreg__(88)
#else
#define CHIMERE_ONE_UP __launch_bounds__(32 * kOneUpWarps)
#endif

// A block makes groups block, block + blocks, ...: the groups of the choices, then those of the shared expert.
struct OneUpPlan {
  MoePlan plan;
  int groups = 0, groups_an_expert = 0;
  UnitSplit rounds;  // of the blocks
  int blocks = 0, n_slots = 0;
  uint32_t slot_bytes = 0, slots = 0, record = 0, values = 0, bytes = 0;  // offsets, and the end

  // Without slots when there is no room.
  static OneUpPlan of(const MoePlan& p) {
    const MoeArgs& a = p.args;
    OneUpPlan r;
    r.plan = p;
    r.groups_an_expert = a.up.rows / kGroup;
    r.groups = a.n_used * r.groups_an_expert + a.shared_up.rows / kGroup;
    r.blocks = min(r.groups, a.n_sms);
    r.rounds = UnitSplit(r.groups, r.blocks);
    r.slot_bytes = (a.gate ? 2u : 1u) * kOneElements * max(a.up.row_bytes, a.shared_up.row_bytes);
    r.slots = one_book_bytes(a.up.type);
    const auto values = static_cast<uint32_t>(sizeof(float)) * kGroup * static_cast<uint32_t>(r.rounds.most());
    r.n_slots =
        one_slots(r.rounds.most(), r.slot_bytes, kOneUpWarps, r.slots + record_bytes(a.in.width) + values, kOneUpBytes);
    r.record = r.slots + static_cast<uint32_t>(kOneUpWarps * r.n_slots) * r.slot_bytes;
    r.values = r.record + record_bytes(a.in.width);
    r.bytes = r.values + values;
    return r;
  }
};

// Two neighbouring elements of an expert, from f on; their rows lie in the slot: two of gate, two of up.
template <class F>
__device__ __forceinline__ void one_up_elements(const MoePlan& p, SharedRow slot, uint32_t row_bytes, bool gated,
                                                int routed_expert, int f, const CodeBooks& books, const uint8_t* record,
                                                float inverse, float* to) {
  const uint32_t G = row_groups(p.args.in.width);
  const int lanes = 1 << p.log2_in, sub = simt::lane_id() >> p.log2_in;
  const auto first_pair = static_cast<uint32_t>(simt::lane_id() & (lanes - 1));
  const bool side_by_side = lanes < 32;
  const auto store = [&](int e, float gate, float up) {
    gate *= inverse;
    up *= inverse;
    if (routed_expert >= 0) add_up_biases(p, routed_expert, f + e, gate, up);
    to[e] = activated(p.args.activation, gate, up);
  };
  if (side_by_side && !gated) {
    const int e = min(sub, 1);
    const SharedRow row{slot.at + static_cast<uint32_t>(e) * row_bytes};
    float acc = 0;
    for (uint32_t pair = first_pair; pair < G / 2; pair += lanes) {
      acc = add_staged_pair<F>(row, G, pair, books, record, G, 0, acc);
    }
    acc = lane_sum(acc, lanes);
    if (first_pair == 0 && sub < 2) store(e, 0, acc);
    return;
  }
#pragma unroll 1
  for (int pass = 0; pass < (gated && !side_by_side ? 2 : 1); ++pass) {
    const int e = side_by_side ? min(sub, 1) : pass;
    const auto at = static_cast<uint32_t>(e) * row_bytes;
    const SharedRow rows[2] = {{slot.at + at}, {slot.at + at + (gated ? 2u : 1u) * row_bytes}};
    float acc[2] = {};
    for (uint32_t pair = first_pair; pair < G / 2; pair += lanes) {
      add_staged_pairs<F>(rows, G, pair, books, record, G, 0, acc);
    }
    const float first = two_lane_sums(acc[0], acc[1], lanes);
    const float second = __shfl_xor_sync(simt::kAllLanes, first, lanes / 2);
    if (first_pair != 0 || sub > 1) continue;
    if (gated) {
      store(e, first, second);
    } else {
      store(0, 0, first);
      store(1, 0, second);
    }
  }
}

template <class F, class S>
__global__ void CHIMERE_ONE_UP one_up_kernel(const __grid_constant__ OneUpPlan one) {
  SIMT_SHARED(uint64_t, arrived, kOneUpWarps * kOneSlots);
  SIMT_SHARED(Choice, choice, 1);
  const MoePlan& p = one.plan;
  const MoeArgs& a = p.args;
  auto* shared = simt::dynamic_shared<uint8_t>();
  const OneSlots slots{shared + one.slots, arrived, one.slot_bytes, one.n_slots};
  const int warp = simt::warp_id(), block = static_cast<int>(blockIdx.x);
  const int rounds = one.rounds.each + (block < one.rounds.extra ? 1 : 0), ahead = min(rounds, one.n_slots);
  const int shared_from = a.n_used * one.groups_an_expert;
  const bool gated = static_cast<bool>(a.gate);  // and so is the shared expert
  const auto group_of = [&](int round) { return block + round * one.blocks; };
  // Of a group: the choice, or n_used for the shared expert, and the first of the warp's elements.
  const auto choice_of = [&](int group) { return group < shared_from ? group / one.groups_an_expert : a.n_used; };
  const auto element_of = [&](int group, int choice, int of_warp) {
    return (group - choice * one.groups_an_expert) * kGroup + of_warp * kOneElements;
  };
  const auto send = [&](int of_warp, int s, int group) {
    const int k = choice_of(group), f = element_of(group, k, of_warp);
    const bool is_own = k == a.n_used;
    const int expert = is_own ? 0 : choice[0].id[k];
    const Weight &gate = is_own ? a.shared_gate : a.gate, &up = is_own ? a.shared_up : a.up;
    const uint32_t run = kOneElements * up.row_bytes;
    uint8_t* to = slots.slot(of_warp, s);
    uint64_t* counter = slots.counter(of_warp, s);
    if (gated) {
      simt::bulk_stream(to, gate.row(expert, f), run, counter);
      to += run;
    }
    simt::bulk_stream(to, up.row(expert, f), run, counter);
    simt::bulk_end(counter);
  };

  slots.open();
  if (simt::lane_id() == 0) {
    for (int s = 0; s < ahead; ++s) {
      if (group_of(s) >= shared_from) send(warp, s, group_of(s));
    }
  }
  const CodeBooks books = open_books<F>(a.up.grids, shared);
  NormAhead norms{};
  if (warp < kDotWarps) norms = load_norm(a.in);
  __syncthreads();
  simt::wait_for_previous();
  simt::allow_next();

  uint8_t* record = shared + one.record;
  if (warp < kDotWarps) {
    make_record(a.in, 0, true, norms, load_row<3>(a.in, 0), record);
  } else if (warp == kDotWarps) {
    choose_and_send(p, choice[0], [&] {
      for (int i = simt::lane_id(); i < ahead * kOneUpWarps; i += 32) {
        const int s = i / kOneUpWarps;
        if (group_of(s) < shared_from) send(i % kOneUpWarps, s, group_of(s));
      }
    });
    // Biases of the way down look there.
    if (block == 0 && simt::lane_id() < a.n_used) p.scratch.ids[simt::lane_id()] = choice[0].id[simt::lane_id()];
  }
  __syncthreads();
  const float inverse = row_inverse(a.in, record);

  auto* values = reinterpret_cast<float*>(shared + one.values);  // [round][element of the group]
  OneTurn turn;
  for (int round = 0; round < rounds; ++round) {
    const int group = group_of(round), k = choice_of(group), f = element_of(group, k, warp);
    const SharedRow slot = turn.take(slots);
    float* to = values + round * kGroup + warp * kOneElements;
    if (k < a.n_used) {
      one_up_elements<F>(p, slot, a.up.row_bytes, gated, choice[0].id[k], f, books, record, inverse, to);
    } else {
      one_up_elements<S>(p, slot, a.shared_up.row_bytes, gated, -1, f, books, record, inverse, to);
    }
    if (round + one.n_slots < rounds) {
      turn.refill(slots, [&](int s) { send(warp, s, group_of(round + one.n_slots)); });
    }
    turn.advance(slots);
  }
  __syncthreads();
  const uint32_t all = row_groups(p.hidden_width);
  for (int first = 4 * warp; first < rounds; first += 4 * kOneUpWarps) {
    const int round = first + simt::lane_id() / 8;
    const bool valid = round < rounds;
    const float4 v = valid ? reinterpret_cast<const float4*>(values)[first * 8 + simt::lane_id()] : float4{};
    const auto chunk = static_cast<uint32_t>(group_of(round) * 8 + simt::lane_id() % 8);
    quantise_quad(v, chunk, valid, all, p.scratch.hidden_records);
  }
}

template <class F, class S>
Status launch_one_up(const Stream& stream, const MoePlan& p) {
  const OneUpPlan plan = OneUpPlan::of(p);
  using Own = std::conditional_t<kHasFormat<S>, S, F>;
  return simt::launch(one_up_kernel<F, Own>,
                      {static_cast<unsigned>(plan.blocks), 32 * kOneUpWarps, plan.bytes, stream, p.args.dependent},
                      plan);
}

}  // namespace chimere::cuda
