// emulator.h  Runs kernels on the CPU, to test their logic where there is no GPU.
//
// A kernel source compiled as C++ with CHIMERE_SIMT_EMULATOR sees CUDA's names defined here. Blocks run one after
// another; the threads of a block are fibers of the calling OS thread that switch only at barriers and warp
// collectives. The emulator is strict where the device is merely undefined. It aborts, naming the place of the launch,
// when
//   - a barrier or a warp collective is not reached by all threads it names, exited ones included,
//   - lanes of one warp meet in different collectives or with different masks,
//   - a shuffle reads a lane outside the mask, ldmatrix or a copy to shared memory has a misaligned or wrong address,
//   - a thread waits for bulk copies with no barrier between their begin and the wait, or with the wrong parity,
//   - bulk copies are issued again before anybody has waited for the last,
//   - no thread of a grid launched as dependent calls wait_for_previous().
// Shared memory holds NaN patterns when a block begins. Threads that race for want of a barrier give different results
// under the two schedules of set_schedule(): a kernel test should run under both (see for_both_schedules).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "backend/cuda/simt/emulated_math.h"
#include "backend/cuda/simt/emulated_types.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

inline constexpr int warpSize = 32;
inline constinit thread_local uint3 threadIdx{};
inline constinit thread_local uint3 blockIdx{};
inline constinit thread_local dim3 blockDim{};
inline constinit thread_local dim3 gridDim{};

namespace chimere::cuda::simt {

enum class Schedule {
  forward,   // threads in order, cp.async as late as it may
  backward,  // blocks and threads in reverse order, cp.async at once
};
void set_schedule(Schedule schedule);

// Runs `test` once under each schedule.
template <class F>
void for_both_schedules(F&& test) {
  set_schedule(Schedule::backward);
  test();
  set_schedule(Schedule::forward);
  test();
}

// What shared_limit() answers: 99 KiB unless a test says otherwise, the least of the cards we build for.
void set_shared_limit(size_t bytes);

// Where a launch stands, for messages, and whether it may begin before the previous one ended.
struct Place {
  const char* file;
  int line;
  bool dependent;
};

// Runs thread() for every thread of the grid.
void run_grid(const Place& place, dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& thread);

// Records that the grid waits: a dependent one that does not could end before the grid it depends on, and the grid
// after it, which waits for this one alone, would read too early.
void wait_for_previous();

// Aborts with the place of the launch and the current block and thread.
[[noreturn]] void misuse(const char* what);

// Waits for the whole block; returns how many threads gave true.
int block_barrier(bool vote);

// Waits until all lanes of mask are here with the same `complete`; the last of them calls it for all.
// args[lane] is what that lane gave; null outside the mask.
using Complete = void (*)(uint32_t mask, void* const* args);
void warp_collective(uint32_t mask, Complete complete, void* arg);

// The block's storage of the SIMT_SHARED array identified by tag, aligned as requested and no better, as on a card.
void* static_shared(const void* tag, size_t bytes, size_t alignment);
void* dynamic_shared_bytes();

void cp_async_issue(void* to, const void* from, int bytes, bool valid);
void cp_async_close_group();
void cp_async_drain(int pending_groups);

// `arrived` tells whether copies may still be added, and how often it was opened.
void bulk_open(uint64_t* arrived);
void bulk_reopen(uint64_t* arrived);
void bulk_close(uint64_t* arrived);
void bulk_copy_emulated(void* to, const void* from, uint32_t bytes, uint64_t* arrived);
void bulk_check(const uint64_t* arrived, uint32_t parity);

inline int lane_id() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}

// Every lane of mask gives a value and names the lane it reads.
template <class T>
T shuffle(uint32_t mask, T value, int source) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  struct Arg {
    T value;
    int source;
    T result;
  } arg{value, source, value};
  warp_collective(
      mask,
      [](uint32_t named, void* const* args) {
        for (int lane = 0; lane < 32; lane++) {
          if (!(named >> lane & 1u)) continue;
          Arg* to = static_cast<Arg*>(args[lane]);
          if (!(named >> to->source & 1u)) misuse("a shuffle reads a lane outside its mask");
          to->result = static_cast<Arg*>(args[to->source])->value;
        }
      },
      &arg);
  return arg.result;
}

