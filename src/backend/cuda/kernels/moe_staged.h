// moe_staged.h  The expert kernels of moe.cu for one row, with the weights of a block copied to its shared memory.
//
// Every block chooses the experts by itself, out of the router's logits. The kernel of the way down does so before it
// waits for the way up: the logits are those of the kernel before that one, which has ended when this one may start.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/moe_ring_down.h"
#include "backend/cuda/kernels/moe_ring_up.h"
#include "backend/cuda/kernels/staged.h"

namespace chimere::cuda {

inline constexpr int kUpBlocks = 2;  // of a multiprocessor; of the way down one
inline constexpr size_t kStagedUpBytes = 73 * 1024, kStagedDownBytes = 76 * 1024;  // of a block, at most

// Where things are in the shared memory of a block of the way up: runs of gate and of up. A unit is the rows of a
// matrix that a warp multiplies side by side.
struct UpRoom {
  int per_unit = 0, units_an_expert = 0;
  UnitSplit routed, of_shared;
  uint32_t record = 0, shared_gate = 0, shared_up = 0, gate = 0, up = 0, bytes = 0;  // offsets, and the end

  template <class F>
  static UpRoom of(const MoePlan& p, int n_blocks) {
    const MoeArgs& a = p.args;
    UpRoom r;
    r.per_unit = 32 >> p.log2_in;
    r.units_an_expert = simt::div_up(a.gate.rows, r.per_unit);
    r.routed = UnitSplit(r.units_an_expert * a.n_used, n_blocks);
    r.of_shared = UnitSplit(simt::div_up(a.shared_gate.rows, r.per_unit), n_blocks);
    const auto room = [&](const UnitSplit& split, const Weight& w) {
      return static_cast<uint32_t>(split.most() * r.per_unit) * w.row_bytes;
    };
    r.record = book_bytes<F>();
    r.shared_gate = r.record + record_bytes(a.in.width);
    r.shared_up = r.shared_gate + room(r.of_shared, a.shared_gate);
    r.gate = r.shared_up + room(r.of_shared, a.shared_up);
    r.up = r.gate + room(r.routed, a.gate);
    r.bytes = r.up + room(r.routed, a.up);
    return r;
  }
};
struct StagedUpPlan {
  MoePlan plan;
  UpRoom room;
};

// Units [unit, unit + n) of an expert.
__device__ __forceinline__ void send_run(const Weight& w, int expert, int unit, int n, int per_unit, uint8_t* to,
                                         uint64_t* arrived) {
  const int row = unit * per_unit;
  simt::bulk_copy(to, w.row(expert, row), static_cast<uint32_t>(min(n * per_unit, w.rows - row)) * w.row_bytes,
                  arrived);
}

// Which choice a unit belongs to, and which of its units it is. There are few choices.
struct RoutedUnit {
  int choice, unit;

