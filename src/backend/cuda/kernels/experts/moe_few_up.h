// moe_few_up.h   hidden[t, k] = activation(gate_k n_t, up_k n_t) for 2 to 7 rows t and their choices k, in bytes
// Shapes    as moe.cu; d_ff and the shared expert's a multiple of 32
// Bytes     the weights of every choice of every row, and for every row those of the shared expert, which come from the
//           L2 cache but once. Of 256 experts 4 rows with 8 choices have 30.5 distinct ones, 8 rows 57.4: sharing what
//           they have in common would save 5 % and 10 %, where the L2 cache does not. 256 experts of [512, 2048] IQ3_S
//           in nibbles: 36 MB for 4 rows, 9.4 us of an H200's memory
// Launch    a block of 16 warps per SM, 64 registers a thread, over groups of 32 hidden elements, so that it can leave
//           them in bytes. A group of a row and choice is a unit; those of the shared expert come first, and are sent
//           for before the choices are known. A unit has two passes, in which a warp has the rows of gate and up of one
//           element, or one pass without gates, with two rows of up: two rows a slot
// Smem      two or three slots a warp (46 KB each with a shared expert of Q5_K; an SM's share of the memory delivers 30 KB
//           in a microsecond), the records of the rows, the sums. As many slots as leave room for a block of the
//           down-projection beside it (experts_choice.cpp)
// Numerics  the bits of moe_one_up.h: the same products of a row, summed in the same order
// Measured  H200, these shapes, three slots, in a step: 12.1 us for 2 rows, 18.7 for 4, 33.7 for 8 (before, one row after
//           the other or rings: 12.8, 23.2, 28.7): so rings take 8 rows
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/experts/moe_one_up.h"

namespace chimere::cuda {

// A block makes units block, block + blocks, ..
struct FewUpPlan {
  MoePlan plan;
  FewUpRoom room;
  UnitSplit rounds;   // units among the blocks
  UnitSplit outputs;  // of the down-projection, among its blocks

  FewUpPlan(const MoePlan& p, const FewUpRoom& room)
      : plan(p), room(room), rounds(room.units, room.blocks), outputs(p.args.down.rows, room.down_blocks) {}
};

// A group of hidden elements of a row and one of its choices, or of the shared expert.
struct FewUpUnit {
  int t, k;   // row, and its choice: n_used for the shared expert
  int group;  // of the expert

