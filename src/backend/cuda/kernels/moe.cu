// moe.cu   x += sum_k w_k down_k(activation(gate_k n, up_k n)) + w_s shared(n),  n = RMSNorm(x) * norm, w of the router
// Shapes    x [n_rows, width] f32, n_rows <= 64; router [n_experts, width]; gate, up [n_experts, d_ff, width];
//           down [n_experts, width, d_ff] in layouts of weights/formats.h
// Bytes     each chosen expert once for up to 4 rows that chose it, the shared expert once for 4 rows (the L2 cache
//           serves repetitions)
// Launch    router: moe_router.cu. One row, where the card has bulk copies: moe_one.h, and two, one after the other: 16
//           of 256 experts are seldom the same (H200: 25 us instead of 32). Else weights come through rings
//           of slots (moe_ring.h), 2 blocks of 8 warps per SM; formats without kernels and exact mode:
//           moe_any.cu. For one row every block chooses the experts itself; for more the router does, and every block
//           groups the rows by expert (moe_groups.h). More than 4 rows: the router quantises the rows, outputs go by
//           expert (each weight unpacked once for 4 rows); hidden rows are quantised and outputs added by launches of
//           their own: five launches in all instead of three
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

#include "backend/cuda/kernels/moe_instances.h"

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
  // Keys that need the scores of all experts are no router block's to make.
  const bool has_keys = a.style.gating != op::Gating::softmax || a.style.selection_bias == nullptr;
  p.choice_by_block =
      !a.choose_only && a.n_rows == 1 && has_keys && a.n_used <= kBlockUsed && a.router.rows <= kBlockExperts;
  p.made_hidden = a.n_rows > kFusedRows || size_t{record_bytes(p.hidden_width)} * a.n_rows > kFusedBytes;
  p.one_row = takes_one_row(p);
  if (p.one_row) p.made_in = true;
  return p;
}

Status route(const Stream& stream, const MoeArgs& args) { return launch_router(stream, make_plan(args)); }

Status experts_up(const Stream& stream, const MoeArgs& args) {
  const MoePlan p = make_plan(args);
  const MoeKernels* k = up_kernels(args);
  if (p.one_row) return k->one_up(stream, p);
  return k ? k->up(stream, p) : launch_any_up(stream, p);
}

Status experts_down(const Stream& stream, const MoeArgs& args) {
  const MoePlan p = make_plan(args);
  const MoeKernels* k = down_kernels(args);
  if (p.one_row) return k->one_down(stream, p);
  if (p.made_hidden && !args.exact) {
    const dim3 grid(static_cast<unsigned>(simt::div_up(p.hidden_width / 4, kDotThreads)),
                    static_cast<unsigned>(args.n_rows));
    TRY(simt::launch(quantise_hidden_kernel, {grid, kDotThreads, 0, stream, args.dependent}, p));
  }
  return k ? k->down(stream, p) : launch_any_down(stream, p);
}

MoeArgs row_of(const MoeArgs& a, int t) {
  MoeArgs row = a;
  row.in.x += static_cast<int64_t>(t) * a.in.width;
  row.residual += static_cast<int64_t>(t) * a.in.width;
  row.n_rows = 1;
  return row;
}

// Two rows share few experts: where the kernels of one row take them, one after the other is faster.
constexpr int kRowByRow = 2;
template <class Launch>
Status for_rows(const MoeArgs& a, const Launch& launch) {
  if (a.n_rows > kRowByRow || !make_plan(row_of(a, 0)).one_row) return launch(a);
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
  take(s.keys, a.router.rows);
  take(s.weights, rows * (used + 1));
  take(s.ids, rows * used);
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
