// moe.cu   x += sum_k w_k down_k(activation(gate_k n, up_k n)) + w_s shared(n),  n = RMSNorm(x) * norm, w of the router
// Shapes    x [n_rows, width] f32, n_rows <= 64; router [n_experts, width]; gate, up [n_experts, d_ff, width];
//           down [n_experts, width, d_ff] in layouts of weights/formats.h
// Bytes     router once for four rows; each chosen expert once for up to 4 rows that chose it, the shared expert once
//           for 4 rows (the second-level cache serves repetitions)
// Launch    router: a block for two experts, of several rows for four experts and four rows. One row, where the card
//           has bulk copies: moe_one.h. Else weights come through rings of slots (moe_ring.h), 2 blocks of 8 warps a
//           multiprocessor; types without kernels and exact mode: moe_any.cu. Of one row every block chooses
//           for itself, of more the last router block of four rows does, and the last of all groups the rows by expert.
//           More than 4 rows: rows are quantised by launches of their own, outputs go by expert (each weight unpacked
//           once for 4 rows) and are added by a launch of its own: six launches in all instead of three
// Numerics  router in float32 whatever the mode; ties go to the lower index; softmax over the chosen logits;
//           experts as in matvec.cu; their outputs are added in the order of the choices, the shared expert last
// Measured  H200, 256 experts of [512, 2048] IQ3_S, 8 used and a Q5_K shared one, in chains: one row router 2.0,
//           up 10.2, down 6.6 us; 32 rows, all that belongs to them included, 30, 92 and 48 us (39, 108 and 85 with
//           weights loaded into registers). 128 experts of [1856, 2688] Q4_0 without gates, 6 used: up 16, down 15 us
// Rejected  chunks of 2 rows and 3 blocks a multiprocessor (spills: 9 % slower at 32 rows); comparing all
//           pairs with one another to group them (4 us more)
#include "backend/cuda/simt/simt.h"

#include <string>

#include "backend/cuda/kernels/moe_instances.h"