  __device__ __forceinline__ RoutedUnit(int unit, int units_an_expert) : choice(0), unit(unit) {
    while (this->unit >= units_an_expert) {
      this->unit -= units_an_expert;
      ++choice;
    }
  }
};

// Rows f of gate and up, of the lanes that share them: silu(gate n) * up n to `hidden`.
template <class F>
__device__ __forceinline__ void staged_up(const MoePlan& p, const SharedRow (&rows)[2], const CodeBooks& books,
                                          const uint8_t* record, float inverse, float* to, bool valid) {
  const uint32_t G = row_groups(p.args.in.width);
  const int lanes = 1 << p.log2_in;
  const auto first_pair = static_cast<uint32_t>(simt::lane_id() & (lanes - 1));
  float acc[2] = {};
  for (uint32_t pair = first_pair; pair < G / 2; pair += lanes) {
    add_staged_pairs<F>(rows, G, pair, books, record, G, 0, acc);
  }
  const float g = two_lane_sums(acc[0], acc[1], lanes);
  const float h = __shfl_xor_sync(simt::kAllLanes, g, lanes / 2);
  if (first_pair == 0 && valid) *to = silu(g * inverse) * (h * inverse);
}

template <class F, class S>
__global__ void CHIMERE_TWO_BLOCKS staged_up_kernel(const __grid_constant__ StagedUpPlan staged) {
  SIMT_SHARED(uint64_t, arrived, kStages + 1);  // the last one of the shared expert
  SIMT_SHARED(Choice, choice, 1);
  const MoePlan& p = staged.plan;
  const UpRoom& room = staged.room;
  auto* shared = simt::dynamic_shared<uint8_t>();
  const int block = static_cast<int>(blockIdx.x), tid = simt::thread_id();
  const Weight &gate = p.args.gate, &up = p.args.up, &own_gate = p.args.shared_gate, &own_up = p.args.shared_up;
  const BlockUnits units(room.routed, block), of_shared(room.of_shared, block);
  if (tid == 0 && of_shared.size() > 0) {
    uint64_t* all = arrived + kStages;
    simt::bulk_begin(all);
    send_run(own_gate, 0, of_shared.first, of_shared.size(), room.per_unit, shared + room.shared_gate, all);
    send_run(own_up, 0, of_shared.first, of_shared.size(), room.per_unit, shared + room.shared_up, all);
    simt::bulk_end(all);
  }
  const CodeBooks books = open_books<F>(gate.grids, shared);
  const NormAhead norms = load_norm(p.args.in);
  simt::wait_for_previous();
  simt::allow_next();

  const RowAhead<2> row = load_row<2>(p.args.in, 0);
  choose_by_block(p, choice[0]);
  // A thread sends for a stage.
  if (tid < kStages) {
    simt::bulk_begin(arrived + tid);
    const int end = units.stage_begin(tid + 1);
    for (int unit = units.stage_begin(tid); unit < end;) {
      const RoutedUnit at(unit, room.units_an_expert);
      const int n = min(room.units_an_expert - at.unit, end - unit), expert = choice[0].id[at.choice];
      const auto to = static_cast<uint32_t>((unit - units.first) * room.per_unit);
      send_run(gate, expert, at.unit, n, room.per_unit, shared + room.gate + to * gate.row_bytes, arrived + tid);
      send_run(up, expert, at.unit, n, room.per_unit, shared + room.up + to * up.row_bytes, arrived + tid);
      unit += n;
    }
    simt::bulk_end(arrived + tid);
  }
  const uint8_t* record = shared + room.record;
  const float inverse = stage_one(p.args.in, 0, norms, row, true, shared + room.record);
  if (block == 0 && tid <= p.args.n_used) {
    p.scratch.weights[tid] = choice[0].weight[tid];
    if (tid < p.args.n_used) p.scratch.ids[tid] = choice[0].id[tid];
  }

  const int sub = simt::lane_id() >> p.log2_in;
  const auto row_in = [&](uint32_t base, const Weight& w, int unit) {
    return SharedRow{shared + base + static_cast<uint32_t>(unit * room.per_unit + sub) * w.row_bytes};
  };
  // The last warps: they have the fewest routed units.
  for (int unit = of_shared.end - (kDotWarps - simt::warp_id()); unit >= of_shared.first; unit -= kDotWarps) {
    simt::bulk_wait(arrived + kStages);
    const int f = unit * room.per_unit + sub, at = unit - of_shared.first;
    const SharedRow rows[2] = {row_in(room.shared_gate, own_gate, at), row_in(room.shared_up, own_up, at)};
    staged_up<S>(p, rows, books, record, inverse, p.scratch.hidden + p.shared_at + f, f < own_gate.rows);
  }
  StageWait wait{units, arrived};
  for (int unit = units.first + simt::warp_id(); unit < units.end; unit += kDotWarps) {
    const RoutedUnit at(unit, room.units_an_expert);
    const int f = at.unit * room.per_unit + sub;
    const SharedRow rows[2] = {row_in(room.gate, gate, unit - units.first), row_in(room.up, up, unit - units.first)};
    wait.until(unit);
    staged_up<F>(p, rows, books, record, inverse, p.scratch.hidden + at.choice * gate.rows + f, f < gate.rows);
  }
}

struct DownRoom {
  UnitSplit rows;
  uint32_t record = 0, shared_down = 0, down = 0, bytes = 0;