  __device__ __forceinline__ FewUpUnit(const FewUpPlan& few, int unit) {
    const MoeArgs& a = few.plan.args;
    const int of_shared = few.room.shared_groups * a.n_rows, each = few.room.groups_an_expert;
    if (unit < of_shared) {
      group = unit / a.n_rows;
      t = unit - group * a.n_rows;
      k = a.n_used;
    } else {
      const int choice = (unit - of_shared) / each;
      group = unit - of_shared - choice * each;
      t = choice / a.n_used;
      k = choice - t * a.n_used;
    }
  }
};

// One lane issues the copies of the warp's rows of a unit and pass.
__device__ __forceinline__ void send_few_up(const MoeArgs& a, const BulkSlots& slots, int slot, const FewUpUnit& unit,
                                            int pass, int expert) {
  const bool is_shared = unit.k == a.n_used;
  const Weight &gate = is_shared ? a.shared_gate : a.gate, &up = is_shared ? a.shared_up : a.up;
  const int warp = simt::warp_id(), row = unit.group * kGroup + (gate ? pass * kOneWarps + warp : 2 * warp);
  uint8_t* to = slots.slot(warp, slot);
  uint64_t* counter = slots.counter(warp, slot);
  const auto copy = [&](const Weight& w, uint8_t* at, uint32_t bytes) {
    if (is_shared) {  // other rows want it too: it stays in the L2 cache
      simt::bulk_copy(at, w.row(0, row), bytes, counter);
    } else {
      simt::bulk_stream(at, w.expert_row(expert, row), bytes, counter);
    }
  };
  if (gate) copy(gate, to, gate.row_bytes);
  copy(up, gate ? to + gate.row_bytes : to, gate ? up.row_bytes : 2 * up.row_bytes);
  simt::bulk_end(counter);
}
static_assert(kGroup == 2 * kOneWarps);

// The products of the two rows in a slot with a record.
template <class F>
__device__ __forceinline__ void multiply_two_rows(const MoePlan& p, SharedRow slot, uint32_t row_bytes,
                                                  const CodeBooks& books, const uint8_t* record, float* first,
                                                  float* second) {
  const uint32_t G = row_groups(p.args.in.width);
  const int lanes = 1 << p.log2_in, sub = simt::lane_id() >> p.log2_in;
  const auto first_pair = static_cast<uint32_t>(simt::lane_id() & (lanes - 1));
  if (lanes == 32) {
    const SharedRow rows[2] = {slot, {slot.at + row_bytes}};
    float acc[2] = {};
#pragma unroll 1
    for (uint32_t pair = first_pair; pair < G / 2; pair += 32u) {
      add_staged_pairs<F>(rows, G, pair, books, record, G, 0, acc);
    }
    const float sum = two_lane_sums(acc[0], acc[1], 32);
    if (simt::lane_id() % 16 == 0) *(simt::lane_id() == 0 ? first : second) = sum;
    return;
  }
  // Side by side.
  const SharedRow row{slot.at + static_cast<uint32_t>(min(sub, 1)) * row_bytes};
  float acc = 0;
#pragma unroll 1
  for (uint32_t pair = first_pair; pair < G / 2; pair += static_cast<uint32_t>(lanes)) {
    acc = add_staged_pair<F>(row, G, pair, books, record, G, 0, acc);
  }
  acc = lane_sum(acc, lanes);
  if (first_pair == 0 && sub < 2) *(sub == 0 ? first : second) = acc;
}

// Elements of a unit, whose sums are in `values`: activated, in bytes, to the row's hidden record. By one warp.
__device__ __forceinline__ void finish_few_up(const FewUpPlan& few, const FewUpUnit& unit, int expert,
                                              const float* values, const uint8_t* records) {
  const MoePlan& p = few.plan;
  const MoeArgs& a = p.args;
  const float inverse = row_inverse(a.in, records + static_cast<uint32_t>(unit.t) * record_bytes(a.in.width));
  const int e = simt::lane_id();
  float gate = values[e] * inverse, up = values[kGroup + e] * inverse;
  if (unit.k < a.n_used) add_up_biases(p, expert, unit.group * kGroup + e, gate, up);
  quantise_element(activated(a.activation, gate, up),
                   static_cast<uint32_t>(unit.k * few.room.groups_an_expert + unit.group), row_groups(p.hidden_width),
                   p.scratch.hidden_records + static_cast<uint32_t>(unit.t) * record_bytes(p.hidden_width));
}

// Prefetches the rows of the chosen experts that the block of this number takes in the down-projection to the L2 cache.
// By every warp, when its last copies are on their way: while those arrive and the next kernel starts, the memory would
// idle.
__device__ __forceinline__ void prefetch_few_down(const FewUpPlan& few, const Choice* choices) {
  const MoeArgs& a = few.plan.args;
  if (static_cast<int>(blockIdx.x) >= few.room.down_blocks) return;
  const BlockUnits outputs(few.outputs, static_cast<int>(blockIdx.x));
  for (int c = simt::warp_id() + kOneWarps * simt::lane_id(); c < a.n_rows * a.n_used; c += 32 * kOneWarps) {
    const int expert = choices[c / a.n_used].id[c % a.n_used];
    simt::bulk_prefetch(a.down.expert_row(expert, outputs.first),
                        static_cast<uint32_t>(outputs.size()) * a.down.row_bytes);
  }
}

template <class F, class S>
__global__ void CHIMERE_ONE_ROW few_up_kernel(const __grid_constant__ FewUpPlan few) {
  SIMT_SHARED(uint64_t, arrived, kOneWarps * kMostRingSlots + 1);  // the last one is the records'
  SIMT_SHARED(Choice, choices, kFewDecodeRows);
  const MoePlan& p = few.plan;
  const MoeArgs& a = p.args;
  auto* smem = simt::dynamic_shared<uint8_t>();
  const BulkSlots slots{smem + few.room.slots, arrived, few.room.slot_bytes, few.room.n_slots};
  uint64_t* of_records = arrived + kOneWarps * kMostRingSlots;
  const int warp = simt::warp_id(), lane = simt::lane_id(), block = static_cast<int>(blockIdx.x);
  // A step is a unit and a pass.
  const int log2 = a.gate ? 1 : 0, rounds = few.rounds.each + (block < few.rounds.extra ? 1 : 0);
  const int steps = rounds << log2, ahead = min(steps, slots.n_slots), pass_mask = (1 << log2) - 1;
  const auto unit_of = [&](int round) { return FewUpUnit(few, block + round * few.room.blocks); };
  const auto expert_of = [&](const FewUpUnit& unit) { return unit.k == a.n_used ? 0 : choices[unit.t].id[unit.k]; };

  slots.open();
  const int of_shared = few.room.shared_groups * a.n_rows;
  int sent = 0;  // of the warp's slots
  for (; sent < ahead && block + (sent >> log2) * few.room.blocks < of_shared; ++sent) {
    if (lane == 0) send_few_up(a, slots, sent, unit_of(sent >> log2), sent & pass_mask, 0);
  }
  if (simt::thread_id() == 0) simt::bulk_begin(of_records);
  const CodeBooks books = open_books<F>(a.up.grids, smem);
  __syncthreads();
  simt::wait_for_previous();
  simt::allow_next();

  const uint32_t record = record_bytes(a.in.width);
  uint8_t* records = smem + few.room.records;
  if (simt::thread_id() == 0) {
    simt::bulk_copy(records, p.scratch.in_records, static_cast<uint32_t>(a.n_rows) * record, of_records);
    simt::bulk_end(of_records);
  }
  choose_for_rows<false>(p, choices);
  __syncthreads();
  // A lane a slot.
  if (const int step = sent + lane; step < ahead) {
    const FewUpUnit unit = unit_of(step >> log2);
    send_few_up(a, slots, step, unit, step & pass_mask, expert_of(unit));
  }
  // Read by the biases of the down-projection.
  for (int i = simt::thread_id(); p.choice_by_block && block == 0 && i < a.n_rows * a.n_used; i += kOneThreads) {
    const int id = choices[i / a.n_used].id[i % a.n_used];
    p.scratch.ids[i] = id;
    count_use(a, id);
  }
  __syncwarp();
  simt::bulk_wait(of_records);

  auto* values = reinterpret_cast<float*>(smem + few.room.values);  // [round][gate, up][element of the group]
  BulkTurn turn;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const FewUpUnit unit = unit_of(step >> log2);
    const uint8_t* row = records + static_cast<uint32_t>(unit.t) * record;
    const SharedRow slot = turn.take(slots);
    float* first = values + 2 * (step >> log2) * kGroup;
    first += log2 == 1 ? (step & 1) * kOneWarps + warp : kGroup + 2 * warp;
    float* second = first + (log2 == 1 ? kGroup : 1);
    if (unit.k == a.n_used) {
      multiply_two_rows<S>(p, slot, a.shared_up.row_bytes, books, row, first, second);
    } else {
      multiply_two_rows<F>(p, slot, a.up.row_bytes, books, row, first, second);
    }
    const int next = step + slots.n_slots;
    if (few.room.prefetches && step == max(0, steps - slots.n_slots)) prefetch_few_down(few, choices);
    if (next < steps) {
      turn.refill(slots, [&](int s) {
        const FewUpUnit then = unit_of(next >> log2);
        send_few_up(a, slots, s, then, next & pass_mask, expert_of(then));
      });
    }
    turn.advance(slots);
  }
  __syncthreads();
  for (int round = warp; round < rounds; round += kOneWarps) {
    const FewUpUnit unit = unit_of(round);
    finish_few_up(few, unit, expert_of(unit), values + 2 * round * kGroup, records);
  }
}

template <class F, class S>
Status launch_few_up(const Stream& stream, const MoePlan& p) {
  const FewUpPlan plan(p, few_up_room(p, this_card(p.args.n_sms)));
  using Own = std::conditional_t<kHasFormat<S>, S, F>;
  return simt::launch(few_up_kernel<F, Own>,
                      {static_cast<unsigned>(plan.room.blocks), kOneThreads, plan.room.bytes, stream, p.args.dependent},
                      plan);
}

}  // namespace chimere::cuda