namespace chimere::cuda {
namespace {

constexpr int kRouterRows = 2;                         // experts of a block
constexpr int kRouterParts = kDotWarps / kRouterRows;  // warps of an expert
constexpr int kRouterAhead = 4;                        // float4 of a lane loaded before the input is there
constexpr int kRouterBatch = 4;                        // rows of activations of a block

__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

// The exclusive sums of two counts a thread, over the block; ends with a barrier.
__device__ __forceinline__ int2 sums_before(int2 mine, int2* of_warps) {
  int2 sum = mine;  // up to and with this thread's
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int x = __shfl_up_sync(simt::kAllLanes, sum.x, step), y = __shfl_up_sync(simt::kAllLanes, sum.y, step);
    if (simt::lane_id() >= step) sum = make_int2(sum.x + x, sum.y + y);
  }
  if (simt::lane_id() == 31) of_warps[simt::warp_id()] = sum;
  __syncthreads();
  int2 before = make_int2(sum.x - mine.x, sum.y - mine.y);
  for (int w = 0; w < simt::warp_id(); ++w) before = make_int2(before.x + of_warps[w].x, before.y + of_warps[w].y);
  __syncthreads();
  return before;
}

// Pairs sorted by expert, then by row, and cut into chunks, by the whole block. `places` [kMoeExperts] are counts of
// the experts' pairs at first, then where their next pair goes.
__device__ void group_pairs(const MoePlan& p, const int32_t* ids, int32_t* places, int2* of_warps) {
  const int n_rows = p.args.n_rows, n_used = p.args.n_used, n_experts = p.args.router.rows, tid = simt::thread_id();
  for (int e = tid; e < n_experts; e += kDotThreads) places[e] = 0;
  __syncthreads();
  for (int i = tid; i < n_rows * n_used; i += kDotThreads) atomicAdd(places + ids[i], 1);
  __syncthreads();
  // A thread has neighbouring experts.
  const int each = simt::div_up(n_experts, kDotThreads), first = tid * each, end = min(first + each, n_experts);
  int2 mine = make_int2(0, 0);  // pairs, chunks
  for (int e = first; e < end; ++e) {
    mine = make_int2(mine.x + places[e], mine.y + simt::div_up(places[e], kMoeChunk));
  }
  int2 at = sums_before(mine, of_warps);
  for (int e = first; e < end; ++e) {
    const int count = places[e];
    places[e] = at.x;
    for (int i = 0; i < count; i += kMoeChunk) {
      p.scratch.chunks[at.y++] = {e, at.x + i, min(kMoeChunk, count - i), 0};
    }
    at.x += count;
  }
  if (tid == kDotThreads - 1) *p.scratch.n_chunks = at.y;
  __syncthreads();
  // The experts of a row differ: rows one after the other, and nobody meets at a place.
  if (simt::warp_id() != 0) return;
  for (int t = 0; t < n_rows; ++t) {
    for (int k = simt::lane_id(); k < n_used; k += 32) {
      int32_t& place = places[ids[t * n_used + k]];
      p.scratch.pairs[place++] = t << 16 | k;
    }
    __syncwarp();
  }
}

// Every warp has a part of the rows of kE experts and the same part of x: products and squares come from one pass over
// it. One row: the next kernel shall start early, and every block has two experts. More rows: four of them meet four
// experts, because the second-level cache cannot serve more readers.
template <int kE>
__global__ void __launch_bounds__(kDotThreads, kE == 1 ? 2 : 4) router_kernel(const __grid_constant__ MoePlan p) {
  constexpr int kExperts = kRouterRows * kE;                  // of a block
  SIMT_SHARED(float2, parts, kRouterBatch * kDotWarps * kE);  // sums of products, and of squares
  SIMT_SHARED(int32_t, ids, kMoePairs);
  SIMT_SHARED(int32_t, places, kMoeExperts);
  SIMT_SHARED(int2, of_warps, kDotWarps);
  SIMT_SHARED(int, finished, 1);
  const Weight& w = p.args.router;
  const int n_logits = w.rows + (p.args.shared_router ? 1 : 0), width = w.width, all_rows = p.args.n_rows;
  const int first_row = static_cast<int>(blockIdx.y) * kRouterBatch, n_rows = min(kRouterBatch, all_rows - first_row);
  const int first_expert = static_cast<int>(blockIdx.x) * kExperts + simt::warp_id() / kRouterParts * kE;
  const int part = simt::warp_id() % kRouterParts, lane = simt::lane_id();
  const auto is_shared = [&](int e) { return first_expert + e == w.rows; };
  const auto in_quads = [&](int e) { return width % 4 == 0 && (is_shared(e) || w.type == DType::F32); };
  const auto row_of = [&](int e) {
    return is_shared(e) ? reinterpret_cast<const uint8_t*>(p.args.shared_router)
                        : w.row(0, min(first_expert + e, w.rows - 1));
  };
  const auto* norm = reinterpret_cast<const float4*>(p.args.in.norm);
  const auto at = [&](int i) { return (i * kRouterParts + part) * 32 + lane; };
  const auto weight = [&](int e, int i) {
    return times_each(__ldg(reinterpret_cast<const float4*>(row_of(e)) + at(i)), __ldg(norm + at(i)));
  };
  float4 ahead[kE][kRouterAhead] = {};
#pragma unroll
  for (int e = 0; e < kE; ++e) {
    if (!in_quads(e) || first_expert + e >= n_logits) continue;
#pragma unroll
    for (int i = 0; i < kRouterAhead; ++i) {
      if (at(i) < width / 4) ahead[e][i] = weight(e, i);
    }
  }
  // Earlier than elsewhere: this kernel is so short that the next one would come late, and takes little room.
  simt::allow_next();
  simt::wait_for_previous();

  for (int t = 0; t < n_rows; ++t) {
    const float* x = p.args.in.x + static_cast<int64_t>(first_row + t) * width;
    const auto* x4 = reinterpret_cast<const float4*>(x);
    float sum[kE] = {}, squares = 0;
    if (width % 4 == 0) {
      float4 v[kRouterAhead];
#pragma unroll
      for (int i = 0; i < kRouterAhead; ++i) v[i] = at(i) < width / 4 ? x4[at(i)] : make_float4(0, 0, 0, 0);
#pragma unroll
      for (int i = 0; i < kRouterAhead; ++i) {
#pragma unroll
        for (int e = 0; e < kE; ++e) sum[e] = dot(ahead[e][i], v[i], sum[e]);
        squares = square_sum(v[i], squares);
      }
      for (int i = kRouterAhead; at(i) < width / 4; ++i) {
        const float4 more = x4[at(i)];
#pragma unroll
        for (int e = 0; e < kE; ++e) {
          if (in_quads(e) && first_expert + e < n_logits) sum[e] = dot(weight(e, i), more, sum[e]);
        }
        squares = square_sum(more, squares);
      }
    } else if (part == 0) {
      for (int i = lane; i < width; i += 32) squares = fmaf(x[i], x[i], squares);
    }
#pragma unroll
    for (int e = 0; e < kE; ++e) {
      if (!in_quads(e) && part == 0 && first_expert + e < n_logits) {
        FloatRows rows{};
        rows.x[0] = x;
        rows.inverse_rms[0] = 1.0f;
        rows.norm = p.args.in.norm;
        sum[e] = is_shared(e) ? float_dot(DType::F32, row_of(e), width, rows, 1).x
                              : any_product(w, row_of(e), true, 32, {}, rows);
      }
      sum[e] = simt::warp_sum(sum[e]);
    }
    squares = simt::warp_sum(squares);
    if (lane == 0) {
#pragma unroll
      for (int e = 0; e < kE; ++e) parts[(t * kDotWarps + simt::warp_id()) * kE + e] = make_float2(sum[e], squares);
    }
  }
  __syncthreads();
  for (int i = simt::thread_id(); i < n_rows * kExperts; i += kDotThreads) {
    const int t = i / kExperts, r = i % kExperts, to = static_cast<int>(blockIdx.x) * kExperts + r;
    float sum = 0, squares = 0;
    for (int j = 0; j < kRouterParts; ++j) {
      const float2 one = parts[(t * kDotWarps + r / kE * kRouterParts + j) * kE + r % kE];
      sum += one.x;
      squares += one.y;
    }
    const float inverse = 1.0f / sqrtf(squares / static_cast<float>(width) + p.args.in.eps);
    float logit = sum * inverse;
    if (p.args.router_bias && to < w.rows) logit += p.args.router_bias[to];
    if (to < n_logits) __stcg(p.scratch.logits + static_cast<int64_t>(first_row + t) * (w.rows + 1) + to, logit);
  }
  if (p.choice_by_block) return;

  // The last block of some rows to come here sees all of their logits and chooses; the last of all sees all choices.
  const auto is_last_of = [&](int32_t* counter, unsigned n) {
    __threadfence();
    __syncthreads();
    if (simt::thread_id() == 0) finished[0] = atomicAdd(counter, 1);
    __syncthreads();
    const bool last = finished[0] == static_cast<int>(n) - 1;
    if (last && simt::thread_id() == 0) *counter = 0;
    if (last) __threadfence();
    return last;
  };
  if (!is_last_of(p.scratch.n_chunks + 2 + blockIdx.y, gridDim.x)) return;
  for (int t = simt::warp_id(); t < n_rows; t += kDotWarps) {
    if (w.rows <= kBlockExperts) {
      choose<kBlockExperts / 32>(p, first_row + t);
    } else {
      choose<kMoeExperts / 32>(p, first_row + t);
    }
  }
  if (!is_last_of(p.scratch.n_chunks + 1, gridDim.y)) return;
  for (int i = simt::thread_id(); i < all_rows * p.args.n_used; i += kDotThreads) ids[i] = __ldcg(p.scratch.ids + i);
  group_pairs(p, ids, places, of_warps);
}

__global__ void __launch_bounds__(kDotThreads) add_experts_kernel(const __grid_constant__ MoePlan p) {
  simt::wait_for_previous();
  simt::allow_next();
  const int width = p.args.down.rows, n_used = p.args.n_used, t = static_cast<int>(blockIdx.y);
  const int i = static_cast<int>(blockIdx.x) * kDotThreads + simt::thread_id();
  if (i >= width) return;
  const float* weights = p.scratch.weights + t * (n_used + 1);
  const float* outputs = p.scratch.outputs + static_cast<int64_t>(t) * n_used * width + i;
  float sum = 0;
  for (int k = 0; k < n_used; ++k) sum = fmaf(weights[k], outputs[static_cast<int64_t>(k) * width], sum);
  sum = add_down_biases(p, t, i, weights, sum);
  const int64_t at = static_cast<int64_t>(t) * width + i;
  if (p.args.shared_down) sum = fmaf(weights[n_used], p.scratch.shared_outputs[at], sum);
  p.args.residual[at] += sum;
}

// Of gate and up. Without a gate rows go by twos, and there must be an even number of them.
DType common_type(const Weight& gate, const Weight& up) {
  if (!gate) return up.rows % 2 == 0 ? up.type : DType::F32;
  return gate.type == up.type ? up.type : DType::F32;
}

// Null where any_dot has to serve: their lanes take two groups at a time.
const MoeKernels* kernels_for(DType routed, DType shared, int width, int shared_width) {
  if (row_groups(width) % 2 != 0 || row_groups(shared_width) % 2 != 0) return nullptr;
  for (const auto find : {moe_kernels_k, moe_kernels_legacy, moe_kernels_iq, moe_kernels_fallback}) {
    if (const MoeKernels* k = find(routed, shared)) return k;
  }
  return nullptr;
}

const MoeKernels* up_kernels(const MoeArgs& a) {
  if (a.exact) return nullptr;
  return kernels_for(common_type(a.gate, a.up), common_type(a.shared_gate, a.shared_up), a.in.width, a.in.width);
}
const MoeKernels* down_kernels(const MoeArgs& a) {
  if (a.exact) return nullptr;
  return kernels_for(a.down.type, a.shared_down.type, a.down.width, a.shared_down.width);
}

// Whether both ways go through the kernels of moe_one.h, which have to agree on the form of the hidden row.
bool takes_one_row(const MoePlan& p) {
  const MoeArgs& a = p.args;
  if (!p.choice_by_block || p.log2_in == 0 || !simt::has_bulk_copy()) return false;
  const MoeKernels *up = up_kernels(a), *down = down_kernels(a);
  if (!up || !down || !up->up_fits(p) || !down->down_fits(p)) return false;
  if (a.shared_up && (up->shared == DType::F32 || down->shared == DType::F32)) return false;
  if (a.up.rows % kGroup != 0 || a.shared_up.rows % kGroup != 0) return false;
  if (a.shared_up && static_cast<bool>(a.gate) != static_cast<bool>(a.shared_gate)) return false;
  return OneUpPlan::of(p).n_slots > 0 && OneDownPlan::of(p).n_slots > 0;
}

constexpr int whole_groups(int width) { return (width + kGroup - 1) / kGroup * kGroup; }
int shared_offset(const MoeArgs& a) { return whole_groups(a.n_used * a.down.width); }
int hidden_width(const MoeArgs& a) { return shared_offset(a) + whole_groups(a.shared_down.width); }

MoePlan make_plan(const MoeArgs& a) {
  MoePlan p;
  p.args = a;
  p.scratch = moe_scratch(a, a.n_rows, a.scratch);
  const auto log2_lanes = [](uint32_t pieces) { return log2_of(lanes_per_row(pieces)); };
  p.log2_in = log2_lanes(row_groups(a.in.width) / 2);
  p.log2_hidden = log2_lanes(row_groups(a.down.width) / 2);
  p.log2_shared = log2_lanes(row_groups(a.shared_down.width) / 2);
  p.any_log2_in = log2_lanes(row_groups(a.in.width));
  p.any_log2_hidden = log2_lanes(row_groups(a.down.width));
  p.any_log2_shared = log2_lanes(row_groups(a.shared_down.width));
  p.made_in = !a.choose_only && a.n_rows > 1 &&
              (a.n_rows > kFusedRows || size_t{record_bytes(a.in.width)} * a.n_rows > kFusedBytes);
  p.hidden_width = hidden_width(a);
  p.shared_at = shared_offset(a);
  p.choice_by_block = !a.choose_only && a.n_rows == 1 && a.n_used <= kBlockUsed && a.router.rows <= kBlockExperts;
  p.made_hidden = a.n_rows > kFusedRows || size_t{record_bytes(p.hidden_width)} * a.n_rows > kFusedBytes;
  return p;
}

}  // namespace

