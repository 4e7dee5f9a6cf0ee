// host_rows.cu   Rows, normed or not, and choices to pinned memory; the sums of the host's experts from there, added
// Shapes    x, sums [n_rows, width] f32, 16-byte aligned; ids, weights [n_rows, n_used]
// Bytes     over the bus: n_rows * (width * 4 + n_used * 8) out, n_rows * width * 4 back; one row of 2048: 8 KiB each
// Launch    grid n_rows, block 256; 16 bytes a thread where the width allows it, so that few requests cross the bus.
//           Each block signals its row and waits for its row. With many rows they poll seldom: a thousand blocks that
//           read over the bus without pause would keep the host from using it
// Numerics  f32 sums of squares in an order that depends on the width alone; scale (sum + gate shared) is one fused
//           operation each, in float32
// Measured  not apart from the host's work, which takes tens of times as long
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/experts/host_rows.h"

namespace chimere::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kFewRows = 16;  // of decoding: a microsecond matters
constexpr uint32_t kPauseNanoseconds = 20'000;

__device__ __forceinline__ float square_of(float x) { return x * x; }
__device__ __forceinline__ float square_of(float4 x) { return x.x * x.x + x.y * x.y + (x.z * x.z + x.w * x.w); }
__device__ __forceinline__ float scaled(float x, float by, float norm) { return x * by * norm; }
__device__ __forceinline__ float4 scaled(float4 x, float by, float4 norm) {
  return make_float4(x.x * by * norm.x, x.y * by * norm.y, x.z * by * norm.z, x.w * by * norm.w);
}

__global__ void __launch_bounds__(kThreads) hand_over_kernel(HandOverArgs a) {
  simt::allow_next();
  simt::wait_for_previous();
  const int64_t row = blockIdx.x;
  const auto give = [&](auto zero, int n) {
    using T = decltype(zero);
    const T* from = reinterpret_cast<const T*>(a.x) + row * n;
    const T* norm = reinterpret_cast<const T*>(a.norm);
    T* to = reinterpret_cast<T*>(a.host_x) + row * n;
    if (!norm) {
      for (int i = threadIdx.x; i < n; i += kThreads) to[i] = from[i];
      return;
    }
    float squares = 0;
    for (int i = threadIdx.x; i < n; i += kThreads) squares += square_of(from[i]);
    const float by = 1.0f / sqrtf(simt::block_sum(squares) / static_cast<float>(a.width) + a.eps);
    for (int i = threadIdx.x; i < n; i += kThreads) to[i] = scaled(from[i], by, norm[i]);
  };
  if (a.width % 4 == 0) {
    give(make_float4(0, 0, 0, 0), a.width / 4);
  } else {
    give(0.0f, a.width);
  }
  for (int k = threadIdx.x; k < a.n_used; k += kThreads) {
    a.host_ids[row * a.n_used + k] = a.ids[row * a.n_used + k];
    a.host_weights[row * a.n_used + k] = a.weights[row * a.weights_stride + k];
  }
  if (threadIdx.x == 0) a.bell.done[row] = 0;
  __syncthreads();
  if (threadIdx.x == 0) simt::store_for_host(&a.bell.rung[row], a.bell.message);
}

__device__ __forceinline__ float sum_of(float sum, float gate, float shared) { return fmaf(gate, shared, sum); }
__device__ __forceinline__ float4 sum_of(float4 s, float gate, float4 x) {
  return make_float4(fmaf(gate, x.x, s.x), fmaf(gate, x.y, s.y), fmaf(gate, x.z, s.z), fmaf(gate, x.w, s.w));
}

__global__ void __launch_bounds__(kThreads) take_back_kernel(TakeBackArgs a) {
  simt::allow_next();
  simt::wait_for_previous();
  const int64_t row = blockIdx.x;
  const float gate = a.shared_gate ? a.shared_gate[row * a.gate_stride] : 1.0f;
  if (threadIdx.x == 0) {
    while (simt::load_of_host(&a.bell.done[row]) == 0) simt::pause(a.n_rows > kFewRows ? kPauseNanoseconds : 0);
  }
  __syncthreads();
  const auto take = [&](auto zero, int n) {
    using T = decltype(zero);
    const T* sums = reinterpret_cast<const T*>(a.host_sums) + row * n;
    const T* shared = reinterpret_cast<const T*>(a.shared);
    T* out = reinterpret_cast<T*>(a.out) + row * n;
    for (int i = threadIdx.x; i < n; i += kThreads) {
      const T sum = sum_of(sums[i], shared ? gate : 0.0f, shared ? shared[row * n + i] : zero);
      out[i] = sum_of(a.add ? out[i] : zero, a.scale, sum);
    }
  };
  if (a.width % 4 == 0) {
    take(make_float4(0, 0, 0, 0), a.width / 4);
  } else {
    take(0.0f, a.width);
  }
}

}  // namespace

Status hand_over(const Stream& stream, const HandOverArgs& args) {
  return simt::launch(hand_over_kernel, {dim3(static_cast<unsigned>(args.n_rows)), dim3(kThreads), 0, stream, true},
                      args);
}

Status take_back(const Stream& stream, const TakeBackArgs& args) {
  return simt::launch(take_back_kernel, {dim3(static_cast<unsigned>(args.n_rows)), dim3(kThreads), 0, stream, true},
                      args);
}

}  // namespace chimere::cuda
