// dot_device.h  What decode-class kernels share: quantising rows, dot products of a group, sums over lanes.
//
// Every function here has one order of operations, so that a row's bits are those of the row alone. Where a compiler
// could contract a product and a sum in one place and not in another, the fused form is written out.
#pragma once

#include "backend/cuda/simt/simt.h"

#include <type_traits>

#include "backend/cuda/kernels/common/activations.h"
#include "backend/cuda/kernels/common/card_facts.h"
#include "backend/cuda/kernels/common/head_squares.h"
#include "backend/cuda/kernels/common/hidden.h"
#include "backend/cuda/weights/weight.h"

#ifdef CHIMERE_SIMT_EMULATOR
#define CHIMERE_NOINLINE
#else
#define CHIMERE_NOINLINE __noinline__
#endif

namespace chimere::cuda {

__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }

// Quantised rows.

__device__ __forceinline__ float square_sum(float4 v, float sum) {
  return fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, fmaf(v.x, v.x, sum))));
}

// Four consecutive elements per lane, eight lanes per group, all 32 lanes call: the lane's word and the group's record.
__device__ __forceinline__ void quantise_quad(float4 v, uint32_t chunk, bool valid, uint32_t G, uint8_t* record) {
  const float most = simt::warp_max<8>(fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
  const float inverse = most > 0.0f ? __fdividef(127.0f, most) : 0.0f;
  const int q0 = __float2int_rn(v.x * inverse), q1 = __float2int_rn(v.y * inverse);
  const int q2 = __float2int_rn(v.z * inverse), q3 = __float2int_rn(v.w * inverse);
  const int sum = simt::warp_sum<8>(q0 + q1 + q2 + q3);
  if (!valid) return;
  const uint32_t g = chunk / 8, j = chunk % 8;
  const auto word = static_cast<uint32_t>((q0 & 255) | (q1 & 255) << 8 | (q2 & 255) << 16 | q3 << 24);
  *reinterpret_cast<uint32_t*>(record + 16u * ((j < 4 ? 0u : G) + place_in_plane(G, g)) + 4u * (j % 4)) = word;
  if (j == 0) {
    const float scale = most * (1.0f / 127.0f);
    *reinterpret_cast<float2*>(record + 32u * G + 8u * g) = make_float2(scale, scale * static_cast<float>(sum));
  }
}

// The same for a group of which each lane has one element; the bits are those of quantise_quad.
__device__ __forceinline__ void quantise_element(float v, uint32_t g, uint32_t G, uint8_t* record) {
  const float most = __uint_as_float(__reduce_max_sync(simt::kAllLanes, __float_as_uint(fabsf(v))));
  const float inverse = most > 0.0f ? __fdividef(127.0f, most) : 0.0f;
  const int q = __float2int_rn(v * inverse), sum = __reduce_add_sync(simt::kAllLanes, q), e = simt::lane_id();
  record[16u * ((e < 16 ? 0u : G) + place_in_plane(G, g)) + static_cast<uint32_t>(e % 16)] = static_cast<uint8_t>(q);
  if (e == 0) {
    const float scale = most * (1.0f / 127.0f);
    *reinterpret_cast<float2*>(record + 32u * G + 8u * g) = make_float2(scale, scale * static_cast<float>(sum));
  }
}

// A thread's first elements of the norm's weights: loaded before the row is there.
inline constexpr int kNormsKept = 2;
struct NormAhead {
  float4 w[kNormsKept];
};
__device__ __forceinline__ NormAhead load_norm(const InputRows& in) {
  NormAhead ahead{};
#pragma unroll
  for (int j = 0; j < kNormsKept; ++j) {
    const int i = simt::thread_id() + j * kDotThreads;
    if (in.norm && in.width % 4 == 0 && i < in.width / 4) {
      ahead.w[j] = __ldg(reinterpret_cast<const float4*>(in.norm) + i);
    }
  }
  return ahead;
}

__device__ __forceinline__ float4 times_each(float4 v, float4 w) {
  return make_float4(v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w);
}

// Lanes 4 j and on have the quarters of the squares of what the warp reads at its j-th turn from float4 `base` on.
__device__ __forceinline__ float load_squares(const InputRows& in, int64_t row, int base, int threads) {
  if (in.head_squares == nullptr) return 0.0f;
  const int n = in.width / kSquaresColumns, piece = (base + simt::lane_id() / 4 * threads) / 32 + simt::warp_id();
  return quarter_of_squares(in.head_squares + row * n, n, piece, in.head_width);
}

// Not inlined: kernels that have to fetch this code should be short.
inline __device__ CHIMERE_NOINLINE float4 activated_four(op::Activation activation, float4 gate, float4 up) {
  return make_float4(activated(activation, gate.x, up.x), activated(activation, gate.y, up.y),
                     activated(activation, gate.z, up.z), activated(activation, gate.w, up.w));
}

// A thread's elements of a row: all of them up to a width of 1024 kKept, loaded at once.
template <int kKept>
struct RowAhead {
  static_assert(kKept <= 8, "turns whose squares a warp has");
  float4 v[kKept];
  float squares;
};
template <int kKept>
__device__ __forceinline__ RowAhead<kKept> load_row(const InputRows& in, int64_t row, int threads = kDotThreads) {
  RowAhead<kKept> ahead;
  const int n = in.width % 4 == 0 ? in.width / 4 : 0;
  const auto* x4 = reinterpret_cast<const float4*>(in.x + row * in.width);
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    const int i = simt::thread_id() + j * threads;
    ahead.v[j] = i < n ? x4[i] : make_float4(0, 0, 0, 0);
  }
  ahead.squares = load_squares(in, row, 0, threads);
  return ahead;
}

