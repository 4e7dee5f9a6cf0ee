// moe_ffn.cpp  op::MoeFfn: experts on the card, or routed ones with the host.
#include <optional>

#include "backend/cuda/host_experts.h"
#include "backend/cuda/imposed_routing.h"
#include "backend/cuda/kernels/experts/moe.h"
#include "backend/cuda/ops/products.h"

namespace chimere::cuda {
namespace {

class BoundMoeFfn final : public BoundOp {
 public:
  BoundMoeFfn(const BindContext& c, const op::MoeFfn& o)
      : BoundOp(Family::ffn), op_(o), mixture_(c.constants.hosted(o)), host_(c.host), scratch_(c.memory.prefill) {
    bind_prefill(c);
    bind_decode(c);
  }

  int max_decode_rows() const override { return takes_decode_ ? kMoePairs / op_.n_used : kMatvecRows; }

  void measure(const BindContext& c, ScratchSizes& sizes) const override {
    // Tiles are larger for many rows: the most rows with small tiles can want more of them.
    const auto tile_rows = [&](int n) { return expert_tile_rows(n, op_.n_used, op_.n_experts, c.exact); };
    int fewer = c.max_rows;
    while (fewer > 1 && tile_rows(fewer) == tile_rows(c.max_rows)) --fewer;
    for (const int n : {c.max_rows, fewer}) {
      PrefillMoe args = prefill_;
      args.in.n_rows = n;
      grow(sizes.prefill, prefill_scratch_bytes(args));
    }
    if (takes_decode_) {
      MoeArgs args = decode_;
      args.n_rows = c.max_decode_rows;
      grow(sizes.moe, moe_scratch_bytes(args, c.max_decode_rows));
    }
    if (hosted_shared_) hosted_shared_->measure(c, sizes);
  }

  Status run(const Stream& stream, const PassShape& pass) const override {
    if (pass.is_decode && takes_decode_) return is_hosted() ? hosted(stream, pass) : moe(stream, decode_args(pass));
    PrefillMoe args = prefill_;
    args.in.n_rows = pass.batch.n_rows;
    if (pass.is_decode) {
      // A step is a graph, beside which nothing is brought: experts in RAM are read where they are.
      args.mapped_layer = kNone;
      args.experts = step_experts_;
    }
    return prefill_moe(stream, args, scratch_);
  }

  // Where the decode kernels run, their launches are counted apart.
  Status run_family(const Stream& stream, const PassShape& pass, Family family) const override {
    const bool has_parts = pass.is_decode && takes_decode_ && !is_hosted();
    if (!has_parts) return BoundOp::run_family(stream, pass, family);
    if (family == Family::router) return moe_route(stream, decode_args(pass));
    if (family == Family::experts_up) return moe_up(stream, decode_args(pass));
    if (family == Family::experts_down) return moe_down(stream, decode_args(pass));
    return Ok{};
  }

 private:
  void bind_prefill(const BindContext& c) {
    const op::MoeFfn& o = op_;
    prefill_.host_mixture = mixture_;
    prefill_.host = host_;
    prefill_.in = c.prefill_rows(o.x, o.norm, o.eps);
    prefill_.router = c.weight(o.router);
    prefill_.router_bias = c.vector(o.router_bias);
    prefill_.style = {o.gating, o.renormalise, o.weight_scale, c.vector(o.selection_bias)};
    const ProgramBinding& constants = c.constants;
    prefill_.experts = {constants.prompt_weight(o.gate),
                        constants.prompt_weight(o.up),
                        constants.prompt_weight(o.down),
                        c.vector(o.gate_bias),
                        c.vector(o.up_bias),
                        c.vector(o.down_bias),
                        o.activation};
    step_experts_ = prefill_.experts;
    step_experts_.gate = c.weight(o.gate);
    step_experts_.up = c.weight(o.up);
    step_experts_.down = c.weight(o.down);
    prefill_.mapped = constants.mapped();
    prefill_.mapped_layer = constants.mapped_layer(o);
    prefill_.n_used = o.n_used;
    prefill_.shared.gate = c.weight(o.shared_gate);
    prefill_.shared.up = c.weight(o.shared_up);
    prefill_.shared.down = c.weight(o.shared_down);
    prefill_.shared.activation = o.activation;
    prefill_.shared_router = c.vector(o.shared_router);
    prefill_.latent_down = c.weight(o.latent_down);
    prefill_.latent_up = c.weight(o.latent_up);
    prefill_.scale = o.scale;
    prefill_.residual = c.buffer(o.x);
    prefill_.exact = c.exact;
  }