// Folds the values of the lanes of mask, in lane order, with F::operator()(accumulator, value, lane).
template <class R, class T, class F>
R fold(uint32_t mask, T value, R start, F) {
  struct Arg {
    T value;
    R start;
    R result;
  } arg{value, start, start};
  warp_collective(
      mask,
      [](uint32_t named, void* const* args) {
        bool first = true;
        R result{};
        for (int lane = 0; lane < 32; lane++) {
          if (!(named >> lane & 1u)) continue;
          const Arg* from = static_cast<const Arg*>(args[lane]);
          if (first) result = from->start;
          first = false;
          result = F{}(result, from->value, lane);
        }
        for (int lane = 0; lane < 32; lane++) {
          if (named >> lane & 1u) static_cast<Arg*>(args[lane])->result = result;
        }
      },
      &arg);
  return arg.result;
}

void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void mma_s8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void ldmatrix_emulated(uint32_t* out, const void* row, int n_matrices, bool transposed);

}  // namespace chimere::cuda::simt

inline void __syncthreads() { chimere::cuda::simt::block_barrier(false); }
inline int __syncthreads_count(int predicate) { return chimere::cuda::simt::block_barrier(predicate != 0); }
inline int __syncthreads_or(int predicate) { return chimere::cuda::simt::block_barrier(predicate != 0) > 0; }
inline int __syncthreads_and(int predicate) { return chimere::cuda::simt::block_barrier(predicate == 0) == 0; }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __syncwarp(uint32_t mask = 0xFFFFFFFFu) {
  chimere::cuda::simt::warp_collective(
      mask, [](uint32_t, void* const*) {}, nullptr);
}