// Makes the record of one row with the first `threads` threads of the block, except 1 / rms. After a barrier, which is
// the caller's, row_inverse() gives that. REQUIRES: with a norm, threads == kDotThreads.
template <int kKept>
__device__ __forceinline__ void make_record(const InputRows& in, int64_t row, bool quantise, const NormAhead& norms,
                                            const RowAhead<kKept>& kept, uint8_t* record, int threads = kDotThreads) {
  const float* x = in.x + row * in.width;
  const int n = in.width % 4 == 0 ? in.width / 4 : 0;
  const auto* x4 = reinterpret_cast<const float4*>(x);
  if (in.norm) {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kKept; ++j) sum = square_sum(kept.v[j], sum);
    for (int i = simt::thread_id() + kKept * kDotThreads; i < n; i += kDotThreads) sum = square_sum(x4[i], sum);
    if (n == 0) {
      for (int i = simt::thread_id(); i < in.width; i += kDotThreads) sum = fmaf(x[i], x[i], sum);
    }
    sum = simt::warp_sum(sum);
    if (simt::lane_id() == 0) {
      reinterpret_cast<float*>(record + record_squares_offset(in.width))[simt::warp_id()] = sum;
    }
  }
  const uint32_t G = row_groups(in.width);
  if (simt::thread_id() == 0 && G % 2 == 1) *reinterpret_cast<float2*>(record + 40 * G) = make_float2(0, 0);
  if (!quantise) return;

  const auto* norm4 = reinterpret_cast<const float4*>(in.norm);
  const auto* gate4 = reinterpret_cast<const float4*>(in.gate ? in.gate + row * in.width : nullptr);
  const auto gated = [&](int i, float4 v) {
    if (!in.activates() || i >= n) return v;
    return activated_four(in.activation, gate4 ? gate4[i] : v, v);
  };
  const auto inverses_of = [&](float squares) {
    return in.head_squares ? head_inverse(squares, in.head_width, in.eps) : 1.0f;
  };
  const auto divided = [&](float4 v, float inverses, int turn) {
    if (!in.head_squares) return v;
    return times_all(v, __shfl_sync(simt::kAllLanes, inverses, 4 * turn + simt::lane_id() / 8));
  };
  float inverses = inverses_of(kept.squares);
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    if (simt::warp_id() * 32 + j * threads >= n) return;
    const int i = simt::thread_id() + j * threads;
    float4 v = kept.v[j];
    if (!in.norm) {
      v = divided(gated(i, v), inverses, j);
    } else if (j < kNormsKept) {
      v = times_each(v, norms.w[j < kNormsKept ? j : 0]);
    } else if (i < n) {
      v = times_each(v, norm4[i]);
    }
    quantise_quad(v, static_cast<uint32_t>(i), i < n, G, record);
  }
  // Two at a time: loads issued together are waited for once.
  for (int base = kKept * threads; base + simt::warp_id() * 32 < n; base += 2 * threads) {
    float4 more[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int i = base + j * threads + simt::thread_id();
      more[j] = i < n ? x4[i] : make_float4(0, 0, 0, 0);
    }
    inverses = inverses_of(load_squares(in, row, base, threads));
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int i = base + j * threads + simt::thread_id();
      if (base + j * threads + simt::warp_id() * 32 >= n) break;
      const float4 v =
          in.norm ? times_each(more[j], i < n ? norm4[i] : more[j]) : divided(gated(i, more[j]), inverses, j);
      quantise_quad(v, static_cast<uint32_t>(i), i < n, G, record);
    }
  }
}

