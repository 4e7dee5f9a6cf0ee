// moe.h  Decode-class mixture of experts: router and choice, experts up, experts down. Three launches for few rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/common/activations.h"
#include "backend/cuda/kernels/experts/router.h"
#include "backend/cuda/runtime/stream.h"
#include "backend/cuda/weights/weight.h"
#include "base/result.h"

namespace chimere::cuda {

inline constexpr int kMoeRows = 64;
inline constexpr int kMoeExperts = 1024;
inline constexpr int kMoePairs = 1024;  // rows times experts used
inline constexpr int kMoeChunk = 4;     // rows of one expert that share a reading of its weights

// Experts that are drawn in place of the router's choice, by weights of our own: what a model whose weights are random
// would do with a given trace. What each is worth in the sum is left to chance.
struct ImposedRouting {
  const float* log_weights = nullptr;  // [n_experts]; null: the router chooses
  uint32_t* n_drawn = nullptr;         // rows drawn for so far: each gets another draw
};

// x += scale (sum_k weight_k down_k(activation(gate_k n, up_k n)) + shared(n)), n = RMSNorm(x) * norm   (op::MoeFfn,
// without latent experts)
struct MoeArgs {
  InputRows in;               // with norm
  float* residual = nullptr;  // [n_rows, width]: x
  int n_rows = 0;
  int n_used = 0;
  Weight router;                         // [n_experts, width]
  const float* shared_router = nullptr;  // [width], 16-byte aligned; without it the shared expert has weight 1
  const float* router_bias = nullptr;    // [n_experts] or null
  RouterStyle style;
  Weight gate, up, down;                       // no gates with relu2
  Weight shared_gate, shared_up, shared_down;  // empty when there is none
  op::Activation activation = op::Activation::swiglu;
  const float *gate_bias = nullptr, *up_bias = nullptr, *down_bias = nullptr;  // [n_experts, rows] or null
  float scale = 1;
  bool exact = false;
  uint32_t* uses = nullptr;    // [n_experts]: how often each was chosen is added to it; or null
  ImposedRouting imposed;      // for benchmarks
  bool choose_only = false;    // moe_route is all that is wanted, for experts elsewhere; their weights are not given
  uint8_t* scratch = nullptr;  // moe_scratch_bytes, zero before its first use
  bool dependent = true;
  int n_sms = 132;
};

// What the launches leave for one another, inside scratch.
struct MoeScratch {
  float* logits;          // [n_rows, n_experts + 1], the last one of the shared expert
  uint32_t* keys;         // [n_rows, n_experts]: by what experts are chosen, where every block chooses
  float* weights;         // [n_rows, n_used + 1], the last one of the shared expert
  int32_t* ids;           // [n_rows, n_used]
  int32_t* finished;      // router blocks of each kRouterBatch rows
  float* hidden;          // [n_rows, moe_hidden_width]: the elements of each choice, then those of the shared expert
  float* outputs;         // [n_rows * n_used, width], of many rows
  float* shared_outputs;  // [n_rows, width]
  uint8_t* in_records;
  uint8_t* hidden_records;
  size_t bytes;
};

MoeScratch moe_scratch(const MoeArgs& args, int max_rows, uint8_t* base);
inline size_t moe_scratch_bytes(const MoeArgs& args, int max_rows) {
  return moe_scratch(args, max_rows, nullptr).bytes;
}

// Whether batches of up to max_rows are within the limits above.
Status moe_supported(const MoeArgs& args, int max_rows);

// REQUIRES: moe_supported(args, n_rows).
Status moe(const Stream& stream, const MoeArgs& args);

// The launches by themselves, in this order. With choose_only the first leaves ids and weights.
Status moe_route(const Stream& stream, const MoeArgs& args);
Status moe_up(const Stream& stream, const MoeArgs& args);
Status moe_down(const Stream& stream, const MoeArgs& args);

// Bytes read and written when all choices differ, for bandwidth figures.
uint64_t moe_bytes(const MoeArgs& args);

}  // namespace chimere::cuda
