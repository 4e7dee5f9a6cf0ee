// matvec_float.cu   out_i[t] = W_i n_t, as matvec.cu, for matrices of F16, BF16 or F32: output heads, small models
// Shapes    x [n_rows, width] f32; W_i [rows_i, width], all of one type, width % 8 = 0; out_i [n_rows, pitch_i] f32
// Bytes     the weights once for up to 8 rows; Nemotron's head [131072, 2688] F16: 705 MB
// Launch    3 blocks of 8 warps per SM (2 from 2 rows on), a warp over tiles of 4 weight rows, a lane over 8 elements
//           at a time, with those of the next step in flight. Every block stages the activations as floats, in two
//           planes of four, so that lanes do not conflict in a bank.
// Order     The first weights are loaded before the wait for the previous kernel.
// Numerics  f32 throughout; the order of additions depends on the width alone
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/dense/matvec_float.h"

#include "backend/cuda/kernels/dense/matvec_device.h"

namespace chimere::cuda {
namespace {

struct FloatPlan {
  MatvecArgs args;
  int first_tile[kMaxProjections] = {};
  int n_tiles = 0;
  int n_passes = 1;
};

// Eight neighbouring elements of a row.
template <DType kType>
struct Eight {
  uint4 raw[kType == DType::F32 ? 2 : 1];

  __device__ __forceinline__ void load(const uint8_t* row, int chunk) {
    const auto* from = reinterpret_cast<const uint4*>(row);
    if constexpr (kType == DType::F32) {
      raw[0] = simt::load_streaming(from + 2 * chunk);
      raw[1] = simt::load_streaming(from + 2 * chunk + 1);
    } else {
      raw[0] = simt::load_streaming(from + chunk);
    }
  }
  __device__ __forceinline__ void unpack(float (&w)[8]) const {
    if constexpr (kType == DType::F32) {
      const uint32_t words[8] = {raw[0].x, raw[0].y, raw[0].z, raw[0].w, raw[1].x, raw[1].y, raw[1].z, raw[1].w};
#pragma unroll
      for (int i = 0; i < 8; ++i) w[i] = __uint_as_float(words[i]);
    } else {
      const uint32_t words[4] = {raw[0].x, raw[0].y, raw[0].z, raw[0].w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t low = words[i] & 0xFFFFu, high = words[i] >> 16;
        w[2 * i] = kType == DType::F16 ? half_to_float(low) : __uint_as_float(low << 16);
        w[2 * i + 1] = kType == DType::F16 ? half_to_float(high) : __uint_as_float(high << 16);
      }
    }
  }
};

// The row's elements, normalised or activated, in two planes: four of each eight, then the others. By the whole block,
// without a barrier at the end.
__device__ __forceinline__ void stage_row(const InputRows& in, int64_t row, float* staged) {
  const float* x = in.x + row * in.width;
  const float* gate = in.gate ? in.gate + row * in.width : x;
  float inverse = 1.0f;
  if (in.norm) {
    float squares = 0;
    for (int i = simt::thread_id(); i < in.width; i += kDotThreads) squares = fmaf(x[i], x[i], squares);
    inverse = 1.0f / sqrtf(simt::block_sum(squares) / static_cast<float>(in.width) + in.eps);
  }
  for (int i = simt::thread_id(); i < in.width; i += kDotThreads) {
    float v = x[i];
    if (in.norm) {
      v = v * inverse * in.norm[i];
    } else if (in.activates()) {
      v = activated(in.activation, gate[i], v);
    }
    staged[i % 8 / 4 * (in.width / 2) + i / 8 * 4 + i % 4] = v;
  }
}

// Four neighbouring rows of one matrix.
struct FloatTile {
  const MatvecOut* out;
  int first_row;

