// moe_few_down.h   x[t] += sum_k weight[t, k] down_k hidden[t, k] for 2 to 7 rows t and their choices k
// Shapes    as moe.cu; hidden elements in bytes, as moe_few_up.h leaves them
// Bytes     the weights of every choice of every row, and the shared expert's once: 18 MB for 4 rows of 256 experts of
//           [2048, 512] IQ3_S in nibbles, 4.7 us of an H200's memory. 1.26 bytes per hidden element and block
// Launch    a block of 16 warps per SM, 64 registers a thread: some outputs of all rows, choices and experts. A unit is
//           some of them of one row and choice; a warp takes every 16th, through slots of its own (moe_one_down.h).
//           The choices are known before the up-projection ends: the first copies do not wait for it
// Smem      two slots a warp (70 KB), or more where a block of the up-projection and this find room side by side, the
//           hidden records (5.8 KB a row), the choices' shares of the outputs
// Numerics  the bits of moe_one_down.h: shares are added in the order of the choices, the shared expert's last
// Measured  H200, these shapes, three slots, in a step: 8.3 us for 2 rows, 11.7 for 4, 18.6 for 8 (before, one row after
//           the other or rings: 8.8, 16.0, 19.1)
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/experts/moe_one_down.h"

namespace chimere::cuda {

struct FewDownPlan {
  MoePlan plan;
  OneDownRoom room;
  UnitSplit outputs;  // among the blocks

  FewDownPlan(const MoePlan& p, const OneDownRoom& room)
      : plan(p), room(room), outputs(p.args.down.rows, room.blocks) {}
};

// The units of a block: of the shared expert first, a row after the other for each of its tiles.
struct FewDownUnits {
  const MoeArgs& a;
  const BlockUnits& outputs;
  int per_unit, per_shared;    // outputs
  int tiles, n_shared, n_all;  // tiles of a choice; units

  __device__ __forceinline__ FewDownUnits(const MoePlan& p, const BlockUnits& outputs)
      : a(p.args),
        outputs(outputs),
        per_unit(OneDownPlan::unit_rows(kOneOutputs, p.log2_hidden)),
        per_shared(OneDownPlan::unit_rows(kOneOwnOutputs, p.log2_shared)),
        tiles((outputs.size() + per_unit - 1) / per_unit),
        n_shared(a.shared_down ? (outputs.size() + per_shared - 1) / per_shared * a.n_rows : 0),
        n_all(n_shared + a.n_rows * a.n_used * tiles) {}

  struct Unit {
    int t, k;   // row, and its choice: n_used for the shared expert
    int first;  // output among those of the block
  };
  __device__ __forceinline__ Unit at(int unit) const {
    if (unit < n_shared) {
      const int tile = unit / a.n_rows;
      return {unit - tile * a.n_rows, a.n_used, tile * per_shared};
    }
    const int choice = (unit - n_shared) / tiles, t = choice / a.n_used;
    return {t, choice - t * a.n_used, (unit - n_shared - choice * tiles) * per_unit};
  }

