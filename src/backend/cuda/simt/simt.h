// simt.h  What a kernel source may use, under nvcc and under the emulator alike. Included first by every .cu file.
//
//   namespace {
//   __global__ void scale_kernel(float* x, float by, int n) {
//     simt::wait_for_previous();                // from here on, what the previous kernel wrote can be read
//     simt::allow_next();                       // the next kernel of the stream may start loading its weights; not
//                                               // earlier, or kernels far ahead would occupy the SMs
//     const int i = blockIdx.x * blockDim.x + threadIdx.x;
//     if (i < n) x[i] *= by;
//   }
//   }  // namespace
//   Status scale(const Stream& stream, float* x, float by, int n) {
//     return simt::launch(scale_kernel, {div_up(n, 256), 256, 0, stream, true}, x, by, n);
//   }
//
// Kernels are in anonymous namespaces (all .cu files of a test program are linked together). Inline PTX is here and
// nowhere else. Tensor-core fragments have the layout of mma.m16n8k16 and mma.m16n8k32 in the PTX ISA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#ifdef CHIMERE_SIMT_EMULATOR
#include "backend/cuda/simt/emulator.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif

#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda::simt {

struct Launch {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;  // dynamic
  const Stream& stream;
  bool dependent = false;  // may start before the previous kernel has ended (sm_90 on); it calls wait_for_previous()
  const char* file = __builtin_FILE();  // where the launch stands, for messages
  int line = __builtin_LINE();
};

// The most shared memory, static and dynamic, that a thread block may have on the current device.
size_t shared_limit();

// Whether the current device has programmatic dependent launch: a kernel may start before the previous one has ended.
bool has_dependent_launch();

// Whether it has asynchronous bulk copies from global to shared memory (sm_90 on; the emulator does).
bool has_bulk_copy();

// The error of a launch that failed.
Error launch_error(const Launch& launch, const char* what);
// Why any device would refuse the launch; empty when it is valid.
std::string launch_complaint(const Launch& launch);

__host__ __device__ constexpr int div_up(int a, int b) { return (a + b - 1) / b; }
__host__ __device__ constexpr int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

#ifdef CHIMERE_SIMT_EMULATOR

// simt shared arrays: SIMT_SHARED(float, tile, 32 * 33);  makes tile a float[32 * 33] of the block.
#define SIMT_SHARED(type, name, count)               \
  static constexpr char name##_simt_tag{};           \
  type(&name)[count] = *static_cast<type(*)[count]>( \
      ::chimere::cuda::simt::static_shared(&name##_simt_tag, sizeof(type) * (count), alignof(type)))

template <class T>
T* dynamic_shared() {
  return static_cast<T*>(dynamic_shared_bytes());
}

template <class... P, class... A>
Status launch(void (*kernel)(P...), const Launch& at, A&&... args) {
  if (const std::string complaint = launch_complaint(at); !complaint.empty())
    return launch_error(at, complaint.c_str());
  at.stream.submit([kernel, grid = at.grid, block = at.block, bytes = at.shared_bytes,
                    place = Place{at.file, at.line, at.dependent},
                    ... values = static_cast<std::remove_cv_t<P>>(args)] {
    run_grid(place, grid, block, bytes, [&] { kernel(values...); });
  });
  return Ok{};
}

inline void allow_next() {}
inline void prefetch_l2(const void*) {}
inline uint4 load_streaming(const uint4* p) { return *p; }
inline void store_for_host(uint32_t* p, uint32_t v) { *p = v; }
inline uint32_t load_of_host(const uint32_t* p) { return *p; }
inline void pause(uint32_t) { misuse("a wait for the host that did not do its work"); }

inline void cp_async4(void* to_shared, const void* from) { cp_async_issue(to_shared, from, 4, true); }
inline void cp_async16(void* to_shared, const void* from, bool valid = true) {
  cp_async_issue(to_shared, from, 16, valid);
}
inline void cp_async16_stream(void* to_shared, const void* from) { cp_async_issue(to_shared, from, 16, true); }
inline void cp_async_commit() { cp_async_close_group(); }
template <int kPendingGroups>
void cp_async_wait() {
  cp_async_drain(kPendingGroups);
}

inline void bulk_begin(uint64_t* arrived) { bulk_open(arrived); }
inline void bulk_copy(void* to_shared, const void* from, uint32_t bytes, uint64_t* arrived) {
  bulk_copy_emulated(to_shared, from, bytes, arrived);
}
inline void bulk_stream(void* to_shared, const void* from, uint32_t bytes, uint64_t* arrived) {
  bulk_copy_emulated(to_shared, from, bytes, arrived);
}
inline void bulk_prefetch(const void* from, uint32_t bytes) {
  if (reinterpret_cast<uintptr_t>(from) % 16 != 0 || bytes % 16 != 0) misuse("bulk prefetch: not whole sixteens");
}
inline void bulk_end(uint64_t* arrived) { bulk_close(arrived); }
inline void bulk_again(uint64_t* arrived) { bulk_reopen(arrived); }
inline void bulk_wait(uint64_t* arrived, uint32_t parity = 0) { bulk_check(arrived, parity); }

inline void mma_s8_from(int32_t start, int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  for (int32_t& v : d) v = start;
  mma_s8(d, a, b);
}
inline void mma_s8_half_from(int32_t start, int32_t (&d)[4], const uint32_t (&a)[2], uint32_t b) {
  const uint32_t all[4] = {a[0], a[1], 0, 0}, column[2] = {b, 0};
  mma_s8_from(start, d, all, column);
}

inline void ldmatrix_x4(uint32_t (&r)[4], const void* row) { ldmatrix_emulated(r, row, 4, false); }
inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row) { ldmatrix_emulated(r, row, 4, true); }
inline void ldmatrix_x2(uint32_t (&r)[2], const void* row) { ldmatrix_emulated(r, row, 2, false); }
inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row) { ldmatrix_emulated(r, row, 2, true); }

