#include "backend/cuda/support.h"

#include <string>

namespace chimere::cuda {
namespace {

// What is missing for an op, or null.
const char* missing(const op::Embed& o) {
  if (o.positions != kNone || o.add != kNone) return "learned positions";
  return o.scale != 1 ? "scaled embeddings" : nullptr;
}
const char* missing(const op::NormMatmul&) { return nullptr; }
const char* missing(const op::MatmulAdd& o) { return o.scale != 1 ? "scaled residuals" : nullptr; }
const char* missing(const op::GdnMix&) { return nullptr; }
const char* missing(const op::Mamba2Mix&) { return "Mamba-2 layers"; }
const char* missing(const op::CausalConv&) { return "Mamba-1 layers"; }
const char* missing(const op::SelectiveScan&) { return "Mamba-1 layers"; }
const char* missing(const op::Attention& o) {
  if (o.sinks != kNone) return "attention sinks";
  if (o.bidirectional) return "attention to later tokens";
  return o.window > 0 ? "sliding windows" : nullptr;
}
const char* missing(const op::DenseFfn& o) {
  if (o.activation != op::Activation::swiglu) return "activations other than SwiGLU";
  return o.scale != 1 ? "scaled residuals" : nullptr;
}
const char* missing(const op::MoeFfn& o) {
  if (o.activation != op::Activation::swiglu) return "activations other than SwiGLU";
  if (o.gating != op::Gating::softmax || !o.renormalise || o.weight_scale != 1 || o.router_bias != kNone ||
      o.selection_bias != kNone) {
    return "routers other than a renormalised softmax";
  }
  if (o.gate_bias != kNone || o.up_bias != kNone || o.down_bias != kNone) return "biases of experts";
  if (o.latent_down != kNone) return "latent experts";
  if (o.n_least > 0) return "a number of experts that differs from token to token";
  return o.scale != 1 ? "scaled residuals" : nullptr;
}
const char* missing(const op::LmHead& o) { return o.scale != 1 ? "scaled logits" : nullptr; }
const char* missing(const op::LayerNorm&) { return "encoders"; }
const char* missing(const op::Gelu&) { return "encoders"; }
const char* missing(const op::HiddenOut&) { return "encoders"; }

}  // namespace

Status check_supported(const Program& program) {
  for (const Op& op : program.ops) {
    if (const char* what = std::visit([](const auto& o) { return missing(o); }, op)) {
      return Error{Code::unsupported, std::string("unsupported on cuda yet: ") + what + " (" + op_name(op) +
                                          "); run this model with --backend cpu"};
    }
  }
  return Ok{};
}

}  // namespace chimere::cuda