// 1 / rms of a record's row, from its sums of squares: always the same order of additions.
__device__ __forceinline__ float row_inverse(const InputRows& in, const uint8_t* record) {
  if (!in.norm) return 1.0f;
  const auto* squares = reinterpret_cast<const float4*>(record + record_squares_offset(in.width));
  const float4 a = squares[0], b = squares[1];
  const float sum = ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
  return rsqrtf(__fdividef(sum, static_cast<float>(in.width)) + in.eps);
}
static_assert(kDotWarps == 8, "eight sums of squares");

__device__ __forceinline__ float& stored_inverse(const uint8_t* record, int width) {
  return *reinterpret_cast<float*>(const_cast<uint8_t*>(record) + record_rms_offset(width));
}

// Puts n records from row `first` on at `to`: made here, or copied if quantise_rows has made them. Ends with a barrier;
// 1 / rms is then in its place.
__device__ __forceinline__ void stage_records(const InputRows& in, const NormAhead& norms, const uint8_t* made,
                                              int first, int n, bool quantise, uint8_t* to) {
  const uint32_t bytes = record_bytes(in.width);
  if (made) {
    const auto* from = reinterpret_cast<const uint4*>(made + static_cast<size_t>(first) * bytes);
    // For rows that stay floats only the last fields were written.
    const uint32_t pieces = bytes / 16, begin = quantise ? 0 : record_rms_offset(in.width) / 16;
    for (uint32_t i = simt::thread_id(); i < n * pieces; i += kDotThreads) {
      if (i % pieces >= begin) reinterpret_cast<uint4*>(to)[i] = from[i];
    }
  } else {
    for (int t = 0; t < n; ++t) {
      const int64_t row = in.gather ? in.gather[first + t] : first + t;
      make_record(in, row, quantise, norms, load_row<2>(in, row), to + t * bytes);
    }
    __syncthreads();
    if (simt::thread_id() < n) {
      uint8_t* record = to + simt::thread_id() * bytes;
      stored_inverse(record, in.width) = row_inverse(in, record);
    }
  }
  __syncthreads();
}

// Waits for the record of a single row, whose copy is in flight, and gives its 1 / rms. One barrier.
template <int kKept>
__device__ __forceinline__ float stage_one(const InputRows& in, int64_t row, const NormAhead& norms,
                                           const RowAhead<kKept>& kept, bool quantise, uint8_t* to) {
  make_record(in, row, quantise, norms, kept, to);
  __syncthreads();
  return row_inverse(in, to);
}

// Dot products.

struct ActGroup {
  uint4 lo, hi;
  float scale, sum;
};

