// moe_one_up.h  The experts' up-projection for one row: quantised hidden elements.
//
// The kernels for one row have one block per SM (staged.h). Each warp has slots in shared memory that bulk copies fill
// (ring.h). The router leaves the row quantised, and keys by which one warp finds the experts (moe_choice.h). In the
// up-projection every warp issues the copies of its own rows once it knows its expert; the down-projection chooses
// before its input is there, and one warp issues all copies. The up-projection leaves the hidden elements quantised: a
// block computes whole groups of 32 of them, so that the down-projection has nothing to do but products.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/experts/moe_ring.h"

namespace chimere::cuda {

// A block makes groups block, block + blocks, ...: the groups of the shared expert, whose weights are sent for before
// anything is known, then those of the choices.
struct OneUpPlan {
  MoePlan plan;
  int groups = 0, own_groups = 0, groups_an_expert = 0;
  UnitSplit rounds;  // among the blocks
  int blocks = 0, n_slots = 0;
  uint32_t slot_bytes = 0, slots = 0, record = 0, values = 0, bytes = 0;  // offsets, and the end

  OneUpPlan(const MoePlan& p, const OneUpRoom& room)
      : plan(p),
        groups(room.groups),
        own_groups(room.own_groups),
        groups_an_expert(room.groups_an_expert),
        rounds(room.groups, room.blocks),
        blocks(room.blocks),
        n_slots(room.n_slots),
        slot_bytes(room.slot_bytes),
        slots(room.slots),
        record(room.record),
        values(room.values),
        bytes(room.bytes) {}
};

// The products for two neighbouring hidden elements of an expert, whose rows are in the slot: two of gate, if there are
// gates, then two of up. They go to `of_gate` and `of_up`.
template <class F>
__device__ __forceinline__ void one_up_products(const MoePlan& p, SharedRow slot, uint32_t row_bytes, bool gated,
                                                const CodeBooks& books, const uint8_t* record, float* of_gate,
                                                float* of_up) {
  const uint32_t G = row_groups(p.args.in.width);
  const int lanes = 1 << p.log2_in, sub = simt::lane_id() >> p.log2_in;
  const auto first_pair = static_cast<uint32_t>(simt::lane_id() & (lanes - 1));
  const bool side_by_side = lanes < 32;
  if (side_by_side && !gated) {
    const int e = min(sub, 1);
    const SharedRow row{slot.at + static_cast<uint32_t>(e) * row_bytes};
    float acc = 0;
#pragma unroll 1
    for (uint32_t pair = first_pair; pair < G / 2; pair += lanes) {
      acc = add_staged_pair<F>(row, G, pair, books, record, G, 0, acc);
    }
    acc = lane_sum(acc, lanes);
    if (first_pair == 0 && sub < 2) of_up[e] = acc;
    return;
  }
#pragma unroll 1
  for (int pass = 0; pass < (gated && !side_by_side ? 2 : 1); ++pass) {
    const int e = side_by_side ? min(sub, 1) : pass;
    const auto at = static_cast<uint32_t>(e) * row_bytes;
    const SharedRow rows[2] = {{slot.at + at}, {slot.at + at + (gated ? 2u : 1u) * row_bytes}};
    float acc[2] = {};
#pragma unroll 1
    for (uint32_t pair = first_pair; pair < G / 2; pair += lanes) {
      add_staged_pairs<F>(rows, G, pair, books, record, G, 0, acc);
    }
    // The first row's on the lower half of the lanes, the second's on the upper half.
    const float sum = two_lane_sums(acc[0], acc[1], lanes);
    if (sub > 1) continue;
    if (first_pair == 0) (gated ? of_gate : of_up)[e] = sum;
    if (first_pair == static_cast<uint32_t>(lanes / 2)) of_up[gated ? e : 1] = sum;
  }
}

template <class F, class S>
__global__ void CHIMERE_ONE_ROW one_up_kernel(const __grid_constant__ OneUpPlan one) {
  SIMT_SHARED(uint64_t, arrived, kOneWarps * kMostRingSlots + 1);  // the last one is the record's
  SIMT_SHARED(uint64_t, chosen, kBlockUsed);
  SIMT_SHARED(Choice, choice, 1);
  const MoePlan& p = one.plan;
  const MoeArgs& a = p.args;
  auto* smem = simt::dynamic_shared<uint8_t>();
  const BulkSlots slots{smem + one.slots, arrived, one.slot_bytes, one.n_slots};
  uint64_t* of_record = arrived + kOneWarps * kMostRingSlots;
  const int warp = simt::warp_id(), block = static_cast<int>(blockIdx.x);
  const int rounds = one.rounds.each + (block < one.rounds.extra ? 1 : 0), ahead = min(rounds, one.n_slots);
  const int shared_groups = one.own_groups;
  const bool gated = static_cast<bool>(a.gate);  // and so is the shared expert
  const auto group_of = [&](int round) { return block + round * one.blocks; };
  // For a group: the choice, or n_used for the shared expert, and the first of the warp's elements.
  const auto choice_of = [&](int group) {
    return group < shared_groups ? a.n_used : (group - shared_groups) / one.groups_an_expert;
  };
  const auto element_of = [&](int group, int choice, int of_warp) {
    const int first = group < shared_groups ? 0 : shared_groups + choice * one.groups_an_expert;
    return (group - first) * kGroup + of_warp * kOneElements;
  };
  const auto send = [&](int s, int group) {
    const int k = choice_of(group), f = element_of(group, k, warp);
    const bool is_shared = k == a.n_used;
    if (!is_shared) simt::bulk_wait(chosen + k);
    const int expert = is_shared ? 0 : choice[0].id[k];
    const Weight &gate = is_shared ? a.shared_gate : a.gate, &up = is_shared ? a.shared_up : a.up;
    const uint32_t run = kOneElements * up.row_bytes;
    uint8_t* to = slots.slot(warp, s);
    uint64_t* counter = slots.counter(warp, s);
    if (gated) {
      simt::bulk_stream(to, gate.expert_row(expert, f), run, counter);
      to += run;
    }
    simt::bulk_stream(to, up.expert_row(expert, f), run, counter);
    simt::bulk_end(counter);
  };

  slots.open();
  int sent = 0;  // of the warp's slots
  while (sent < ahead && group_of(sent) < shared_groups) {
    if (simt::lane_id() == 0) send(sent, group_of(sent));
    ++sent;
  }
  if (simt::thread_id() < a.n_used) simt::bulk_begin(chosen + simt::thread_id());
  if (simt::thread_id() == 0) simt::bulk_begin(of_record);
  const CodeBooks books = open_books<F>(a.up.grids, smem);
  __syncthreads();
  simt::wait_for_previous();
  simt::allow_next();

  const uint8_t* record = smem + one.record;
  if (simt::thread_id() == 0) {
    simt::bulk_copy(smem + one.record, p.scratch.in_records, record_bytes(a.in.width), of_record);
    simt::bulk_end(of_record);
  }
  if (warp == kOneWarps - 1) {
    const Candidate mine = choose_ids(p, choice[0], [&](int k, int) {
      if (simt::lane_id() == 0) simt::bulk_end(chosen + k);
    });
    // Read by the biases of the down-projection.
    if (block == 0 && simt::lane_id() < a.n_used) {
      p.scratch.ids[simt::lane_id()] = mine.id;
      count_use(a, mine.id);
    }
  }
  if (simt::lane_id() == 0) {
    for (; sent < ahead; ++sent) send(sent, group_of(sent));
  }
  __syncwarp();
  simt::bulk_wait(of_record);

  auto* values = reinterpret_cast<float*>(smem + one.values);  // [round][gate, up][element of the group]
  BulkTurn turn;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const SharedRow slot = turn.take(slots);
    float *of_gate = values + 2 * round * kGroup + warp * kOneElements, *of_up = of_gate + kGroup;
    if (group_of(round) < shared_groups) {
      one_up_products<S>(p, slot, a.shared_up.row_bytes, gated, books, record, of_gate, of_up);
    } else {
      one_up_products<F>(p, slot, a.up.row_bytes, gated, books, record, of_gate, of_up);
    }
    if (round + one.n_slots < rounds) {
      turn.refill(slots, [&](int s) { send(s, group_of(round + one.n_slots)); });
    }
    turn.advance(slots);
  }
  __syncthreads();
  const float inverse = row_inverse(a.in, record);
  const uint32_t all = row_groups(p.hidden_width);
  for (int round = warp; round < rounds; round += kOneWarps) {
    const int group = group_of(round), k = choice_of(group), e = simt::lane_id();
    float gate = values[2 * round * kGroup + e] * inverse, up = values[(2 * round + 1) * kGroup + e] * inverse;
    if (k < a.n_used) add_up_biases(p, choice[0].id[k], element_of(group, k, 0) + e, gate, up);
    // Of the record the choices come first.
    const int at = group < shared_groups ? group + a.n_used * one.groups_an_expert : group - shared_groups;
    quantise_element(activated(a.activation, gate, up), static_cast<uint32_t>(at), all, p.scratch.hidden_records);
  }
}

template <class F, class S>
Status launch_one_up(const Stream& stream, const MoePlan& p) {
  const OneUpPlan plan(p, one_up_room(p, this_card(p.args.n_sms)));
  using Own = std::conditional_t<kHasFormat<S>, S, F>;
  return simt::launch(one_up_kernel<F, Own>,
                      {static_cast<unsigned>(plan.blocks), kOneThreads, plan.bytes, stream, p.args.dependent}, plan);
}

}  // namespace chimere::cuda