  template <class F>
  static DownRoom of(const MoePlan& p, int n_blocks) {
    DownRoom r;
    r.rows = UnitSplit(p.args.down.rows, n_blocks);
    const auto most = static_cast<uint32_t>(r.rows.most());
    r.record = book_bytes<F>();
    r.shared_down = r.record + record_bytes(p.hidden_width);
    r.down = r.shared_down + most * p.args.shared_down.row_bytes;
    r.bytes = r.down + most * static_cast<uint32_t>(p.args.n_used) * p.args.down.row_bytes;
    return r;
  }
};
struct StagedDownPlan {
  MoePlan plan;
  DownRoom room;
};

template <class F, class S>
__global__ void __launch_bounds__(kDotThreads, 3) staged_down_kernel(const __grid_constant__ StagedDownPlan staged) {
  SIMT_SHARED(uint64_t, arrived, 1);
  SIMT_SHARED(Choice, choice, 1);
  const MoePlan& p = staged.plan;
  const DownRoom& room = staged.room;
  auto* shared = simt::dynamic_shared<uint8_t>();
  const int n_used = p.args.n_used, most = room.rows.most();
  const Weight &down = p.args.down, &own = p.args.shared_down;
  const BlockUnits rows(room.rows, static_cast<int>(blockIdx.x));
  const CodeBooks books = open_books<F>(down.grids, shared);
  choose_by_block(p, choice[0]);
  if (simt::warp_id() == 0) {
    const int k = simt::lane_id();
    const auto n = static_cast<uint32_t>(rows.size());
    if (k == 0) simt::bulk_begin(arrived);
    __syncwarp();
    if (k < n_used) {
      simt::bulk_copy(shared + room.down + static_cast<uint32_t>(k * most) * down.row_bytes,
                      down.row(choice[0].id[k], rows.first), n * down.row_bytes, arrived);
    } else if (k == n_used && own) {
      simt::bulk_copy(shared + room.shared_down, own.row(0, rows.first), n * own.row_bytes, arrived);
    }
    __syncwarp();
    if (k == 0) simt::bulk_end(arrived);
  }
  simt::wait_for_previous();
  simt::allow_next();

  const InputRows hidden{p.scratch.hidden, nullptr, 0, p.hidden_width};
  uint8_t* record = shared + room.record;
  make_record(hidden, 0, true, {}, load_row<5>(hidden, 0), record);
  __syncthreads();
  simt::bulk_wait(arrived);

  const uint32_t G = row_groups(down.width), all = row_groups(p.hidden_width);
  const int lanes = 1 << p.log2_hidden, at_once = 32 >> p.log2_hidden, mine = simt::lane_id() >> p.log2_hidden;
  const int own_lanes = 1 << p.log2_shared;
  const float* weights = choice[0].weight;
  // Two rows at a time; of a single one the second is the first once more, and is not stored.
  for (int row = rows.first + simt::warp_id(); row < rows.end; row += 2 * kDotWarps) {
    const bool has_second = row + kDotWarps < rows.end;
    const int at = row - rows.first, next = has_second ? kDotWarps : 0;
    float* to = p.args.residual + row + (simt::lane_id() == 1 ? next : 0);
    const bool stores = simt::lane_id() == 0 || (simt::lane_id() == 1 && has_second);
    const float before = stores ? *to : 0.0f;
    float sum[2] = {};
    for (int k = 0; k < n_used; k += at_once) {
      const int choice_of = min(k + mine, n_used - 1);
      const uint8_t* first = shared + room.down + static_cast<uint32_t>(choice_of * most + at) * down.row_bytes;
      const SharedRow two[2] = {{first}, {first + static_cast<uint32_t>(next) * down.row_bytes}};
      float acc[2] = {};
      for (auto pair = static_cast<uint32_t>(simt::lane_id() & (lanes - 1)); pair < G / 2; pair += lanes) {
        add_staged_pairs<F>(two, G, pair, books, record, all, static_cast<uint32_t>(choice_of) * (G / 2), acc);
      }
      const float whole[2] = {lane_sum(acc[0], lanes), lane_sum(acc[1], lanes)};
      for (int i = 0; i < at_once && k + i < n_used; ++i) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float y = at_once == 1 ? whole[r] : __shfl_sync(simt::kAllLanes, whole[r], i << p.log2_hidden);
          sum[r] = fmaf(weights[k + i], y, sum[r]);
        }
      }
    }
    if (own) {
      const uint8_t* first = shared + room.shared_down + static_cast<uint32_t>(at) * own.row_bytes;
      const SharedRow two[2] = {{first}, {first + static_cast<uint32_t>(next) * own.row_bytes}};
      const uint32_t own_groups = row_groups(own.width), begin = static_cast<uint32_t>(p.shared_at / kGroup / 2);
      float acc[2] = {};
      for (auto pair = static_cast<uint32_t>(simt::lane_id() & (own_lanes - 1)); pair < own_groups / 2;
           pair += own_lanes) {
        add_staged_pairs<S>(two, own_groups, pair, books, record, all, begin, acc);
      }
      sum[0] = fmaf(weights[n_used], lane_sum(acc[0], own_lanes), sum[0]);
      sum[1] = fmaf(weights[n_used], lane_sum(acc[1], own_lanes), sum[1]);
    }
    if (stores) *to = before + (simt::lane_id() == 0 ? sum[0] : sum[1]);
  }
}

