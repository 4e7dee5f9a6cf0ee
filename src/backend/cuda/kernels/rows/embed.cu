// embed.cu   out[r,i] = scale * table[tokens[r],i]
// Shapes    table [n_vocab, d] of any type, any d that its blocks allow; out f32
// Bytes     rows*d*(4 + the type's); decode d=2048 of Q4_K, one row: 9 KB, so nothing but latencies
// Launch    grid rows, block 256, eight values a thread: a quarter of a group, which four threads unpack for themselves
// Numerics  exact products and sums of the type, each rounded by itself
// Method    In a decode step the tokens are read where the host wrote them, in parallel with the kernel that fetches
//           the other inputs. While they cross the bus, the kernel decodes row 0 and discards it: that warms the
//           instruction cache, which is cold at the start of a step.
// Measured  H200, one row: 6.0 us in a chain, with the wait for the bus
// Rejected  a thread per group of 32 and one kernel for all types (6.4 us for one row on an H200: stores 128 bytes
//           apart, 40 KB of instructions)
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/rows/embed.h"

#include "backend/cuda/kernels/common/decode_group.h"

namespace chimere::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kValues = 8;  // of a thread
constexpr int kShare = kGroup / kValues;

// Values [kValues * part, + kValues) of a row.
template <DType kType>
__device__ __forceinline__ void decode_part(const Weight& w, const uint8_t* row, int part, float (&out)[kValues]) {
  if constexpr (kType == DType::F32) {  // for all types of floats
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      const int at = part * kValues + i;
      out[i] = at < w.width ? decode_float(w.type, row, at) : 0.0f;
    }
  } else {
    Group group;
    unpack_any(kType, row, static_cast<uint32_t>(w.width / kGroup), static_cast<uint32_t>(part / kShare), w.grids,
               group);
    const bool is_odd = part & 1, is_upper = part & 2;
    const float scale = group.scale[is_upper ? 1 : 0], min = group.min[is_upper ? 1 : 0];
#pragma unroll
    for (int word = 0; word < kValues / 4; ++word) {
      const uint32_t lower = is_odd ? group.q[2 + word] : group.q[word];
      const uint32_t upper = is_odd ? group.q[6 + word] : group.q[4 + word];
      const uint32_t q = is_upper ? upper : lower;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        out[4 * word + i] = __fadd_rn(__fmul_rn(scale, static_cast<float>(static_cast<int8_t>(q >> (8 * i)))), min);
      }
    }
  }
}
static_assert(kShare == 4);

struct Floats {  // of any type
  static constexpr DType kType = DType::F32;
};

template <class F>
__global__ void __launch_bounds__(kThreads) embed_kernel(const __grid_constant__ EmbedArgs a) {
  if (!a.ahead) simt::wait_for_previous();
  simt::allow_next();
  const int row = blockIdx.x, width = a.table.width;
  const int32_t token = __ldcg(a.tokens + row);
  float* to = a.out + static_cast<int64_t>(row) * width;
  const bool is_aligned = width % kValues == 0;
  int32_t id = a.ahead ? 0 : token;
#pragma unroll 1
  for (int round = a.ahead ? 0 : 1; round < 2; ++round) {
    const uint8_t* from = a.table.row(0, id);
#pragma unroll 1
    for (int part = threadIdx.x; part * kValues < width; part += kThreads) {
      float values[kValues];
      decode_part<F::kType>(a.table, from, part, values);
#pragma unroll
      for (float& value : values) value *= a.scale;
      if (is_aligned) {
        auto* place = reinterpret_cast<float4*>(to + part * kValues);
        place[0] = {values[0], values[1], values[2], values[3]};
        place[1] = {values[4], values[5], values[6], values[7]};
      } else {
#pragma unroll
        for (int i = 0; i < kValues; ++i) {
          if (part * kValues + i < width) to[part * kValues + i] = values[i];
        }
      }
    }
    id = token;
  }
  if (a.ahead) simt::wait_for_previous();  // whoever waits for this kernel waits for the one before as well
}

}  // namespace

Status embed_rows(const Stream& stream, const EmbedArgs& args) {
  void (*kernel)(EmbedArgs) = embed_kernel<Floats>;
  with_format(args.table.type, [&](auto format) { kernel = embed_kernel<decltype(format)>; });
  return simt::launch(kernel, {dim3(static_cast<unsigned>(args.n_rows)), dim3(kThreads), 0, stream, true}, args);
}

}  // namespace chimere::cuda
