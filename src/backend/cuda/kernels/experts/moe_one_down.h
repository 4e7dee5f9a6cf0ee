// moe_one_down.h  The experts' down-projection for one row, from the hidden elements that moe_one_up.h left.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/experts/moe_ring_down.h"

namespace chimere::cuda {

// A block has some outputs of all experts. A unit is some of them of one expert: those of the shared one come first,
// and a warp takes every kOneWarps-th.
struct OneDownPlan {
  MoePlan plan;
  UnitSplit outputs;  // among the blocks
  int blocks = 0, n_slots = 0;
  uint32_t slot_bytes = 0, slots = 0, record = 0, shares = 0, bytes = 0;  // offsets, and the end

  CHIMERE_BOTH static int unit_rows(int of_lane, int log2_lanes) { return of_lane * 32 >> log2_lanes; }

  OneDownPlan(const MoePlan& p, const OneDownRoom& room)
      : plan(p),
        outputs(p.args.down.rows, room.blocks),
        blocks(room.blocks),
        n_slots(room.n_slots),
        slot_bytes(room.slot_bytes),
        slots(room.slots),
        record(room.record),
        shares(room.shares),
        bytes(room.bytes) {}
};

template <class F, class S>
__global__ void CHIMERE_ONE_ROW one_down_kernel(const __grid_constant__ OneDownPlan one) {
  SIMT_SHARED(uint64_t, arrived, kOneWarps * kMostRingSlots + 1);  // the last one is the record's
  SIMT_SHARED(Choice, choice, 1);
  const MoePlan& p = one.plan;
  const MoeArgs& a = p.args;
  auto* smem = simt::dynamic_shared<uint8_t>();
  const BulkSlots slots{smem + one.slots, arrived, one.slot_bytes, one.n_slots};
  uint64_t* of_record = arrived + kOneWarps * kMostRingSlots;
  const BlockUnits outputs(one.outputs, static_cast<int>(blockIdx.x));
  const int n_used = a.n_used, warp = simt::warp_id(), per_unit = OneDownPlan::unit_rows(kOneOutputs, p.log2_hidden);
  const int per_shared = OneDownPlan::unit_rows(kOneOwnOutputs, p.log2_shared),
            tiles = (outputs.size() + per_unit - 1) / per_unit;
  const int shared_units = a.shared_down ? (outputs.size() + per_shared - 1) / per_shared : 0;
  const int n_units = shared_units + n_used * tiles;
  // For a unit: the choice, or n_used for the shared expert, and its first output among those of the block.
  const auto choice_of = [&](int unit) { return unit < shared_units ? n_used : (unit - shared_units) / tiles; };
  const auto output_of = [&](int unit, int choice) {
    return unit < shared_units ? unit * per_shared : (unit - shared_units - choice * tiles) * per_unit;
  };
  struct Rows {
    const uint8_t* from;
    uint32_t bytes;
  };
  const auto rows_of = [&](int unit, int k, int expert) {
    const int first = output_of(unit, k);
    const bool is_shared = k == n_used;
    const Weight& w = is_shared ? a.shared_down : a.down;
    const int n = min(is_shared ? per_shared : per_unit, outputs.size() - first);
    return Rows{w.expert_row(expert, outputs.first + first), static_cast<uint32_t>(n) * w.row_bytes};
  };
  const auto send = [&](int of_warp, int s, int unit, int k, int expert) {
    const Rows rows = rows_of(unit, k, expert);
    simt::bulk_stream(slots.slot(of_warp, s), rows.from, rows.bytes, slots.counter(of_warp, s));
    simt::bulk_end(slots.counter(of_warp, s));
  };

  slots.open();
  if (simt::thread_id() == 0) simt::bulk_begin(of_record);
  const CodeBooks books = open_books<F>(a.down.grids, smem);
  __syncthreads();
  // The router's keys are complete: the up-projection waits for the router before it allows this kernel to start.
  if (warp == kOneWarps - 1) {
    const int ahead = min(n_units, one.n_slots * kOneWarps);
    const auto send_for = [&](int first, int n, int k, int expert) {
      for (int unit = first + simt::lane_id(); unit < min(first + n, ahead); unit += 32) {
        send(unit % kOneWarps, unit / kOneWarps, unit, k, expert);
      }
    };
    send_for(0, shared_units, n_used, 0);
    const Candidate mine =
        choose_ids(p, choice[0], [&](int k, int expert) { send_for(shared_units + k * tiles, tiles, k, expert); });
    // Units without a slot are prefetched to the L2 cache as soon as the slots are filled: until the hidden row is
    // there, the memory would idle. What comes over the bus is not kept there.
    if (ahead < n_units && !a.down.places) {
      simt::bulk_wait(slots.counter((ahead - 1) % kOneWarps, (ahead - 1) / kOneWarps));
      for (int unit = ahead + simt::lane_id(); unit < n_units; unit += 32) {
        const int k = choice_of(unit);
        const Rows rows = rows_of(unit, k, k == n_used ? 0 : choice[0].id[k]);
        simt::bulk_prefetch(rows.from, rows.bytes);
      }
    }
    weigh_choice(p, mine, choice[0]);
  }
  simt::wait_for_previous();
  simt::allow_next();
  if (simt::thread_id() == 0) {
    simt::bulk_copy(smem + one.record, p.scratch.hidden_records, record_bytes(p.hidden_width), of_record);
    simt::bulk_end(of_record);
  }
  const int o = simt::thread_id();  // the output that the thread finishes
  float before = o < outputs.size() ? a.residual[outputs.first + o] : 0.0f;
  __syncthreads();
  simt::bulk_wait(of_record);

  const uint8_t* record = smem + one.record;
  const uint32_t all = row_groups(p.hidden_width), G = row_groups(a.down.width);
  auto* shares = reinterpret_cast<float*>(smem + one.shares);  // [output][choice, shared]
  BulkTurn turn;
  for (int unit = warp; unit < n_units; unit += kOneWarps) {
    const int k = choice_of(unit), first = output_of(unit, k), last = outputs.size() - first - 1;
    const int log2 = k == n_used ? p.log2_shared : p.log2_hidden;
    const SharedRow slot = turn.take(slots);
    const auto store = [&](int r, float sum) {
      const int at = first + (simt::lane_id() >> log2) + (r << (5 - log2));
      if (at < outputs.size()) shares[at * (n_used + 1) + k] = sum;
    };
    if (k == n_used) {
      float acc[kOneOwnOutputs] = {};
      multiply_down<S>(slot, a.shared_down.row_bytes, row_groups(a.shared_down.width), log2, last, books, record, all,
                       static_cast<uint32_t>(p.shared_at / kGroup / 2), acc);
      finish_sums(acc, 1 << log2, store);
    } else {
      float acc[kOneOutputs] = {};
      multiply_down<F>(slot, a.down.row_bytes, G, log2, last, books, record, all, static_cast<uint32_t>(k) * (G / 2),
                       acc);
      finish_sums(acc, 1 << log2, store);
    }
    const int next = unit + one.n_slots * kOneWarps;
    if (next < n_units) {
      const int of_next = choice_of(next);
      turn.refill(slots, [&](int s) { send(warp, s, next, of_next, of_next == n_used ? 0 : choice[0].id[of_next]); });
    }
    turn.advance(slots);
  }
  __syncthreads();
  for (int i = o; i < outputs.size(); i += kOneThreads) {
    if (i != o) before = a.residual[outputs.first + i];
    const float* share = shares + i * (n_used + 1);
    float sum = 0;
    for (int k = 0; k < n_used; ++k) sum = fmaf(choice[0].weight[k], share[k], sum);
    sum = add_down_biases(p, 0, outputs.first + i, choice[0].weight, sum);
    if (a.shared_down) sum = fmaf(choice[0].weight[n_used], share[n_used], sum);
    a.residual[outputs.first + i] = before + sum;
  }
}

template <class F, class S>
Status launch_one_down(const Stream& stream, const MoePlan& p) {
  const OneDownPlan plan(p, one_down_room(p, this_card(p.args.n_sms)));
  using Own = std::conditional_t<kHasFormat<S>, S, F>;
  return simt::launch(one_down_kernel<F, Own>,
                      {static_cast<unsigned>(plan.blocks), kOneThreads, plan.bytes, stream, p.args.dependent}, plan);
}

}  // namespace chimere::cuda
