// moe_groups.h  Rows by expert: chunks of an expert and up to kMoeChunk of the rows that chose it.
//
// Every block computes them for itself from the choices: about a microsecond, less than a fence, a counter and reading
// back what the last block wrote. Chunks with the most rows come first, so that blocks which take every n-th unit get
// the same mixture of costly and cheap ones.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/experts/moe_any.h"

namespace chimere::cuda {

// In shared memory, by a block of kWarps. Use: begin(), a barrier at some time, group() when the choices are ready. The
// references are to the kernel's parameters, so that only a pointer is in registers.
template <int kWarps>
struct GroupsOfBlock {
  static constexpr int kThreads = 32 * kWarps;

  const MoeArgs& a;
  const GroupRoom& room;
  uint8_t* memory;

  __device__ __forceinline__ void begin() const {
    for (int e = simt::thread_id(); e < a.router.rows; e += kThreads) masks()[e] = make_uint2(0, 0);
  }

  // By the whole block; ends with a barrier. ids: of each row, its experts. Returns the number of chunks.
  __device__ __forceinline__ int group(const int32_t* ids) const {
    return group_by([ids](int pair) { return __ldcg(ids + pair); });
  }
  // The same with id_of(pair), pair = row * n_used + choice.
  template <class IdOf>
  __device__ __forceinline__ int group_by(const IdOf& id_of) const {
    constexpr int kMine = kMoePairs / kThreads;
    const int n_pairs = a.n_rows * a.n_used;
    uint32_t mine[kMine];  // expert << 16 | row << kChoiceBits | choice
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      const int pair = i * kThreads + simt::thread_id();
      mine[i] = pair < n_pairs ? static_cast<uint32_t>(id_of(pair)) << 16 : kNoPair;
    }
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      if (mine[i] == kNoPair) break;
      const int pair = i * kThreads + simt::thread_id(), row = pair / a.n_used;
      mine[i] |= static_cast<uint32_t>(row << kChoiceBits | (pair - row * a.n_used));
      uint2& mask = masks()[mine[i] >> 16];
      atomicOr(row < 32 ? &mask.x : &mask.y, 1u << row % 32);
    }
    __syncthreads();
    const int n_chunks = place_chunks();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      if (mine[i] == kNoPair) break;
      const uint32_t expert = mine[i] >> 16, row = (mine[i] & 0xFFFFu) >> kChoiceBits, place = places()[expert];
      const uint2 mask = masks()[expert];
      const uint32_t before = (1u << row % 32) - 1u;
      const int rank = row < 32 ? __popc(mask.x & before) : __popc(mask.x) + __popc(mask.y & before);
      const int n_full = (__popc(mask.x) + __popc(mask.y)) / kMoeChunk, chunk = rank / kMoeChunk;
      const int at = chunk < n_full ? static_cast<int>(place & 0xFFFFu) + chunk : static_cast<int>(place >> 16);
      pairs()[at * kMoeChunk + rank % kMoeChunk] = static_cast<uint16_t>(mine[i]);
    }
    __syncthreads();
    return n_chunks;
  }

  __device__ __forceinline__ int expert(int chunk) const { return experts()[chunk] & (kMoeExperts - 1); }

  __device__ __forceinline__ UpChunk chunk(int at) const {
    UpChunk u;
    u.expert = expert(at);
    u.count = experts()[at] / kMoeExperts;
#pragma unroll
    for (int i = 0; i < kMoeChunk; ++i) {
      const int assignment = pairs()[at * kMoeChunk + min(i, u.count - 1)];
      u.assignment[i] = assignment >> kChoiceBits << 16 | (assignment & ((1 << kChoiceBits) - 1));
    }
    return u;
  }

  __device__ __forceinline__ uint2* masks() const { return reinterpret_cast<uint2*>(memory); }
  __device__ __forceinline__ uint32_t* places() const { return reinterpret_cast<uint32_t*>(memory + room.places); }
  __device__ __forceinline__ uint16_t* pairs() const { return reinterpret_cast<uint16_t*>(memory + room.pairs); }
  __device__ __forceinline__ uint16_t* experts() const { return reinterpret_cast<uint16_t*>(memory + room.experts); }

  static constexpr int kChoiceBits = 10;
  static constexpr uint32_t kNoPair = 0xFFFFFFFFu;
  static_assert(kMoePairs <= 1 << kChoiceBits && kMoeRows <= 1 << (16 - kChoiceBits), "pairs of 16 bits");
  static_assert(kMoeExperts * (kMoeChunk + 1) <= 1 << 16, "an expert and a count in 16 bits");

  // Four counts of an expert, 16 bits each: chunks of kMoeChunk rows, and of 3, 2 or 1.
  __device__ __forceinline__ static uint64_t counts(int n_rows) {
    const int rest = n_rows % kMoeChunk;
    return static_cast<uint64_t>(n_rows / kMoeChunk) | (rest == 0 ? 0ull : 1ull << 16 * (kMoeChunk - rest));
  }
  static_assert(kMoeChunk == 4);

  // Where the chunks of each expert go: places() has the first of the full ones, and the one of the rest.
  __device__ __forceinline__ int place_chunks() const {
    SIMT_SHARED(uint64_t, of_warps, kWarps);
    const auto n_rows = [&](int e) { return __popc(masks()[e].x) + __popc(masks()[e].y); };
    // A thread handles neighbouring experts.
    const int each = simt::div_up(a.router.rows, kThreads), first = simt::thread_id() * each;
    const int end = min(first + each, a.router.rows);
    uint64_t own = 0;
    for (int e = first; e < end; ++e) own += counts(n_rows(e));
    uint64_t sum = own;  // up to and with this thread's
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const uint64_t other = __shfl_up_sync(simt::kAllLanes, static_cast<unsigned long long>(sum), step);
      if (simt::lane_id() >= step) sum += other;
    }
    if (simt::lane_id() == 31) of_warps[simt::warp_id()] = sum;
    __syncthreads();
    uint64_t before = sum - own, all = 0;
    for (int w = 0; w < kWarps; ++w) {
      if (w < simt::warp_id()) before += of_warps[w];
      all += of_warps[w];
    }
    // The larger chunks before the smaller ones.
    all += all << 16;
    all += all << 32;
    const int n_chunks = static_cast<int>(all >> 48);
    before += all << 16;
    for (int e = first; e < end; ++e) {
      const int n = n_rows(e), full = n / kMoeChunk, rest = n % kMoeChunk;
      const auto place = [&](int kind) { return static_cast<int>(before >> 16 * kind & 0xFFFFu); };
      const int of_full = place(0), of_rest = rest == 0 ? 0 : place(kMoeChunk - rest);
      places()[e] = static_cast<uint32_t>(of_full | of_rest << 16);
      for (int i = 0; i < full; ++i) experts()[of_full + i] = static_cast<uint16_t>(kMoeChunk * kMoeExperts + e);
      if (rest > 0) experts()[of_rest] = static_cast<uint16_t>(rest * kMoeExperts + e);
      before += counts(n);
    }
    return n_chunks;
  }
};
using MoeGroups = GroupsOfBlock<kDotWarps>;

}  // namespace chimere::cuda
