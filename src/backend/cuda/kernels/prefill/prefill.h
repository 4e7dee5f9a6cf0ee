// prefill.h  Ops on many batch rows, each as a list of launches: norm or conversion to f16, products, experts.
//
// Working memory is handed in: it is measured once for the largest batch (prefill_scratch_bytes) and shared by all ops,
// which run one after another on a stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/prefill/gemm.h"

namespace chimere::cuda {

class HostExperts;
class MappedExperts;

struct PrefillInput {
  const float* x = nullptr;  // [.., width]
  int width = 0;
  int n_rows = 0;
  const int32_t* gather = nullptr;  // row i is x[gather[i]]
  const float* norm = nullptr;      // [width] or null: no norm
  float eps = 0;
};

struct PrefillScratch {
  std::byte* base = nullptr;  // 256-byte aligned
  size_t bytes = 0;
};

// op::NormMatmul, op::MatmulAdd, op::LmHead. `normed`, when not null, receives the rows that were multiplied.
struct PrefillProduct {
  PrefillInput in;
  int n_outputs = 0;
  GemmOutput outputs[kMaxGemmOutputs];
  float* normed = nullptr;  // [n_rows, width]
  bool exact = false;
};
Status prefill_product(const Stream& stream, const PrefillProduct& op, const PrefillScratch& scratch);

// op::DenseFfn
struct PrefillFfn {
  PrefillInput in;
  FfnWeights weights;
  float scale = 1;
  float* residual = nullptr;  // [n_rows, width], in.x itself
  bool exact = false;
};
Status prefill_ffn(const Stream& stream, const PrefillFfn& op, const PrefillScratch& scratch);

// op::MoeFfn
struct PrefillMoe {
  PrefillInput in;
  Weight router;
  const float* router_bias = nullptr;  // [n_experts] or null
  RouterStyle style;
  FfnWeights experts;
  int n_used = 0;
  FfnWeights shared;                     // empty: no shared expert
  const float* shared_router = nullptr;  // [width] or null: the shared expert has weight 1
  Weight latent_down, latent_up;         // empty: experts see the rows themselves
  float scale = 1;
  float* residual = nullptr;
  bool exact = false;
  int host_mixture = kNone;     // of `host`, which then has the routed experts; of `experts` only the shapes count
  HostExperts* host = nullptr;  // may be missing while memory is measured
  int mapped_layer = kNone;     // of `mapped`, which brings the routed experts
  MappedExperts* mapped = nullptr;
};
Status prefill_moe(const Stream& stream, const PrefillMoe& op, const PrefillScratch& scratch);

// What an op needs for op.in.n_rows rows.
size_t prefill_scratch_bytes(const PrefillProduct& op);
size_t prefill_scratch_bytes(const PrefillFfn& op);
size_t prefill_scratch_bytes(const PrefillMoe& op);

}  // namespace chimere::cuda
