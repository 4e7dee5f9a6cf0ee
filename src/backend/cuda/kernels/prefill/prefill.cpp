// prefill.cpp  Ops on many batch rows as launches. An op's working memory is a struct that places its parts; without
// memory it says how much there has to be.
#include "backend/cuda/kernels/prefill/prefill.h"

#include <string>

#include "backend/cuda/host_experts.h"
#include "backend/cuda/mapped_experts.h"

namespace chimere::cuda {
namespace {

class Arena {
 public:
  // As a number: a layout that is only measured begins at null, where pointer arithmetic is undefined.
  explicit Arena(std::byte* base) : base_(reinterpret_cast<uintptr_t>(base)) {}

  template <class T>
  T* take(size_t count) {
    T* taken = reinterpret_cast<T*>(base_ + used_);
    used_ += (count * sizeof(T) + 255) / 256 * 256;
    return taken;
  }
  HalfRows halves(size_t rows, int width) {
    const int stride = half_stride(width);
    uint16_t* data = take<uint16_t>(rows * static_cast<size_t>(stride));
    return {data, take<float>(rows), stride};
  }
  size_t used() const { return used_; }

 private:
  uintptr_t base_;
  size_t used_ = 0;
};

Status check_room(const char* what, const PrefillScratch& scratch, size_t needed) {
  if (needed <= scratch.bytes) return Ok{};
  return Error{Code::internal, std::string(what) + ": expected working memory of at least " + std::to_string(needed) +
                                   " bytes, found " + std::to_string(scratch.bytes)};
}

struct ProductLayout {
  HalfRows half;
  float* floats = nullptr;
  size_t bytes;

  ProductLayout(const PrefillProduct& op, std::byte* base) {
    Arena arena(base);
    const auto rows = static_cast<size_t>(op.in.n_rows);
    if (op.exact) {
      floats = op.normed ? op.normed : arena.take<float>(rows * static_cast<size_t>(op.in.width));
    } else {
      half = arena.halves(rows, op.in.width);
      floats = op.normed;
    }
    bytes = arena.used();
  }
};

NormArgs norm_of(const PrefillInput& in, float* out, const HalfRows& half) {
  return {.x = in.x,
          .width = in.width,
          .n_rows = in.n_rows,
          .gather = in.gather,
          .norm = in.norm,
          .eps = in.eps,
          .out = out,
          .half = half};
}

// Of a dense feed-forward part: its input rows, and the inner rows between up- and down-projection.
struct FfnLayout {
  HalfRows half, hidden_half;
  float *floats = nullptr, *hidden = nullptr;
  size_t bytes;

  FfnLayout(const PrefillFfn& op, std::byte* base) {
    Arena arena(base);
    const auto rows = static_cast<size_t>(op.in.n_rows);
    const int d_ff = op.weights.up.rows;
    if (op.exact) {
      floats = arena.take<float>(rows * static_cast<size_t>(op.in.width));
      hidden = arena.take<float>(rows * static_cast<size_t>(d_ff));
    } else {
      half = arena.halves(rows, op.in.width);
      hidden_half = arena.halves(rows, d_ff);
    }
    bytes = arena.used();
  }
};

struct MoeLayout {
  HalfRows half, hidden_half, shared_hidden_half, latent_half;
  float* normed;  // the router always reads floats
  float *hidden = nullptr, *shared_hidden = nullptr, *shared = nullptr, *shared_weight = nullptr;
  float *latent = nullptr, *latent_sum = nullptr;
  float *logits, *weights, *routed = nullptr;
  int32_t* ids;
  ExpertPlan plan;
  size_t bytes;