#else  // nvcc, and the host compiler for headers

#ifdef __CUDACC__

#define SIMT_SHARED(type, name, count) __shared__ type name[count]

template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char simt_dynamic_shared[];
  return reinterpret_cast<T*>(simt_dynamic_shared);
}

template <class... P, class... A>
Status launch(void (*kernel)(P...), const Launch& at, A&&... args) {
  if (const std::string complaint = launch_complaint(at); !complaint.empty())
    return launch_error(at, complaint.c_str());
  cudaError_t error = cudaSuccess;
  // Beyond 48 KiB, static arrays included, a kernel has to ask.
  if (at.shared_bytes > 0) {
    error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(at.shared_bytes));
  }
  if (error == cudaSuccess) {
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config{};
    config.gridDim = at.grid;
    config.blockDim = at.block;
    config.dynamicSmemBytes = at.shared_bytes;
    config.stream = at.stream.handle();
    config.attrs = attributes;
    if (at.dependent && has_dependent_launch()) {
      attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    // An SM has to be idle before it changes its shared-memory carve-out: kernels that are to overlap must use the
    // same one.
    if (at.stream.wants_all_shared()) {
      attributes[config.numAttrs].id = cudaLaunchAttributePreferredSharedMemoryCarveout;
      attributes[config.numAttrs++].val.sharedMemCarveout = cudaSharedmemCarveoutMaxShared;
    }
    error = cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...);
  }
  if (error == cudaSuccess) return Ok{};
  return launch_error(at, cudaGetErrorString(error));
}

// Without effect below sm_90 and in kernels that were not launched as dependent.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void allow_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

__device__ __forceinline__ int lane_id() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}

// The L2 cache policy for data that is read once.
__device__ __forceinline__ uint64_t read_once() {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

__device__ __forceinline__ void prefetch_l2(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// For data that is read once and not written while the kernel runs: weights. Does not allocate in L1.
__device__ __forceinline__ uint4 load_streaming(const uint4* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

// A word in pinned memory by which card and host signal each other. A host that reads the word also sees what the
// thread block wrote before store_for_host(); after load_of_host() has read a word, the kernel sees what the host wrote
// before it.
__device__ __forceinline__ void store_for_host(uint32_t* p, uint32_t v) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ __forceinline__ uint32_t load_of_host(const uint32_t* p) {
  uint32_t v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
// Between two polls of such a word.
__device__ __forceinline__ void pause(uint32_t nanoseconds) {
  if (nanoseconds > 0) __nanosleep(nanoseconds);
}

// 0xFF in the bytes whose highest bit is set.
__device__ __forceinline__ uint32_t byte_signs(uint32_t x) {
  uint32_t mask;
  asm("prmt.b32 %0, %1, 0, 0xBA98;" : "=r"(mask) : "r"(x));
  return mask;
}

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void cp_async4(void* to_shared, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to_shared)), "l"(from) : "memory");
}
// Sixteen bytes; zeros when not valid (`from` is then not read).
__device__ __forceinline__ void cp_async16(void* to_shared, const void* from, bool valid = true) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(to_shared)), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
}
// For data that is read once, as bulk_stream.
__device__ __forceinline__ void cp_async16_stream(void* to_shared, const void* from) {
  asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(to_shared)),
               "l"(from), "l"(read_once())
               : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPendingGroups>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPendingGroups) : "memory");
}

// Asynchronous bulk copies of runs of memory to shared memory (sm_90 on; in code for older cards the calling thread
// copies, which is correct and slow: the launcher asks has_bulk_copy()). `arrived` is an mbarrier in shared memory. One
// thread calls bulk_begin; then any threads of its warp call bulk_copy, once per run; then one calls bulk_end. Other
// threads call bulk_wait, with a block barrier between bulk_begin and bulk_wait. Those that waited also see what the
// thread that called bulk_end wrote before, with or without copies. The mbarrier can be used again: when all threads
// have waited and passed a block barrier, bulk_again takes the place of bulk_begin, and the parity given to bulk_wait
// alternates.
// REQUIRES: addresses and sizes are multiples of 16.
__device__ __forceinline__ void bulk_begin(uint64_t* arrived) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(arrived)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
__device__ __forceinline__ void bulk_copy(void* to_shared, const void* from, uint32_t bytes, uint64_t* arrived) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(arrived)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to_shared)),
               "l"(from), "r"(bytes), "r"(shared_address(arrived))
               : "memory");
