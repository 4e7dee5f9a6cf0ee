// staged.h  What the kernels for one row of activations share: runs of weight rows copied to shared memory.
//
// A block takes neighbouring rows, so that its weights lie in a few runs, and one thread issues the bulk copies for all
// of them, before the wait for the previous kernel where they do not depend on it. Nothing else hides memory latency so
// cheaply; the warps only compute. The copies are cut into stages: the first rows are multiplied while the last arrive.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/dot_device.h"
#include "backend/cuda/kernels/common/units.h"

namespace chimere::cuda {

// The kernels for one row have one block of this many warps per SM, with half of the SM's registers. A block of the
// previous kernel and one of this kernel then fill an SM: blocks are scheduled while the previous kernel still runs,
// and each SM gets exactly one. If more fitted, some SMs would get all of the work.
#if defined(__CUDACC__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1204
#define CHIMERE_ONE_ROW __maxnreg__(64)
#else
#define CHIMERE_ONE_ROW __launch_bounds__(512, 2)
#endif

// Waits, as units are taken in ascending order, until those up to `unit` have arrived.
struct StageWait {
  const BlockUnits& units;
  uint64_t* arrived;        // [kStages]
  int stage = 0;            // the next that was not waited for
  int begin = units.first;  // of it

  __device__ __forceinline__ void until(int unit) {
    while (begin <= unit) {
      simt::bulk_wait(arrived + stage);
      begin = units.stage_begin(++stage);
    }
  }
};

// acc + the lane's share of a product with a record of G groups. The pairs of the row meet those from `at` on.
template <class F>
__device__ __forceinline__ float add_staged_pair(SharedRow row, uint32_t row_groups, uint32_t pair,
                                                 const CodeBooks& books, const uint8_t* record, uint32_t G, uint32_t at,
                                                 float acc) {
  const Pair<F> raw = F::load_pair(row, row_groups, pair);
  Group w;
  F::unpack(raw.of[0], books, w);
  acc = add_group<F::kScales, F::kMins>(w, load_act_half<0>(record, G, at + pair), acc);
  F::unpack(raw.of[1], books, w);
  return add_group<F::kScales, F::kMins>(w, load_act_half<1>(record, G, at + pair), acc);
}

// The sums of two values over each `lanes` neighbouring lanes, at least two: of `a` on the lower half of them, of `b`
// on the upper half. The bits of lane_sum.
__device__ __forceinline__ float two_lane_sums(float a, float b, int lanes) {
  const int half = lanes / 2;
  const bool upper = simt::lane_id() & half;
  const float given = __shfl_xor_sync(simt::kAllLanes, upper ? a : b, half);
  float v = (upper ? b : a) + given;
#pragma unroll
  for (int step = 8; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(simt::kAllLanes, v, step);
    if (step < half) v += other;
  }
  return v;
}

// add_staged_pair for two rows and one reading of the activations.
template <class F>
__device__ __forceinline__ void add_staged_pairs(const SharedRow (&rows)[2], uint32_t row_groups, uint32_t pair,
                                                 const CodeBooks& books, const uint8_t* record, uint32_t G, uint32_t at,
                                                 float (&acc)[2]) {
  const Pair<F> raw[2] = {F::load_pair(rows[0], row_groups, pair), F::load_pair(rows[1], row_groups, pair)};
  const auto add_half = [&](auto half) {
    Group w[2];
    F::unpack(raw[0].of[half], books, w[0]);
    F::unpack(raw[1].of[half], books, w[1]);
    const ActGroup x = load_act_half<half>(record, G, at + pair);
    acc[0] = add_group<F::kScales, F::kMins>(w[0], x, acc[0]);
    acc[1] = add_group<F::kScales, F::kMins>(w[1], x, acc[1]);
  };
  add_half(std::integral_constant<int, 0>{});
  add_half(std::integral_constant<int, 1>{});
}

}  // namespace chimere::cuda