__device__ __forceinline__ ActGroup load_act(const uint8_t* record, uint32_t G, uint32_t g) {
  const float2 meta = *reinterpret_cast<const float2*>(record + 32u * G + 8u * g);
  const uint32_t at = place_in_plane(G, g);
  return {*reinterpret_cast<const uint4*>(record + 16u * at), *reinterpret_cast<const uint4*>(record + 16u * (G + at)),
          meta.x, meta.y};
}

// Group 2p + half of a record with an even number of groups.
template <int kHalf>
__device__ __forceinline__ ActGroup load_act_half(const uint8_t* record, uint32_t G, uint32_t p) {
  const uint32_t at = 16u * p + (kHalf ? 8u * G : 0u);
  const float2 meta = *reinterpret_cast<const float2*>(record + 32u * G + 16u * p + 8u * kHalf);
  return {*reinterpret_cast<const uint4*>(record + at), *reinterpret_cast<const uint4*>(record + 16u * G + at), meta.x,
          meta.y};
}

// Sums of products of bytes stay below 2^22: added to the bits of 1.5 * 2^23 they become that float plus the sum.
inline constexpr int kFloatBias = 0x4B400000;
__device__ __forceinline__ float unbias(int biased) { return __int_as_float(biased) - 12582912.0f; }

__device__ __forceinline__ int dot16(const uint32_t* q, const uint4& x) {
  int sum = __dp4a(static_cast<int>(q[0]), static_cast<int>(x.x), kFloatBias);
  sum = __dp4a(static_cast<int>(q[1]), static_cast<int>(x.y), sum);
  sum = __dp4a(static_cast<int>(q[2]), static_cast<int>(x.z), sum);
  return __dp4a(static_cast<int>(q[3]), static_cast<int>(x.w), sum);
}
__device__ __forceinline__ int dot16_more(const uint32_t* q, const uint4& x, int sum) {
  sum = __dp4a(static_cast<int>(q[0]), static_cast<int>(x.x), sum);
  sum = __dp4a(static_cast<int>(q[1]), static_cast<int>(x.y), sum);
  sum = __dp4a(static_cast<int>(q[2]), static_cast<int>(x.z), sum);
  return __dp4a(static_cast<int>(q[3]), static_cast<int>(x.w), sum);
}

// acc + the product of a group of weights with a group of activations.
template <int kScales, int kMins>
__device__ __forceinline__ float add_group(const Group& w, const ActGroup& x, float acc) {
  if constexpr (kScales == 1) {
    acc = fmaf(times(w.scale[0], x.scale), unbias(dot16_more(w.q + 4, x.hi, dot16(w.q, x.lo))), acc);
  } else {
    const float first = times(w.scale[0], unbias(dot16(w.q, x.lo)));
    acc = fmaf(x.scale, fmaf(w.scale[1], unbias(dot16(w.q + 4, x.hi)), first), acc);
  }
  if constexpr (kMins == 1) acc = fmaf(w.min[0], x.sum, acc);
  if constexpr (kMins == 2) {
    constexpr uint32_t kOnes[4] = {0x01010101u, 0x01010101u, 0x01010101u, 0x01010101u};
    const float first = times(w.min[0], unbias(dot16(kOnes, x.lo)));
    acc = fmaf(x.scale, fmaf(w.min[1], unbias(dot16(kOnes, x.hi)), first), acc);
  }
  return acc;
}

// The sum over groups of `lanes` neighbouring lanes, a power of two; each lane gets it.
__device__ __forceinline__ float lane_sum(float v, int lanes) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(simt::kAllLanes, v, step);
    if (step < lanes) v += other;
  }
  return v;
}