  void bind_decode(const BindContext& c) {
    const op::MoeFfn& o = op_;
    decode_.in = c.decode_rows(o.x, o.norm, o.eps);
    decode_.residual = c.buffer(o.x);
    decode_.n_used = o.n_used;
    decode_.router = prefill_.router;
    decode_.router_bias = prefill_.router_bias;
    decode_.style = prefill_.style;
    decode_.activation = o.activation;
    decode_.gate_bias = c.vector(o.gate_bias);
    decode_.up_bias = c.vector(o.up_bias);
    decode_.down_bias = c.vector(o.down_bias);
    decode_.scale = o.scale;
    decode_.shared_router = prefill_.shared_router;
    decode_.exact = c.exact;
    decode_.scratch = c.memory.moe;
    decode_.n_sms = c.device.n_sms;
    decode_.choose_only = is_hosted();
    decode_.uses = c.constants.uses(o);
    if (c.imposed) decode_.imposed = c.imposed->of(o);
    if (!is_hosted()) {
      decode_.gate = c.weight(o.gate);
      decode_.up = c.weight(o.up);
      decode_.down = c.weight(o.down);
      decode_.shared_gate = prefill_.shared.gate;
      decode_.shared_up = prefill_.shared.up;
      decode_.shared_down = prefill_.shared.down;
    }
    // A slice of kDecodeTokens goes through in one piece, or the op uses the prefill kernels for both classes.
    takes_decode_ = o.latent_down == kNone && static_cast<bool>(moe_supported(decode_, kDecodeTokens));
    if (is_hosted() && o.has_shared()) {
      // The prefill class is not at work, and what it has for normed rows is as large.
      auto* const sums = reinterpret_cast<float*>(scratch_.base);
      hosted_shared_.emplace(c, decode_.in, prefill_.shared,
                             MatvecOut{prefill_.shared.down, nullptr, sums, decode_.in.width, false});
    }
  }

  bool is_hosted() const { return mixture_ != kNone; }

  MoeArgs decode_args(const PassShape& pass) const {
    MoeArgs args = decode_;
    args.n_rows = pass.batch.n_rows;
    args.dependent = pass.dependent;
    return args;
  }

  // Of decode rows: the choice, the way to the host, the shared expert meanwhile, and the sum of both.
  Status hosted(const Stream& stream, const PassShape& pass) const {
    const int n = pass.batch.n_rows;
    const MoeArgs choice = decode_args(pass);
    TRY(moe_route(stream, choice));
    const MoeScratch chosen = moe_scratch(choice, n, choice.scratch);
    TRY(host_->begin(stream, {.mixture = mixture_,
                              .n_rows = n,
                              .x = choice.in.x,
                              .ids = chosen.ids,
                              .weights = chosen.weights,
                              .weights_stride = op_.n_used + 1,
                              .norm = choice.in.norm,
                              .eps = choice.in.eps}));
    if (hosted_shared_) {
      TRY(run_decode_product(stream, pass, hosted_shared_->up));
      TRY(run_decode_product(stream, pass, hosted_shared_->down));
    }
    // The weights, the shared expert's too, have op_.scale in them.
    return host_->join(stream, {.shared = hosted_shared_ ? hosted_shared_->down.outs[0].out : nullptr,
                                .shared_gate = chosen.weights + op_.n_used,
                                .gate_stride = op_.n_used + 1,
                                .out = choice.residual,
                                .n_rows = n,
                                .width = choice.in.width});
  }

  const op::MoeFfn& op_;
  const int mixture_;  // of those with the host, or kNone
  HostExperts* const host_;
  const PrefillScratch scratch_;
  PrefillMoe prefill_;
  FfnWeights step_experts_;  // as decode passes without kernels of their own read them
  MoeArgs decode_;
  bool takes_decode_ = false;
  std::optional<DecodeFfn> hosted_shared_;
};

}  // namespace

BoundOpPtr bind_op(const BindContext& c, const op::MoeFfn& o) { return std::make_unique<BoundMoeFfn>(c, o); }

}  // namespace chimere::cuda
