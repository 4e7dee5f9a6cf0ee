// moe_any.cu  The expert kernels for any type of weights, and for float activations (exact mode).
// Launch    3 blocks of 8 warps per SM (2 for several rows), a warp for some hidden elements or one output
// Numerics  as in moe.cu
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/experts/moe_groups.h"
#include "backend/cuda/kernels/experts/moe_ring.h"

namespace chimere::cuda {
namespace {

// Blocks per SM: as many as the registers allow without much spilling.
constexpr int blocks_for(int n_rows) { return n_rows == 1 ? 3 : 2; }

// kT: 1 or kMoeChunk.
template <int kT>
__global__ void __launch_bounds__(kDotThreads, blocks_for(kT)) any_up_kernel(const __grid_constant__ MoePlan p) {
  SIMT_SHARED(Choice, choice, 1);
  auto* shared = simt::dynamic_shared<uint8_t>();
  const MoeArgs& a = p.args;
  prefetch(a.shared_gate);
  prefetch(a.shared_up);
  const NormAhead norms = load_norm(a.in);
  const int stride = static_cast<int>(gridDim.x) * kDotWarps;
  const int warp = static_cast<int>(blockIdx.x) * kDotWarps + simt::warp_id();
  simt::wait_for_previous();
  simt::allow_next();
  if (p.choice_by_block) {
    choose_by_block(p, choice[0]);
    if (blockIdx.x == 0 && simt::thread_id() <= a.n_used) {
      p.scratch.weights[simt::thread_id()] = choice[0].weight[simt::thread_id()];
      if (simt::thread_id() < a.n_used) {
        p.scratch.ids[simt::thread_id()] = choice[0].id[simt::thread_id()];
        count_use(a, choice[0].id[simt::thread_id()]);
      }
    }
  }
  const GroupRoom room(a.router.rows, a.n_rows * a.n_used);
  const MoeGroups groups{a, room, shared};
  int n_chunks = a.n_used;
  if constexpr (kT > 1) {
    shared += room.bytes;
    groups.begin();
    __syncthreads();
    n_chunks = groups.group(p.scratch.ids);
  }
  const uint8_t* records = p.scratch.in_records;
  if (!p.made_in) {
    const bool quantise = !a.exact && row_groups(a.in.width) > 0;
    stage_records(a.in, norms, nullptr, 0, a.n_rows, quantise, shared);
    records = shared;
  }
  const int32_t* chosen = p.choice_by_block ? choice[0].id : p.scratch.ids;
  any_up(p, a.gate, a.up, warp, n_chunks, stride, records, p.scratch.hidden, true,
         [&](int at) { return kT == 1 ? one_row_chunk(chosen[at], at) : groups.chunk(at); });
  if (!a.shared_up) return;
  // The last warps first: they had the fewest routed units.
  any_up(p, a.shared_gate, a.shared_up, stride - 1 - warp, simt::div_up(a.n_rows, kMoeChunk), stride, records,
         p.scratch.hidden + p.shared_at, false, [&p](int at) { return shared_chunk<kMoeChunk>(p, at); });
}

__global__ void __launch_bounds__(kDotThreads, blocks_for(1)) any_down_kernel(const __grid_constant__ MoePlan p) {
  auto* shared = simt::dynamic_shared<uint8_t>();
  const MoeArgs& a = p.args;
  prefetch(a.shared_down);
  const int n_used = a.n_used, n_rows = a.n_rows, end = a.down.rows * n_rows;
  const int stride = static_cast<int>(gridDim.x) * kDotWarps;
  simt::wait_for_previous();
  simt::allow_next();

  const InputRows hidden{p.scratch.hidden, nullptr, 0, p.hidden_width};
  const uint32_t bytes = record_bytes(p.hidden_width), all = row_groups(p.hidden_width);
  const uint8_t* records = p.scratch.hidden_records;
  if (!p.made_hidden) {
    for (int t = 0; t < n_rows; ++t) {
      make_record(hidden, t, !a.exact, {}, load_row<5>(hidden, t), shared + t * bytes);
    }
    records = shared;
    __syncthreads();
  }
  const uint32_t G = row_groups(a.down.width);
  for (int unit = static_cast<int>(blockIdx.x) * kDotWarps + simt::warp_id(); unit < end; unit += stride) {
    const int row = unit / n_rows, t = unit - row * n_rows;
    const uint8_t* record = records + t * bytes;
    const float* weights = p.scratch.weights + t * (n_used + 1);
    float sum = 0;
    for (int k = 0; k < n_used; ++k) {
      const float* part = hidden_row(p, p.scratch.hidden, t << 16 | k, a.down.width);
      const float y =
          any_down(p, a.down, p.scratch.ids[t * n_used + k], row, {record, 0, all, k * G}, p.any_log2_hidden, part);
      sum = fmaf(weights[k], y, sum);
    }
    sum = add_down_biases(p, t, row, weights, sum);
    if (a.shared_down) {
      const float y =
          any_down(p, a.shared_down, 0, row, {record, 0, all, static_cast<uint32_t>(p.shared_at / kGroup)},
                   p.any_log2_shared, p.scratch.hidden + static_cast<int64_t>(t) * p.hidden_width + p.shared_at);
      sum = fmaf(weights[n_used], y, sum);
    }
    if (simt::lane_id() == 0) a.residual[static_cast<int64_t>(t) * a.down.rows + row] += sum;
  }
}

}  // namespace

Status launch_any_up(const Stream& stream, const MoePlan& p) {
  const MoeArgs& a = p.args;
  const size_t records = p.made_in ? 0 : size_t{record_bytes(a.in.width)} * a.n_rows;
  const size_t shared = records + (a.n_rows == 1 ? 0 : GroupRoom(a).bytes);
  const simt::Launch at{static_cast<unsigned>(blocks_for(a.n_rows) * a.n_sms), kDotThreads, shared, stream,
                        a.dependent};
  return a.n_rows == 1 ? simt::launch(any_up_kernel<1>, at, p) : simt::launch(any_up_kernel<kMoeChunk>, at, p);
}

Status launch_any_down(const Stream& stream, const MoePlan& p) {
  const MoeArgs& a = p.args;
  const size_t shared = p.made_hidden ? 0 : size_t{record_bytes(p.hidden_width)} * a.n_rows;
  const int blocks = min(simt::div_up(a.down.rows * a.n_rows, kDotWarps), blocks_for(1) * a.n_sms);
  return simt::launch(any_down_kernel, {static_cast<unsigned>(blocks), kDotThreads, shared, stream, a.dependent}, p);
}

}  // namespace chimere::cuda