template <class T>
T __shfl_sync(uint32_t mask, T value, int source, int width = 32) {
  const int lane = chimere::cuda::simt::lane_id();
  return chimere::cuda::simt::shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <class T>
T __shfl_xor_sync(uint32_t mask, T value, int lane_mask, int width = 32) {
  // A lane may read from its own segment or an earlier one, as the PTX formula of shfl.bfly says.
  const int lane = chimere::cuda::simt::lane_id();
  const int source = lane ^ lane_mask;
  return chimere::cuda::simt::shuffle(mask, value, source <= (lane | (width - 1)) ? source : lane);
}
template <class T>
T __shfl_down_sync(uint32_t mask, T value, unsigned delta, int width = 32) {
  const int lane = chimere::cuda::simt::lane_id();
  const int source = lane + static_cast<int>(delta);
  return chimere::cuda::simt::shuffle(mask, value, source <= (lane | (width - 1)) ? source : lane);
}
template <class T>
T __shfl_up_sync(uint32_t mask, T value, unsigned delta, int width = 32) {
  const int lane = chimere::cuda::simt::lane_id();
  const int source = lane - static_cast<int>(delta);
  return chimere::cuda::simt::shuffle(mask, value, source >= (lane & ~(width - 1)) ? source : lane);
}
inline uint32_t __ballot_sync(uint32_t mask, int predicate) {
  return chimere::cuda::simt::fold(mask, predicate != 0, 0u,
                                   [](uint32_t r, bool v, int lane) { return r | (v ? 1u << lane : 0u); });
}
inline int __any_sync(uint32_t mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(uint32_t mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }
inline unsigned __reduce_add_sync(uint32_t mask, unsigned v) {
  return chimere::cuda::simt::fold(mask, v, 0u, [](unsigned r, unsigned x, int) { return r + x; });
}
inline int __reduce_add_sync(uint32_t mask, int v) {
  return static_cast<int>(__reduce_add_sync(mask, static_cast<unsigned>(v)));
}
inline unsigned __reduce_max_sync(uint32_t mask, unsigned v) {
  return chimere::cuda::simt::fold(mask, v, v, [](unsigned r, unsigned x, int) { return x > r ? x : r; });
}
inline int __reduce_max_sync(uint32_t mask, int v) {
  return chimere::cuda::simt::fold(mask, v, v, [](int r, int x, int) { return x > r ? x : r; });
}
inline unsigned __reduce_min_sync(uint32_t mask, unsigned v) {
  return chimere::cuda::simt::fold(mask, v, v, [](unsigned r, unsigned x, int) { return x < r ? x : r; });
}
inline int __reduce_min_sync(uint32_t mask, int v) {
  return chimere::cuda::simt::fold(mask, v, v, [](int r, int x, int) { return x < r ? x : r; });
}
// The lanes of mask that gave the same value.
template <class T>
uint32_t __match_any_sync(uint32_t mask, T value) {
  struct Arg {
    T value;
    uint32_t result;
  } arg{value, 0};
  chimere::cuda::simt::warp_collective(
      mask,
      [](uint32_t named, void* const* args) {
        for (int i = 0; i < 32; i++) {
          for (int j = 0; j < 32; j++) {
            if (!(named >> i & named >> j & 1u)) continue;
            Arg* to = static_cast<Arg*>(args[i]);
            if (to->value == static_cast<Arg*>(args[j])->value) to->result |= 1u << j;
          }
        }
      },
      &arg);
  return arg.result;
}
template <class T>
uint32_t __match_all_sync(uint32_t mask, T value, int* same) {
  *same = __match_any_sync(mask, value) == mask;
  return *same ? mask : 0u;
}

// Fibers switch at barriers only, so plain memory is atomic here.
#define SIMT_ATOMICS(T)            \
  inline T atomicAdd(T* p, T v) {  \
    const T old = *p;              \
    *p = old + v;                  \
    return old;                    \
  }                                \
  inline T atomicExch(T* p, T v) { \
    const T old = *p;              \
    *p = v;                        \
    return old;                    \
  }
#define SIMT_INTEGER_ATOMICS(T)                     \
  SIMT_ATOMICS(T)                                   \
  inline T atomicMax(T* p, T v) {                   \
    const T old = *p;                               \
    if (v > old) *p = v;                            \
    return old;                                     \
  }                                                 \
  inline T atomicMin(T* p, T v) {                   \
    const T old = *p;                               \
    if (v < old) *p = v;                            \
    return old;                                     \
  }                                                 \
  inline T atomicOr(T* p, T v) {                    \
    const T old = *p;                               \
    *p = old | v;                                   \
    return old;                                     \
  }                                                 \
  inline T atomicAnd(T* p, T v) {                   \
    const T old = *p;                               \
    *p = old & v;                                   \
    return old;                                     \
  }                                                 \
  inline T atomicCAS(T* p, T expected, T desired) { \
    const T old = *p;                               \
    if (old == expected) *p = desired;              \
    return old;                                     \
  }
SIMT_INTEGER_ATOMICS(int)
SIMT_INTEGER_ATOMICS(unsigned)
SIMT_INTEGER_ATOMICS(unsigned long long)
SIMT_ATOMICS(float)
SIMT_ATOMICS(double)
#undef SIMT_ATOMICS
#undef SIMT_INTEGER_ATOMICS

#define SIMT_LOAD(name)       \
  template <class T>          \
  inline T name(const T* p) { \
    return *p;                \
  }
SIMT_LOAD(__ldg)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldca)
#undef SIMT_LOAD
template <class T>
inline void __stcs(T* p, std::type_identity_t<T> v) {
  *p = v;
}
template <class T>
inline void __stcg(T* p, std::type_identity_t<T> v) {
  *p = v;
}
[[noreturn]] inline void __trap() { chimere::cuda::simt::misuse("__trap()"); }