  __device__ __forceinline__ FloatTile(const FloatPlan& p, int tile) {
    int which = 0;
    while (which + 1 < p.args.n_outs && tile >= p.first_tile[which + 1]) ++which;
    out = &p.args.outs[which];
    first_row = (tile - p.first_tile[which]) * kFloatTileRows;
  }
  // Rows past the end are the last one, once more: they are computed and not stored.
  __device__ __forceinline__ const uint8_t* row(int r) const {
    return out->weight.row(0, min(first_row + r, out->weight.rows - 1));
  }
};

template <DType kType, int kT>
__global__ void __launch_bounds__(kDotThreads, kT == 1 ? 3 : 2) float_kernel(const __grid_constant__ FloatPlan p) {
  auto* staged = simt::dynamic_shared<float>();  // [kT][width]
  const int width = p.args.in.width, n_chunks = width / 8, lane = simt::lane_id();
  const int n_blocks = static_cast<int>(gridDim.x) / p.n_passes, pass = static_cast<int>(blockIdx.x) % p.n_passes;
  const int first = pass * kT, n = min(kT, p.args.n_rows - first), stride = n_blocks * kDotWarps;
  int tile = static_cast<int>(blockIdx.x) / p.n_passes * kDotWarps + simt::warp_id();

  Eight<kType> ahead[kFloatTileRows];
  const auto load = [&](const FloatTile& at, int chunk) {
    const int there = min(chunk, n_chunks - 1);
#pragma unroll
    for (int r = 0; r < kFloatTileRows; ++r) ahead[r].load(at.row(r), there);
  };
  FloatTile at(p, min(tile, p.n_tiles - 1));
  load(at, lane);
  simt::wait_for_previous();
  simt::allow_next();
  for (int t = 0; t < n; ++t) {
    stage_row(p.args.in, p.args.in.gather ? p.args.in.gather[first + t] : first + t, staged + t * width);
  }
  __syncthreads();

  while (tile < p.n_tiles) {
    float acc[kT * kFloatTileRows] = {};  // [t][r]
    const FloatTile now = at;
    tile += stride;
    for (int chunk = lane; chunk - lane < n_chunks; chunk += 32) {
      Eight<kType> raw[kFloatTileRows];
#pragma unroll
      for (int r = 0; r < kFloatTileRows; ++r) raw[r] = ahead[r];
      if (chunk - lane + 32 < n_chunks) {
        load(now, chunk + 32);
      } else if (tile < p.n_tiles) {
        at = FloatTile(p, tile);
        load(at, lane);
      }
      if (chunk >= n_chunks) continue;
      float w[kFloatTileRows][8];
#pragma unroll
      for (int r = 0; r < kFloatTileRows; ++r) raw[r].unpack(w[r]);
#pragma unroll
      for (int t = 0; t < kT; ++t) {
        if (t >= n) break;
        const float4 low = *reinterpret_cast<const float4*>(staged + t * width + 4 * chunk);
        const float4 high = *reinterpret_cast<const float4*>(staged + t * width + width / 2 + 4 * chunk);
        const float x[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int r = 0; r < kFloatTileRows; ++r) {
#pragma unroll
          for (int i = 0; i < 8; ++i) acc[t * kFloatTileRows + r] = fmaf(w[r][i], x[i], acc[t * kFloatTileRows + r]);
        }
      }
    }
    finish_sums(acc, 32, [&](int i, float sum) {
      const int t = i / kFloatTileRows, row = now.first_row + i % kFloatTileRows;
      if (t < n && row < now.out->weight.rows) store_output(*now.out, first + t, row, sum);
    });
  }
}

template <DType kType>
Status launch_format(const Stream& stream, const FloatPlan& plan, const MatvecChoice& c) {
  const auto launch = [&](auto kernel) {
    return simt::launch(
        kernel, {static_cast<unsigned>(c.blocks), kDotThreads, c.shared_bytes, stream, plan.args.dependent}, plan);
  };
  switch (c.pass_rows) {
    case 8: return launch(float_kernel<kType, 8>);
    case 4: return launch(float_kernel<kType, 4>);
    default: return launch(float_kernel<kType, 1>);
  }
}

}  // namespace

Status matvec_float(const Stream& stream, const MatvecArgs& args, const MatvecChoice& choice) {
  FloatPlan plan;
  plan.args = args;
  plan.n_passes = choice.n_passes;
  for (int i = 0; i < args.n_outs; ++i) {
    plan.first_tile[i] = plan.n_tiles;
    plan.n_tiles += simt::div_up(args.outs[i].weight.rows, kFloatTileRows);
  }
  switch (choice.format) {
    case DType::F16: return launch_format<DType::F16>(stream, plan, choice);
    case DType::BF16: return launch_format<DType::BF16>(stream, plan, choice);
    default: return launch_format<DType::F32>(stream, plan, choice);
  }
}

}  // namespace chimere::cuda