// kN sums over each kLanes neighbouring lanes for little more than the cost of one: at each step a lane hands half of
// its values to its partner and adds up the other half. The sums are those of lane_sum's butterfly, bit for bit. Lane l
// of the kLanes ends with the sums l * kN / kLanes .. in v[0 ..]; if kN < kLanes, kLanes / kN neighbours end with the
// same one.
template <int kLanes, int kN>
__device__ __forceinline__ void scatter_sums(float (&v)[kN]) {
  static_assert((kN & (kN - 1)) == 0);
  const int lane = simt::lane_id();
  int n = kN;
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) {
    if (n == 1) {
      v[0] += __shfl_xor_sync(simt::kAllLanes, v[0], step);
      continue;
    }
    n /= 2;
    const bool upper = lane & step;
#pragma unroll
    for (int i = 0; i < kN / 2; ++i) {
      if (i >= n) break;
      const float given = upper ? v[i] : v[i + n], kept = upper ? v[i + n] : v[i];
      v[i] = kept + __shfl_xor_sync(simt::kAllLanes, given, step);
    }
  }
}

template <int kLanes, int kN, class Store>
__device__ __forceinline__ void scatter_and_store(float (&v)[kN], Store store) {
  constexpr int kMine = kN > kLanes ? kN / kLanes : 1, kShare = kN < kLanes ? kLanes / kN : 1;
  scatter_sums<kLanes>(v);
  const int lane = simt::lane_id() % kLanes;
  if (lane % kShare != 0) return;
#pragma unroll
  for (int i = 0; i < kMine; ++i) store(lane / kShare * kMine + i, v[i]);
}

// Sums the kN values over each `lanes` neighbouring lanes and calls store(i, sum i), once for each i, on one of them.
template <int kN, class Store>
__device__ __forceinline__ void finish_sums(float (&v)[kN], int lanes, Store store) {
  if (lanes == 32) return scatter_and_store<32>(v, store);
  if (lanes == 16) return scatter_and_store<16>(v, store);
  if (lanes == 8) return scatter_and_store<8>(v, store);
#pragma unroll
  for (int i = 0; i < kN; ++i) {
    const float sum = lane_sum(v[i], lanes);
    if (simt::lane_id() % lanes == 0) store(i, sum);
  }
}

// Code-books in shared memory.

template <class F>
CHIMERE_BOTH constexpr uint32_t book_bytes() {
  return book_bytes(F::kType);
}

// Copies the codebook, if F has one; the caller follows it with a barrier.
template <class F>
__device__ __forceinline__ CodeBooks open_books(const IqGrids* grids, uint8_t* shared) {
  if constexpr (F::kType == DType::IQ3_S) {
    auto* table = reinterpret_cast<uint32_t*>(shared);
    const auto* grid = reinterpret_cast<const uint32_t*>(grids->iq3_s);
    for (int i = simt::thread_id(); i < 512 * kIq3Copies / 4; i += 32 * simt::n_warps()) {
      const uint32_t entry = grid[i * 4 / kIq3Copies];
      reinterpret_cast<uint4*>(table)[i] = make_uint4(entry, entry, entry, entry);
    }
    return {grids, shared, 4u * (simt::lane_id() % kIq3Copies)};
  }
  return {grids};
}

// Products for any format, for cases too small or too rare for a kernel of their own. Computes a lane's part of the
// products of one weight row with up to four rows of activations; lane_sum completes them.

inline constexpr int kAnyRows = 4;

// Quantised rows, `bytes` apart, of `planes` groups each; the weights are multiplied with those from group `first` on.
struct ActRows {
  const uint8_t* records;
  uint32_t bytes, planes, first;
};

inline __device__ CHIMERE_NOINLINE float4 any_dot(DType type, const uint8_t* row, uint32_t G, int lanes,
                                                  const IqGrids* grids, ActRows acts, int n) {
  float acc[kAnyRows] = {};
  for (uint32_t g = simt::lane_id() % lanes; g < G; g += lanes) {
    Group w;
    unpack_any(type, row, G, g, grids, w);
    const bool mins = w.min[0] != 0.0f || w.min[1] != 0.0f;
#pragma unroll
    for (int t = 0; t < kAnyRows; ++t) {
      if (t >= n) break;
      const ActGroup x = load_act(acts.records + t * acts.bytes, acts.planes, acts.first + g);
      acc[t] = mins ? add_group<2, 2>(w, x, acc[t]) : add_group<2, 0>(w, x, acc[t]);
    }
  }
  return make_float4(acc[0], acc[1], acc[2], acc[3]);
}