MoeScratch moe_scratch(const MoeArgs& a, int max_rows, uint8_t* base) {
  MoeScratch s{};
  size_t at = 0;
  const auto take = [&](auto*& p, size_t count) {
    using T = std::remove_reference_t<decltype(*p)>;
    // As an integer: without memory behind it this only measures, and offsets into nothing are undefined.
    p = reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(base) + at);
    at = (at + count * sizeof(T) + 255) / 256 * 256;
  };
  const auto rows = static_cast<size_t>(max_rows), used = static_cast<size_t>(a.n_used);
  // What has to be zero at first stands where it does whatever the number of rows.
  take(s.n_chunks, 2 + simt::div_up(kMoeRows, kRouterBatch));
  take(s.logits, rows * (a.router.rows + 1));
  take(s.weights, rows * (used + 1));
  take(s.ids, rows * used);
  take(s.pairs, rows * used);
  take(s.chunks, rows * used);
  take(s.hidden, rows * hidden_width(a));
  take(s.outputs, rows * used * a.down.rows);
  take(s.shared_outputs, rows * a.down.rows);
  take(s.in_records, rows * record_bytes(a.in.width));
  take(s.hidden_records, rows * record_bytes(hidden_width(a)));
  s.bytes = at;
  return s;
}

Status launch_add_experts(const Stream& stream, const MoePlan& p) {
  const dim3 grid(static_cast<unsigned>(simt::div_up(p.args.down.rows, kDotThreads)),
                  static_cast<unsigned>(p.args.n_rows));
  return simt::launch(add_experts_kernel, {grid, kDotThreads, 0, stream, p.args.dependent}, p);
}