  MoeLayout(const PrefillMoe& op, std::byte* base) {
    Arena arena(base);
    const auto rows = static_cast<size_t>(op.in.n_rows), width = static_cast<size_t>(op.in.width);
    const size_t pairs = rows * static_cast<size_t>(op.n_used);
    const int d_ff = op.experts.up.rows, n_experts = op.experts.up.experts;
    normed = arena.take<float>(rows * width);
    logits = arena.take<float>(rows * static_cast<size_t>(op.router.rows));
    ids = arena.take<int32_t>(pairs);
    weights = arena.take<float>(pairs);
    if (!op.exact) half = arena.halves(rows, op.in.width);
    if (op.host_mixture == kNone) {
      plan.pairs = arena.take<int32_t>(pairs);
      plan.tile_rows = expert_tile_rows(op.in.n_rows, op.n_used, n_experts, op.exact);
      plan.tiles = arena.take<ExpertTile>(
          static_cast<size_t>(max_expert_tiles(op.in.n_rows, op.n_used, n_experts, plan.tile_rows)));
      plan.n_tiles = arena.take<int32_t>(1);
      routed = arena.take<float>(pairs * static_cast<size_t>(op.experts.down.rows));
      if (op.exact) {
        hidden = arena.take<float>(pairs * static_cast<size_t>(d_ff));
      } else {
        hidden_half = arena.halves(pairs, d_ff);
      }
    }
    if (op.latent_down) {
      latent = arena.take<float>(rows * static_cast<size_t>(op.latent_down.rows));
      latent_sum = arena.take<float>(rows * static_cast<size_t>(op.latent_down.rows));
      if (!op.exact) latent_half = arena.halves(rows, op.latent_down.rows);
    }
    if (op.shared.up) {
      shared = arena.take<float>(rows * width);
      shared_weight = arena.take<float>(rows);
      if (op.exact) {
        shared_hidden = arena.take<float>(rows * static_cast<size_t>(op.shared.up.rows));
      } else {
        shared_hidden_half = arena.halves(rows, op.shared.up.rows);
      }
    }
    bytes = arena.used();
  }
};

// out (+)= scale down(activation(gate x, up x))
Status hidden_then_down(const Stream& stream, const GemmInput& x, const FfnWeights& w, const GemmHidden& hidden,
                        float* out, bool add, float scale) {
  TRY(gated_gemm(stream, {x, w, hidden}));
  GemmArgs args{{hidden.half, x.exact ? hidden.exact : nullptr, x.n_rows, w.up.rows}, 1, {}};
  args.outputs[0] = {w.down, w.down_bias, out, w.down.rows, add, scale};
  return gemm(stream, args);
}

// Rows as the input of a product, without a norm: converted to f16 unless the product is exact.
Result<GemmInput> converted(const Stream& stream, const float* rows, int n, int width, const HalfRows& half,
                            bool exact) {
  if (!exact) {
    TRY(norm_rows(stream, {.x = rows, .width = width, .n_rows = n, .half = half}));
  }
  return GemmInput{half, exact ? rows : nullptr, n, width};
}

// A product of experts, when those that are in RAM have been brought.
template <class Product>
Status with_experts(const Stream& stream, const PrefillMoe& op, MappedExperts::Half half, const Product& product) {
  if (op.mapped_layer == kNone) return product();
  TRY(op.mapped->bring(stream, op.mapped_layer, half));
  TRY(product());
  return op.mapped->done_with(stream, half);
}

}  // namespace

Status prefill_product(const Stream& stream, const PrefillProduct& op, const PrefillScratch& scratch) {
  const ProductLayout at(op, scratch.base);
  TRY(check_room("product", scratch, at.bytes));
  TRY(norm_rows(stream, norm_of(op.in, at.floats, at.half)));
  GemmArgs args{{at.half, op.exact ? at.floats : nullptr, op.in.n_rows, op.in.width}, op.n_outputs, {}};
  for (int i = 0; i < op.n_outputs; ++i) args.outputs[i] = op.outputs[i];
  return gemm(stream, args);
}

Status prefill_ffn(const Stream& stream, const PrefillFfn& op, const PrefillScratch& scratch) {
  const FfnLayout at(op, scratch.base);
  TRY(check_room("feed-forward", scratch, at.bytes));
  TRY(norm_rows(stream, norm_of(op.in, at.floats, at.half)));
  return hidden_then_down(stream, {at.half, at.floats, op.in.n_rows, op.in.width}, op.weights,
                          {at.hidden_half, at.hidden}, op.residual, true, op.scale);
}

Status prefill_moe(const Stream& stream, const PrefillMoe& op, const PrefillScratch& scratch) {
  const MoeLayout at(op, scratch.base);
  TRY(check_room("experts", scratch, at.bytes));
  const int n = op.in.n_rows, width = op.in.width;
  NormArgs norm = norm_of(op.in, at.normed, at.half);
  norm.gate_weight = op.shared_router;
  norm.gate = at.shared_weight;
  TRY(norm_rows(stream, norm));

  GemmArgs router{{{}, at.normed, n, width}, 1, {}};
  router.outputs[0] = {op.router, op.router_bias, at.logits, op.router.rows, false};
  TRY(gemm(stream, router));
  TRY(choose_experts(stream, {at.logits, n, op.n_used, op.router.rows, at.ids, at.weights, op.style}));
  const ExpertChoice choice{at.ids, at.weights, n, op.n_used, op.experts.up.experts};
  const bool hosted = op.host_mixture != kNone;
  if (!hosted) TRY(plan_experts(stream, choice, at.plan));

  const GemmInput x{at.half, op.exact ? at.normed : nullptr, n, width};
  GemmInput of_experts = x;
  if (op.latent_down) {
    GemmArgs down{x, 1, {}};
    down.outputs[0] = {op.latent_down, nullptr, at.latent, op.latent_down.rows, false};
    TRY(gemm(stream, down));
    TRY_ASSIGN(of_experts, converted(stream, at.latent, n, op.latent_down.rows, at.latent_half, op.exact));
  }
  if (hosted) {
    const float* rows = op.latent_down ? at.latent : at.normed;
    TRY(op.host->begin(stream, {op.host_mixture, n, rows, at.ids, at.weights, op.n_used}));
  } else {
    TRY(with_experts(stream, op, MappedExperts::Half::up, [&] {
      return expert_gated_gemm(stream, {of_experts, choice, at.plan, op.experts, {at.hidden_half, at.hidden}});
    }));
    const GemmInput hidden{at.hidden_half, at.hidden, n * op.n_used, op.experts.up.rows};
    TRY(with_experts(stream, op, MappedExperts::Half::down, [&] {
      return expert_down_gemm(stream, {hidden, choice, at.plan, op.experts, at.routed});
    }));
  }
  if (op.shared.up) {
    TRY(hidden_then_down(stream, x, op.shared, {at.shared_hidden_half, at.shared_hidden}, at.shared, false, 1.0f));
  }
  CombineArgs sum{at.routed, choice, at.shared, at.shared_weight, op.residual, width, true, op.scale};
  if (!op.latent_down && hosted) {
    return op.host->join(stream, {.shared = at.shared,
                                  .shared_gate = at.shared_weight,
                                  .out = op.residual,
                                  .n_rows = n,
                                  .width = width,
                                  .scale = op.scale});
  }
  if (!op.latent_down) return combine_experts(stream, sum);

  const int latent = op.latent_down.rows;
  if (hosted) {
    TRY(op.host->join(stream, {.out = at.latent_sum, .n_rows = n, .width = latent, .add = false}));
  } else {
    TRY(combine_experts(stream, {at.routed, choice, nullptr, nullptr, at.latent_sum, latent, false}));
  }
  TRY_ASSIGN(const GemmInput summed, converted(stream, at.latent_sum, n, latent, at.latent_half, op.exact));
  GemmArgs up{summed, 1, {}};
  up.outputs[0] = {op.latent_up, nullptr, op.residual, width, true, op.scale};
  TRY(gemm(stream, up));
  if (!op.shared.up) return Ok{};
  sum.choice.n_used = 0;  // the routed experts are added already
  return combine_experts(stream, sum);
}

size_t prefill_scratch_bytes(const PrefillProduct& op) { return ProductLayout(op, nullptr).bytes; }
size_t prefill_scratch_bytes(const PrefillFfn& op) { return FfnLayout(op, nullptr).bytes; }
size_t prefill_scratch_bytes(const PrefillMoe& op) { return MoeLayout(op, nullptr).bytes; }

}  // namespace chimere::cuda
