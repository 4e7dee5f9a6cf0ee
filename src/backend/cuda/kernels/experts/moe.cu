// moe.cu   x += sum_k w_k down_k(activation(gate_k n, up_k n)) + w_s shared(n),  n = RMSNorm(x) * norm, w of the router
// Shapes    x [n_rows, width] f32, n_rows <= 64; router [n_experts, width]; gate, up [n_experts, d_ff, width];
//           down [n_experts, width, d_ff] in layouts of weights/formats.h
// Bytes     each chosen expert once for up to 4 rows that chose it, the shared expert once for 4 rows (the L2 cache
//           serves repetitions)
// Launch    router: moe_router.cu. One row, where the card has bulk copies: moe_one_up.h and moe_one_down.h; 2 to 7
//           rows: moe_few_up.h and moe_few_down.h, and two, where there is no room for that, one after the other: 16
//           of 256 experts are seldom the same (H200: 25 us instead of 32). Else weights come through rings of slots
//           (moe_ring.h), 2 blocks of 8 warps per SM; formats without kernels and exact mode: moe_any.cu.
//           For one row and for a few in slots every block chooses the experts itself, and so it does for up to 16 rows
//           in rings; else the router does. In rings every block groups the rows by expert (moe_groups.h). More than 4 rows in rings: the router quantises the rows,
//           outputs go by expert (each weight unpacked once for 4 rows); hidden rows are quantised and outputs added by
//           launches of their own: five launches in all instead of three
// Numerics  router in float32 whatever the mode; ties go to the lower index; softmax over the chosen logits;
//           experts as in matvec.cu; their outputs are added in the order of the choices, the shared expert last
// Measured  H200, 256 experts of [512, 2048] IQ3_S in nibbles, 8 used and a Q5_K shared one, in chains: one row router
//           1.9, up 6.4, down 4.4 us; 32 rows, all that belongs to them included, 9.1, 86 and 44 us. 128 experts of
//           [1856, 2688] Q4_0 without gates, 6 used: router 1.8, up 8.4, down 9.4 us
// Rejected  chunks of 2 rows and 3 blocks per SM (spills: 9 % slower at 32 rows); comparing all pairs with one
//           another to group them (4 us more); one row: prefetching the up-projection's later experts to the L2 cache
//           at once (4 % of a step slower: they arrive before the first), allowing the next kernel only after the
//           last copy
#include "backend/cuda/simt/simt.h"

#include <string>

#include "backend/cuda/kernels/experts/moe_instances.h"
#include "backend/cuda/kernels/experts/moe_ring.h"