  // One lane of the warp issues the copy of a unit's rows.
  __device__ __forceinline__ void send(const BulkSlots& slots, int slot, const Unit& unit, int expert) const {
    uint8_t* to = slots.slot(simt::warp_id(), slot);
    uint64_t* counter = slots.counter(simt::warp_id(), slot);
    const int row = outputs.first + unit.first, left = outputs.size() - unit.first;
    if (unit.k == a.n_used) {  // other rows want it too: it stays in the L2 cache
      const Weight& w = a.shared_down;
      simt::bulk_copy(to, w.row(0, row), static_cast<uint32_t>(min(per_shared, left)) * w.row_bytes, counter);
    } else {
      const Weight& w = a.down;
      simt::bulk_stream(to, w.expert_row(expert, row), static_cast<uint32_t>(min(per_unit, left)) * w.row_bytes,
                        counter);
    }
    simt::bulk_end(counter);
  }
};

// A unit's products, to the shares of its row and choice. shares [row][output][choice, shared].
template <class F, class S>
__device__ __forceinline__ void multiply_few_down(const MoePlan& p, const FewDownUnits::Unit& unit, int n_outputs,
                                                  SharedRow slot, const CodeBooks& books, const uint8_t* record,
                                                  float* shares) {
  const MoeArgs& a = p.args;
  const uint32_t all = row_groups(p.hidden_width), G = row_groups(a.down.width);
  const int log2 = unit.k == a.n_used ? p.log2_shared : p.log2_hidden, last = n_outputs - unit.first - 1;
  const auto store = [&](int r, float sum) {
    const int at = unit.first + (simt::lane_id() >> log2) + (r << (5 - log2));
    if (at < n_outputs) shares[(unit.t * n_outputs + at) * (a.n_used + 1) + unit.k] = sum;
  };
  if (unit.k == a.n_used) {
    float acc[kOneOwnOutputs] = {};
    multiply_down<S>(slot, a.shared_down.row_bytes, row_groups(a.shared_down.width), log2, last, books, record, all,
                     static_cast<uint32_t>(p.shared_at / kGroup / 2), acc);
    finish_sums(acc, 1 << log2, store);
  } else {
    float acc[kOneOutputs] = {};
    multiply_down<F>(slot, a.down.row_bytes, G, log2, last, books, record, all, static_cast<uint32_t>(unit.k) * (G / 2),
                     acc);
    finish_sums(acc, 1 << log2, store);
  }
}

template <class F, class S>
__global__ void CHIMERE_ONE_ROW few_down_kernel(const __grid_constant__ FewDownPlan few) {
  SIMT_SHARED(uint64_t, arrived, kOneWarps * kMostRingSlots + 1);  // the last one is the records'
  SIMT_SHARED(Choice, choices, kFewDecodeRows);
  const MoePlan& p = few.plan;
  const MoeArgs& a = p.args;
  auto* smem = simt::dynamic_shared<uint8_t>();
  const BulkSlots slots{smem + few.room.slots, arrived, few.room.slot_bytes, few.room.n_slots};
  uint64_t* of_records = arrived + kOneWarps * kMostRingSlots;
  const BlockUnits outputs(few.outputs, static_cast<int>(blockIdx.x));
  const FewDownUnits units(p, outputs);
  const int warp = simt::warp_id(), tid = simt::thread_id(), n = outputs.size();

  slots.open();
  if (tid == 0) simt::bulk_begin(of_records);
  // The router's keys or choices are complete: the up-projection waits for the router before it allows this kernel to
  // start.
  choose_for_rows<true>(p, choices);
  __syncthreads();
  const auto expert_of = [&](const FewDownUnits::Unit& unit) {
    return unit.k == a.n_used ? 0 : choices[unit.t].id[unit.k];
  };
  const int mine = warp + simt::lane_id() * kOneWarps;  // a lane a slot
  if (simt::lane_id() < slots.n_slots && mine < units.n_all) {
    const FewDownUnits::Unit unit = units.at(mine);
    units.send(slots, simt::lane_id(), unit, expert_of(unit));
  }
  __syncwarp();
  const CodeBooks books = open_books<F>(a.down.grids, smem);
  simt::wait_for_previous();
  simt::allow_next();
  const uint32_t record = record_bytes(p.hidden_width);
  uint8_t* records = smem + few.room.record;
  if (tid == 0) {
    simt::bulk_copy(records, p.scratch.hidden_records, static_cast<uint32_t>(a.n_rows) * record, of_records);
    simt::bulk_end(of_records);
  }
  // The output that the thread finishes first.
  const auto residual = [&](int i) {
    return a.residual + static_cast<int64_t>(i / n) * a.down.rows + outputs.first + i % n;
  };
  float before = tid < n * a.n_rows ? *residual(tid) : 0.0f;
  __syncthreads();
  simt::bulk_wait(of_records);

  auto* shares = reinterpret_cast<float*>(smem + few.room.shares);
  BulkTurn turn;
#pragma unroll 1
  for (int at = warp; at < units.n_all; at += kOneWarps) {
    const FewDownUnits::Unit unit = units.at(at);
    multiply_few_down<F, S>(p, unit, n, turn.take(slots), books, records + static_cast<uint32_t>(unit.t) * record,
                            shares);
    const int next = at + slots.n_slots * kOneWarps;
    if (next < units.n_all) {
      turn.refill(slots, [&](int s) {
        const FewDownUnits::Unit then = units.at(next);
        units.send(slots, s, then, expert_of(then));
      });
    }
    turn.advance(slots);
  }
  __syncthreads();
  for (int i = tid; i < n * a.n_rows; i += kOneThreads) {
    if (i != tid) before = *residual(i);
    const int t = i / n, each = a.n_used + 1;
    const float *share = shares + i * each, *weight = choices[t].weight;
    float sum = 0;
    for (int k = 0; k < a.n_used; ++k) sum = fmaf(weight[k], share[k], sum);
    sum = add_down_biases(p, t, outputs.first + i % n, weight, sum);
    if (a.shared_down) sum = fmaf(weight[a.n_used], share[a.n_used], sum);
    *residual(i) = before + sum;
  }
}

template <class F, class S>
Status launch_few_down(const Stream& stream, const MoePlan& p) {
  const FewDownPlan plan(p, one_down_room(p, this_card(p.args.n_sms)));
  using Own = std::conditional_t<kHasFormat<S>, S, F>;
  return simt::launch(few_down_kernel<F, Own>,
                      {static_cast<unsigned>(plan.room.blocks), kOneThreads, plan.room.bytes, stream, p.args.dependent},
                      plan);
}

}  // namespace chimere::cuda
