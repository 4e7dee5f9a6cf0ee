// gemm.h  Products of many rows with quantised matrices: the prefill class. Decode-class products are in matvec.h.
//
// The fast path multiplies f16 values on the tensor cores and accumulates in f32; the exact path is f32 throughout.
// Both add the terms of one output in the order of the columns, whatever the number of rows: a row's bits do not depend
// on its neighbours.
//
// REQUIRES, of all: at least one row; arrays of rows 16-byte aligned; weights as wide as their input.
#pragma once

#include <cstdint>

#include "backend/cuda/kernels/experts/router.h"
#include "backend/cuda/kernels/rows/rows.h"
#include "backend/cuda/runtime/stream.h"
#include "backend/cuda/weights/weight.h"
#include "base/result.h"

namespace chimere::cuda {

// The batch rows to multiply: f16 for the fast path, f32 for the exact one.
struct GemmInput {
  HalfRows half;
  const float* exact = nullptr;  // [n_rows, width]; when set, the product is the exact one
  int n_rows = 0;
  int width = 0;
};

// out[r, o] (+)= scale (sum_i W[o, i] x[r, i] + bias[o])
struct GemmOutput {
  Weight weight;
  const float* bias = nullptr;
  float* out = nullptr;
  int stride = 0;  // of out, in floats; where it is even, out is 8-byte aligned
  bool add = false;
  float scale = 1;
};

inline constexpr int kMaxGemmOutputs = 8;
struct GemmArgs {
  GemmInput x;
  int n_outputs = 0;
  GemmOutput outputs[kMaxGemmOutputs];
};
// Outputs whose weights have the same format share a launch.
Status gemm(const Stream& stream, const GemmArgs& args);

// The inner rows of a feed-forward part: hidden = activation(gate x + gate_bias, up x + up_bias); with relu2 there is
// no gate projection. f16 or f32 as the input is. In f16 the scale of every row is kHiddenScale, so that values up to
// two million fit.
inline constexpr float kHiddenScale = 32.0f;
struct GemmHidden {
  HalfRows half;
  float* exact = nullptr;  // [n_rows, d_ff]
};
// Up-, gate and down-projection of a feed-forward part: of an MLP, or of all experts of a mixture.
struct FfnWeights {
  Weight gate, up, down;                                                       // no gate projection with relu2
  const float *gate_bias = nullptr, *up_bias = nullptr, *down_bias = nullptr;  // [experts, rows] or null
  op::Activation activation = op::Activation::swiglu;
};
struct GatedArgs {
  GemmInput x;
  FfnWeights weights;
  GemmHidden hidden;
};
Status gated_gemm(const Stream& stream, const GatedArgs& args);

// The n_used best experts of a token, best first, equal ones in their order.
struct ChooseArgs {
  const float* logits;  // [n_tokens, n_experts]
  int n_tokens;
  int n_used;
  int n_experts;
  int32_t* ids;    // [n_tokens, n_used]
  float* weights;  // [n_tokens, n_used]
  RouterStyle style = {};
};
Status choose_experts(const Stream& stream, const ChooseArgs& args);

struct ExpertChoice {
  const int32_t* ids = nullptr;    // [n_tokens, n_used]
  const float* weights = nullptr;  // [n_tokens, n_used]
  int n_tokens = 0;
  int n_used = 0;
  int n_experts = 0;
};
// Which expert multiplies which batch rows: the assignments, here pairs (token, slot), sorted by expert and cut into
// tiles. Made on the card from the router's choice; the host never reads it.
struct ExpertTile {
  int32_t expert;
  int32_t first;  // into pairs
  int32_t n_rows;
  int32_t reserved;
};
struct ExpertPlan {
  int32_t* pairs = nullptr;     // [n_tokens * n_used]: token * n_used + slot
  ExpertTile* tiles = nullptr;  // [max_expert_tiles]
  int32_t* n_tiles = nullptr;
  int tile_rows = 0;  // expert_tile_rows
};
// An expert's weights are unpacked once for each of its tiles, so tiles are large where experts have many rows. The
// exact product always takes tiles of 64.
int expert_tile_rows(int n_tokens, int n_used, int n_experts, bool exact);
int max_expert_tiles(int n_tokens, int n_used, int n_experts, int tile_rows);
Status plan_experts(const Stream& stream, const ExpertChoice& choice, const ExpertPlan& plan);

// The experts' up- and gate projection: hidden[i] = activation(gate_e x, up_e x) for pairs[i] of the plan. x has one
// row per token, hidden one per pair.
struct ExpertGatedArgs {
  GemmInput x;
  ExpertChoice choice;
  ExpertPlan plan;
  FfnWeights weights;
  GemmHidden hidden;
};
Status expert_gated_gemm(const Stream& stream, const ExpertGatedArgs& args);

// The experts' down-projection: out[pairs[i]] = down_e hidden[i], so that rows are in the order of tokens and slots
// again.
struct ExpertDownArgs {
  GemmInput hidden;
  ExpertChoice choice;
  ExpertPlan plan;
  FfnWeights weights;
  float* out;  // [n_tokens * n_used, down.rows]
};
Status expert_down_gemm(const Stream& stream, const ExpertDownArgs& args);

// residual[t] += scale (sum_slot weight[t, slot] routed[t, slot] + shared_gate[t] shared[t]), in the order of the slots
struct CombineArgs {
  const float* routed;  // [n_tokens, n_used, width]; 16-byte aligned, as all rows here
  ExpertChoice choice;
  const float* shared = nullptr;       // [n_tokens, width] or null
  const float* shared_gate = nullptr;  // [n_tokens] or null: 1
  float* residual;                     // [n_tokens, width]
  int width;
  bool add = true;  // else residual is overwritten
  float scale = 1;
};
Status combine_experts(const Stream& stream, const CombineArgs& args);

// Bytes that a product moves and operations that it computes, for benchmarks and profiles.
struct GemmCost {
  double bytes;
  double flops;
};
GemmCost gemm_cost(const GemmArgs& args);

}  // namespace chimere::cuda