namespace chimere::cuda {
namespace {

__global__ void __launch_bounds__(kDotThreads) add_experts_kernel(const __grid_constant__ MoePlan p) {
  simt::wait_for_previous();
  simt::allow_next();
  const int width = p.args.down.rows, n_used = p.args.n_used, t = static_cast<int>(blockIdx.y);
  const int i = static_cast<int>(blockIdx.x) * kDotThreads + simt::thread_id();
  if (i >= width) return;
  const float* weights = p.scratch.weights + t * (n_used + 1);
  const float* outputs = p.scratch.outputs + static_cast<int64_t>(t) * n_used * width + i;
  float sum = 0;
#pragma unroll 8
  for (int k = 0; k < n_used; ++k) sum = fmaf(weights[k], outputs[static_cast<int64_t>(k) * width], sum);
  sum = add_down_biases(p, t, i, weights, sum);
  const int64_t at = static_cast<int64_t>(t) * width + i;
  if (p.args.shared_down) sum = fmaf(weights[n_used], p.scratch.shared_outputs[at], sum);
  p.args.residual[at] += sum;
}

// The hidden rows in bytes, four elements a thread: there is no norm, and groups do not depend on one another.
__global__ void __launch_bounds__(kDotThreads) quantise_hidden_kernel(const __grid_constant__ MoePlan p) {
  simt::wait_for_previous();
  simt::allow_next();
  const int i = static_cast<int>(blockIdx.x) * kDotThreads + simt::thread_id(), n = p.hidden_width / 4;
  const auto t = static_cast<int64_t>(blockIdx.y);
  const auto* row = reinterpret_cast<const float4*>(p.scratch.hidden + t * p.hidden_width);
  const float4 v = i < n ? row[i] : make_float4(0, 0, 0, 0);
  quantise_quad(v, static_cast<uint32_t>(i), i < n, row_groups(p.hidden_width),
                p.scratch.hidden_records + t * record_bytes(p.hidden_width));
}

CardFacts card_of(const MoeArgs& args) { return this_card(args.n_sms); }

const MoeKernels* find_kernels(const ProjectionChoice& choice) {
  return find_in_parts([&](auto part) { return find_experts<part>(choice.routed, choice.shared); });
}

// What the router leaves for the kernels behind it, of an expert that is drawn: keys in the order of the draws, or ids.
// Gumbel noise on the logarithm of a weight draws without putting back. A warp a row.
__global__ void __launch_bounds__(32) impose_kernel(const __grid_constant__ MoePlan p) {
  simt::wait_for_previous();
  simt::allow_next();
  const int n_experts = p.args.router.rows, t = static_cast<int>(blockIdx.x), lane = simt::lane_id();
  const uint32_t draw = p.args.imposed.n_drawn[t];
  uint32_t* keys = p.scratch.keys + static_cast<int64_t>(t) * n_experts;
  for (int e = lane; e < n_experts; e += 32) {
    uint32_t h = (draw * 0x9E3779B9u) ^ (static_cast<uint32_t>(e) * 0x85EBCA6Bu) ^ (static_cast<uint32_t>(t) << 20);
    h = (h ^ h >> 16) * 0x7FEB352Du, h = (h ^ h >> 15) * 0x846CA68Bu, h ^= h >> 16;
    const float uniform = (static_cast<float>(h >> 8) + 0.5f) / 16777216.0f;
    keys[e] = order_key(p.args.imposed.log_weights[e] - logf(-logf(uniform)));
  }
  __syncwarp();
  if (lane == 0) p.args.imposed.n_drawn[t] = draw + 1;
  if (p.choice_by_block) return;
  for (int k = 0; k < p.args.n_used; ++k) {
    uint32_t best = 0;
    int at = n_experts;
    for (int e = lane; e < n_experts; e += 32) {
      if (keys[e] > best) best = keys[e], at = e;
    }
    const uint32_t most = __reduce_max_sync(simt::kAllLanes, best);
    const int id = __reduce_min_sync(simt::kAllLanes, best == most ? at : n_experts);
    if (lane == 0) p.scratch.ids[t * p.args.n_used + k] = id, keys[id] = 0, count_use(p.args, id);
    __syncwarp();
  }
}

Status route(const Stream& stream, const MoeArgs& args) {
  MoePlan p = plan_moe(args, card_of(args));
  if (!args.imposed.log_weights) return launch_router(stream, p);
  MoePlan uncounted = p;
  uncounted.args.uses = nullptr;
  TRY(launch_router(stream, uncounted));
  return simt::launch(impose_kernel, {static_cast<unsigned>(args.n_rows), 32, 0, stream, args.dependent}, p);
}

Status experts_up(const Stream& stream, const MoeArgs& args) {
  const MoePlan p = plan_moe(args, card_of(args));
  const ExpertsChoice choice = choose_experts(p, card_of(args));
  switch (choice.up.kernel) {
    case ExpertsKernel::one_row: return find_kernels(choice.up)->one_up(stream, p);
    case ExpertsKernel::few_rows: return find_kernels(choice.up)->few_up(stream, p);
    case ExpertsKernel::ring:
      return find_kernels(choice.up)->ring_up(stream, p, choice.up_elements, choice.near_records);
    default: return launch_any_up(stream, p);
  }
}

Status experts_down(const Stream& stream, const MoeArgs& args) {
  const MoePlan p = plan_moe(args, card_of(args));
  const ExpertsChoice choice = choose_experts(p, card_of(args));
  if (choice.down.kernel == ExpertsKernel::one_row) return find_kernels(choice.down)->one_down(stream, p);
  if (choice.down.kernel == ExpertsKernel::few_rows) return find_kernels(choice.down)->few_down(stream, p);
  if (p.made_hidden && !args.exact) {
    const dim3 grid(static_cast<unsigned>(simt::div_up(p.hidden_width / 4, kDotThreads)),
                    static_cast<unsigned>(args.n_rows));
    TRY(simt::launch(quantise_hidden_kernel, {grid, kDotThreads, 0, stream, args.dependent}, p));
  }
  if (choice.down.kernel == ExpertsKernel::ring) return find_kernels(choice.down)->ring_down(stream, p);
  return launch_any_down(stream, p);
}

MoeArgs row_of(const MoeArgs& a, int t) {
  MoeArgs row = a;
  row.in.x += static_cast<int64_t>(t) * a.in.width;
  row.residual += static_cast<int64_t>(t) * a.in.width;
  row.n_rows = 1;
  return row;
}

// Two rows share few experts: where only the kernels of one row take them, one after the other is faster.
constexpr int kRowByRow = 2;
template <class Launch>
Status for_rows(const MoeArgs& a, const Launch& launch) {
  if (a.n_rows > kRowByRow || plan_moe(a, card_of(a)).few_rows || !plan_moe(row_of(a, 0), card_of(a)).one_row) {
    return launch(a);
  }
  for (int t = 0; t < a.n_rows; ++t) TRY(launch(row_of(a, t)));
  return Ok{};
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
  take(s.finished, kMoeRows / kRouterBatch);
  take(s.logits, rows * (a.router.rows + 1));
  take(s.keys, rows * a.router.rows);
  take(s.weights, rows * (used + 1));
  take(s.ids, rows * used);
  take(s.hidden, rows * moe_hidden_width(a));
  take(s.outputs, rows * used * a.down.rows);
  take(s.shared_outputs, rows * a.down.rows);
  take(s.in_records, rows * record_bytes(a.in.width));
  take(s.hidden_records, rows * record_bytes(moe_hidden_width(a)));
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
  return for_rows(args, [&](const MoeArgs& a) { return route(stream, a); });
}
Status moe_up(const Stream& stream, const MoeArgs& args) {
  return for_rows(args, [&](const MoeArgs& a) { return experts_up(stream, a); });
}
Status moe_down(const Stream& stream, const MoeArgs& args) {
  return for_rows(args, [&](const MoeArgs& a) { return experts_down(stream, a); });
}

uint64_t moe_bytes(const MoeArgs& a) {
  const auto bytes = [](const Weight& w) { return static_cast<uint64_t>(w.rows) * w.row_bytes; };
  const auto experts = static_cast<uint64_t>(min(a.n_rows * a.n_used, a.router.rows));
  const uint64_t rows = 3 * sizeof(float) * static_cast<uint64_t>(a.in.width) * a.n_rows;  // read twice, written once
  return bytes(a.router) + experts * (bytes(a.gate) + bytes(a.up) + bytes(a.down)) + bytes(a.shared_gate) +
         bytes(a.shared_up) + bytes(a.shared_down) + rows;
}

Status moe(const Stream& stream, const MoeArgs& args) {
  return for_rows(args, [&](const MoeArgs& a) -> Status {
    TRY(route(stream, a));
    TRY(experts_up(stream, a));
    return experts_down(stream, a);
  });
}

}  // namespace chimere::cuda
