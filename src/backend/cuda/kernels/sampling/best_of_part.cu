// best_of_part.cu   id = argmax over the tokens of the part, the first of equals
// Shapes    logits [rows, 16 n_blocks] f32, n_blocks <= 2^15; ids through blocks [n_blocks]
// Bytes     64 a block and row, once
// Launch    grid rows, block 1024: four neighbours a thread at a time, which are of one block
// Numerics  none: logits are compared as they are; what is no number is not taken
// Measured  not yet
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/sampling/best_of_part.h"
#include "backend/cuda/kernels/sampling/sampling_math.h"

namespace chimere::cuda {
namespace {

constexpr int kBestThreads = 1024;

__device__ __forceinline__ sampling::u64 least_of_warp(sampling::u64 key) {
  for (int step = 16; step > 0; step /= 2) {
    const sampling::u64 other = __shfl_xor_sync(simt::kAllLanes, key, step);
    key = other < key ? other : key;
  }
  return key;
}

__global__ void __launch_bounds__(kBestThreads) best_of_part_kernel(const __grid_constant__ BestOfPartArgs a) {
  simt::wait_for_previous();
  simt::allow_next();
  SIMT_SHARED(sampling::u64, of_warps, kBestThreads / 32);
  const int row = blockIdx.x, lane = threadIdx.x % 32;
  const int n = a.part.n_blocks * kPartBlock;
  const float* logits = a.logits + static_cast<size_t>(row) * n;
  sampling::u64 best = ~sampling::u64{0};
#pragma unroll 4
  for (int i = 4 * static_cast<int>(threadIdx.x); i < n; i += 4 * kBestThreads) {
    const float4 four = *reinterpret_cast<const float4*>(logits + i);
    const float scores[4] = {four.x, four.y, four.z, four.w};
    const int32_t id = a.part.blocks[i / kPartBlock] * kPartBlock + i % kPartBlock;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float score = sampling::clean(scores[j]);
      if (score == kNoScore || id + j >= a.n_vocab) continue;
      if (a.suppressed_bits && sampling::bit_of(a.suppressed_bits, id + j)) continue;
      const sampling::u64 key = sampling::key_of(score, id + j);
      best = key < best ? key : best;
    }
  }
  best = least_of_warp(best);
  if (lane == 0) of_warps[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  best = least_of_warp(of_warps[lane]);
  if (lane != 0) return;
  const SampleRow& wish = a.rows[row];
  const bool is_found = best != ~sampling::u64{0};
  const auto id = static_cast<int32_t>(best & ((1u << sampling::kIdBits) - 1));
  // As a whole: whoever sees the tag sees the rest.
  static_cast<SampledToken&>(a.sampled[row]) = {is_found ? id : -1,
                                                is_found ? SampleStatus::ok : SampleStatus::no_logits, wish.tag, 0};
  if (is_found && wish.accept_into) *wish.accept_into = id;
}

}  // namespace

Status best_of_part(const Stream& stream, const BestOfPartArgs& args) {
  return simt::launch(best_of_part_kernel,
                      {dim3(static_cast<unsigned>(args.n_rows)), dim3(kBestThreads), 0, stream, true}, args);
}

}  // namespace chimere::cuda