Status moe_supported(const MoeArgs& a, int max_rows) {
  const auto check = [](const char* what, int found, int most) -> Status {
    if (found <= most) return Ok{};
    return Error{Code::unsupported, std::string("mixture of experts: ") + what + " " + std::to_string(found) +
                                        ", the decode kernels take " + std::to_string(most) + " at most"};
  };
  TRY(check("rows", max_rows, kMoeRows));
  TRY(check("experts", a.router.rows, kMoeExperts));
  return check("rows times experts used", max_rows * a.n_used, kMoePairs);
}

Status moe_route(const Stream& stream, const MoeArgs& args) {
  const MoePlan p = make_plan(args);
  if (p.made_in) {
    TRY(quantise_rows(stream, args.in, args.n_rows, !args.exact, p.scratch.in_records, args.dependent));
  }
  const int n_logits = args.router.rows + (args.shared_router ? 1 : 0);
  const auto launch = [&](auto kernel, int experts) {
    const dim3 grid(static_cast<unsigned>(simt::div_up(n_logits, experts)),
                    static_cast<unsigned>(simt::div_up(args.n_rows, kRouterBatch)));
    return simt::launch(kernel, {grid, kDotThreads, 0, stream, args.dependent}, p);
  };
  return args.n_rows == 1 ? launch(router_kernel<1>, kRouterRows) : launch(router_kernel<2>, 2 * kRouterRows);
}

