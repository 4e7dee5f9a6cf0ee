// fetch.cu   to[i] = from[i], pinned memory to the device's
// Shapes    any number of 16-byte pieces; the number lies in pinned memory before them
// Bytes     a decode step of one sequence: some hundred; 8 a page of its context
// Launch    grid (8, fetches), block 256, 16 bytes a thread: 32 KiB cross the bus in one go
// Method    The count and the first 4 KiB are requested together: one round trip over the bus. A copy by the runtime,
//           outside the graph, would need a submission and a wait of its own.
// Measured  H200: 0.8 us beside the embedding
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/rows/fetch.h"
#include "base/check.h"

namespace chimere::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 8;
static_assert(kFetchAtOnce == kThreads * sizeof(uint4));

struct Fetches {
  Fetch of[kMaxFetches];
};

__global__ void __launch_bounds__(kThreads) fetch_kernel(Fetches fetches) {
  simt::wait_for_previous();
  simt::allow_next();
  const Fetch fetch = blockIdx.y == 0 ? fetches.of[0] : fetches.of[1];
  const uint4* from = reinterpret_cast<const uint4*>(fetch.from + 1);
  uint4* to = reinterpret_cast<uint4*>(fetch.to);
  const uint32_t thread = threadIdx.x;
  uint4 first{};
  if (blockIdx.x == 0) first = from[thread];
  const uint32_t n = fetch.from->n_pieces;
  if (blockIdx.x == 0 && thread < n) to[thread] = first;
  for (uint32_t i = kThreads * (1 + blockIdx.x) + thread; i < n; i += kThreads * kBlocks) to[i] = from[i];
}

}  // namespace

Status fetch(const Stream& stream, std::span<const Fetch> fetches) {
  CHECK(!fetches.empty() && fetches.size() <= kMaxFetches);
  Fetches all;
  for (size_t i = 0; i < fetches.size(); ++i) all.of[i] = fetches[i];
  const dim3 grid(kBlocks, static_cast<unsigned>(fetches.size()));
  return simt::launch(fetch_kernel, {grid, dim3(kThreads), 0, stream}, all);
}

}  // namespace chimere::cuda