#else
  for (uint32_t i = 0; i < bytes / 16; ++i) static_cast<uint4*>(to_shared)[i] = static_cast<const uint4*>(from)[i];
#endif
}
// The same for data that is read once, weights: evicted from the L2 cache first, so that what is read again and again
// (small tensors, states, the kernels' code) stays there.
__device__ __forceinline__ void bulk_stream(void* to_shared, const void* from, uint32_t bytes, uint64_t* arrived) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(arrived)), "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(shared_address(to_shared)),
      "l"(from), "r"(bytes), "r"(shared_address(arrived)), "l"(read_once())
      : "memory");
#else
  bulk_copy(to_shared, from, bytes, arrived);
#endif
}
// Prefetches a run of memory to the L2 cache, ahead of the copy. REQUIRES: as bulk_copy.
__device__ __forceinline__ void bulk_prefetch(const void* from, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
#endif
}
__device__ __forceinline__ void bulk_end(uint64_t* arrived) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(arrived)) : "memory");
#endif
}
__device__ __forceinline__ void bulk_again(uint64_t*) {}
__device__ __forceinline__ void bulk_wait(uint64_t* arrived, uint32_t parity = 0) {
#if __CUDA_ARCH__ >= 900
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(shared_address(arrived)), "r"(parity)
        : "memory");
  }
#endif
}

// Lane 8 m + r gives the address of row r (16 bytes) of matrix m.
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x2(uint32_t (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}

// d += a b, with a [16, 16] row-major and b [16, 8] column-major fragments.
__device__ __forceinline__ void mma_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// d += a b, with a [16, 32] and b [32, 8] of signed bytes.
__device__ __forceinline__ void mma_s8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// d = start + a b: no register has to be set before.
__device__ __forceinline__ void mma_s8_from(int32_t start, int32_t (&d)[4], const uint32_t (&a)[4],
                                            const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%10, %10, %10, %10};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(start));
}
// The same with a [16, 16] and b [16, 8].
__device__ __forceinline__ void mma_s8_half_from(int32_t start, int32_t (&d)[4], const uint32_t (&a)[2], uint32_t b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %7, %7, %7};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b), "r"(start));
}

#endif  // __CUDACC__
#endif  // CHIMERE_SIMT_EMULATOR

#if defined(CHIMERE_SIMT_EMULATOR) || defined(__CUDACC__)

inline constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

__device__ __forceinline__ int thread_id() {
  return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}
__device__ __forceinline__ int warp_id() { return thread_id() / 32; }
__device__ __forceinline__ int n_warps() { return static_cast<int>(blockDim.x * blockDim.y * blockDim.z) / 32; }

// Reductions over groups of kWidth neighbouring lanes (a power of two); every lane gets the result. Additions are in
// butterfly order, always the same.
template <int kWidth = 32, class T>
__device__ __forceinline__ T warp_sum(T v) {
#pragma unroll
  for (int step = kWidth / 2; step > 0; step /= 2) v += __shfl_xor_sync(kAllLanes, v, step);
  return v;
}
template <int kWidth = 32, class T>
__device__ __forceinline__ T warp_max(T v) {
#pragma unroll
  for (int step = kWidth / 2; step > 0; step /= 2) v = max(v, __shfl_xor_sync(kAllLanes, v, step));
  return v;
}
template <int kWidth = 32, class T>
__device__ __forceinline__ T warp_min(T v) {
#pragma unroll
  for (int step = kWidth / 2; step > 0; step /= 2) v = min(v, __shfl_xor_sync(kAllLanes, v, step));
  return v;
}

// Reductions over the thread block; every thread gets the result. REQUIRES: all threads call it, a multiple of 32.
template <class T>
__device__ __forceinline__ T block_sum(T v) {
  SIMT_SHARED(T, partial, 32);
  v = warp_sum(v);
  if (lane_id() == 0) partial[warp_id()] = v;
  __syncthreads();
  T total = partial[0];
  for (int i = 1; i < n_warps(); i++) total += partial[i];
  __syncthreads();
  return total;
}
template <class T>
__device__ __forceinline__ T block_max(T v) {
  SIMT_SHARED(T, partial, 32);
  v = warp_max(v);
  if (lane_id() == 0) partial[warp_id()] = v;
  __syncthreads();
  T total = partial[0];
  for (int i = 1; i < n_warps(); i++) total = max(total, partial[i]);
  __syncthreads();
  return total;
}

#endif

}  // namespace chimere::cuda::simt