Status moe_up(const Stream& stream, const MoeArgs& args) {
  const MoePlan p = make_plan(args);
  const MoeKernels* k = up_kernels(args);
  if (takes_one_row(p)) return k->one_up(stream, p);
  return k ? k->up(stream, p) : launch_any_up(stream, p);
}

Status moe_down(const Stream& stream, const MoeArgs& args) {
  const MoePlan p = make_plan(args);
  const MoeKernels* k = down_kernels(args);
  if (takes_one_row(p)) return k->one_down(stream, p);
  if (p.made_hidden) {
    const InputRows hidden{p.scratch.hidden, nullptr, 0, p.hidden_width};
    TRY(quantise_rows(stream, hidden, args.n_rows, !args.exact, p.scratch.hidden_records, args.dependent));
  }
  return k ? k->down(stream, p) : launch_any_down(stream, p);
}

uint64_t moe_bytes(const MoeArgs& a) {
  const auto bytes = [](const Weight& w) { return static_cast<uint64_t>(w.rows) * w.row_bytes; };
  const auto experts = static_cast<uint64_t>(min(a.n_rows * a.n_used, a.router.rows));
  const uint64_t rows = 3 * sizeof(float) * static_cast<uint64_t>(a.in.width) * a.n_rows;  // read twice, written once
  return bytes(a.router) + experts * (bytes(a.gate) + bytes(a.up) + bytes(a.down)) + bytes(a.shared_gate) +
         bytes(a.shared_up) + bytes(a.shared_down) + rows;
}

Status moe(const Stream& stream, const MoeArgs& args) {
  TRY(moe_route(stream, args));
  TRY(moe_up(stream, args));
  return moe_down(stream, args);
}

}  // namespace chimere::cuda