// Float activations of up to four rows: rows of x, normalised or gated when read.
struct FloatRows {
  const float* x[kAnyRows];
  const float* gate[kAnyRows];  // or null
  float inverse_rms[kAnyRows];
  const float* norm;  // or null
  op::Activation activation;
};

__device__ __forceinline__ float float_act(const FloatRows& rows, int t, int i) {
  const float v = rows.x[t][i];
  if (rows.gate[t]) return activated(rows.activation, rows.gate[t][i], v);
  if (rows.activation == op::Activation::relu2) return activated(rows.activation, v, v);
  return rows.norm ? v * rows.inverse_rms[t] * rows.norm[i] : v;
}

// Up to eight consecutive weights from element `first` on.
__device__ __forceinline__ void float_weights(DType type, const uint8_t* row, int first, float (&w)[8]) {
  if (type == DType::F32) {
    const Words4 a = load_words4(row + 4 * first), b = load_words4(row + 4 * first + 16);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      w[i] = bits_to_float(a.w[i]);
      w[i + 4] = bits_to_float(b.w[i]);
    }
    return;
  }
  const Words4 a = load_words4(row + 2 * first);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t low = a.w[i] & 0xFFFFu, high = a.w[i] >> 16;
    w[2 * i] = type == DType::F16 ? half_to_float(low) : bits_to_float(low << 16);
    w[2 * i + 1] = type == DType::F16 ? half_to_float(high) : bits_to_float(high << 16);
  }
}

// A float matrix: eight elements per lane at a time, all 32 lanes on one row.
inline __device__ CHIMERE_NOINLINE float4 float_dot(DType type, const uint8_t* row, int width, FloatRows rows, int n) {
  float acc[kAnyRows] = {};
  for (int first = 8 * simt::lane_id(); first < width; first += 256) {
    float w[8];
    const int here = min(8, width - first);
    if (here == 8) {
      float_weights(type, row, first, w);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (i >= here) {
          w[i] = 0.0f;
        } else if (type == DType::F32) {
          w[i] = bits_to_float(load_u32(row + 4 * (first + i)));
        } else {
          const uint32_t bits = load_u16(row + 2 * (first + i));
          w[i] = type == DType::F16 ? half_to_float(bits) : bits_to_float(bits << 16);
        }
      }
    }
#pragma unroll
    for (int t = 0; t < kAnyRows; ++t) {
      if (t >= n) break;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (i < here) acc[t] = fmaf(w[i], float_act(rows, t, first + i), acc[t]);
      }
    }
  }
  return make_float4(acc[0], acc[1], acc[2], acc[3]);
}

// A quantised matrix with float activations: one group per lane at a time, all 32 lanes on one row.
inline __device__ CHIMERE_NOINLINE float4 exact_dot(DType type, const uint8_t* row, uint32_t G, const IqGrids* grids,
                                                    FloatRows rows, int n) {
  float acc[kAnyRows] = {};
  for (uint32_t g = simt::lane_id(); g < G; g += 32) {
    Group w;
    unpack_any(type, row, G, g, grids, w);
    for (int e = 0; e < kGroup; ++e) {
      const auto q = static_cast<float>(static_cast<int8_t>(w.q[e / 4] >> (8 * (e % 4))));
      const float weight = times(w.scale[e / 16], q) + w.min[e / 16];
#pragma unroll
      for (int t = 0; t < kAnyRows; ++t) {
        if (t < n) acc[t] = fmaf(weight, float_act(rows, t, static_cast<int>(g) * kGroup + e), acc[t]);
      }
    }
  }
  return make_float4(acc[0], acc[1], acc[2], acc[3]);
}

}  // namespace chimere::cuda