// Where there is no shared expert its format does not matter.
template <class F, class S>
using StagedShared = std::conditional_t<std::is_same_v<S, NoFormat>, F, S>;

template <class S>
bool may_stage(const MoePlan& p) {
  const MoeArgs& a = p.args;
  if (std::is_same_v<S, NoFormat> && a.shared_up) return false;
  const bool plain = a.gate && a.activation == op::Activation::swiglu && !a.gate_bias && !a.up_bias && !a.down_bias;
  return plain && p.choice_by_block && p.log2_in > 0 && simt::has_bulk_copy();
}

template <class F, class S>
Status launch_up(const Stream& stream, const MoePlan& p) {
  const int blocks = kUpBlocks * p.args.n_sms;
  const UpRoom room = UpRoom::of<F>(p, blocks);
  if (!may_stage<S>(p) || room.bytes > kStagedUpBytes || room.bytes + 4096 > simt::shared_limit()) {
    return launch_moe_up<F, S>(stream, p);
  }
  return simt::launch(staged_up_kernel<F, StagedShared<F, S>>,
                      {static_cast<unsigned>(blocks), kDotThreads, room.bytes, stream, p.args.dependent},
                      StagedUpPlan{p, room});
}

template <class F, class S>
Status launch_down(const Stream& stream, const MoePlan& p) {
  const int blocks = min(p.args.n_sms, p.args.down.rows);
  const DownRoom room = DownRoom::of<F>(p, blocks);
  if (!may_stage<S>(p) || room.bytes > kStagedDownBytes || room.bytes + 4096 > simt::shared_limit()) {
    return launch_moe_down<F, S>(stream, p);
  }
  return simt::launch(staged_down_kernel<F, StagedShared<F, S>>,
                      {static_cast<unsigned>(blocks), kDotThreads, room.bytes, stream, p.args.dependent},
                      StagedDownPlan{p, room});
}

}  // namespace chimere::cuda
