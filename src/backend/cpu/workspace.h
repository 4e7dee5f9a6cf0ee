// workspace.h  The weights of a program in panels, and the working memory of its ops. Allocated once, at load.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/cpu/activations.h"
#include "backend/cpu/context.h"
#include "backend/cpu/expert_store.h"
#include "backend/cpu/ops/aligned_floats.h"
#include "backend/cpu/ops/attention.h"
#include "backend/cpu/ops/gdn_mix.h"
#include "backend/cpu/ops/mamba_mix.h"
#include "backend/cpu/packed_matrix.h"

namespace chimere::cpu {

// Rows of floats and their 8-bit form, paired for the duration of a batch.
struct Rows {
  AlignedFloats floats;
  Activations acts;
  int64_t width = 0;

  void reserve(int64_t max_rows, int64_t row_width);
  // Before a batch, by one thread.
  void bind(int64_t n_rows) { acts.bind(floats.data(), width, n_rows, width); }
  float* row(int64_t r) { return floats.data() + r * width; }
  uint64_t size_bytes() const;
};

// A type without a panel layout is decoded to float32: exact, but larger.
Result<PackedMatrix> pack_matrix(const TensorView& tensor, const ParallelFor& parallel);
// The same without the bytes.
Result<PackedMatrix> layout_of_matrix(const TensorView& tensor);

inline constexpr int32_t kNoExpert = -1;

// Which token goes to which expert: slot s of an expert holds one (token, choice).
struct Routing {
  std::vector<float> logits;           // [rows, n_experts]
  std::vector<float> keys;             // [rows, n_experts] what experts are chosen by, where that is not the logits
  std::vector<int32_t> chosen;         // [rows, n_used] experts, best first, then kNoExpert
  std::vector<float> weight;           // [rows, n_used]
  std::vector<float> shared_gate;      // [rows]
  std::vector<int32_t> expert_begin;   // [n_experts + 1] first slot of each expert
  std::vector<int32_t> token_of_slot;  // [rows * n_used]
  std::vector<int32_t> slot;           // [rows, n_used]
  std::vector<int32_t> slot_rows;      // 0, 1, 2, ...: slots as rows of the hidden activations
  std::vector<int32_t> active;         // experts with at least one token

  void reserve(int64_t max_rows, int n_experts, int n_used);
  // Slots from `chosen`, in order of expert, then token. Places without an expert get no slot.
  void group(int n_rows, int n_experts, int n_used);
};

struct Workspace {
  bool exact = false;
  std::unique_ptr<ExpertStore> store;  // where some experts are on disk
  // With a store: its mixtures in order, whose routers tell what will be used next; empty where they have none here.
  std::vector<const op::MoeFfn*> routed;
  std::vector<std::optional<PackedMatrix>> matrices;  // by MatrixId; empty where only rows are looked up
  std::vector<Activations> buffer_acts;               // by BufferId: inputs of MatmulAdd
  uint64_t buffer_acts_bytes = 0;
  std::vector<Rows> normed_rows;  // inputs of projections, mostly RMSNorm of the residual; one for each width
  Rows head;                      // the same for rows whose logits are wanted
  Rows hidden;                    // activations of dense layers, or of expert slots
  Rows shared_hidden;             // the same of the shared expert
  Rows latent;                    // input of latent experts
  Rows latent_sum;                // [rows, latent] their weighted sums
  AlignedFloats product;          // [max(rows, slots), widest output] results before they are added up
  AlignedFloats gate;             // [max(rows, slots), d_ff] before the activation
  AlignedFloats shared_product;   // [rows, d_model]
  Routing routing;
  RecurrentScratch recurrent;
  AttentionScratch attention;

  Rows& normed(int64_t width);
  ActMode mode() const { return exact ? ActMode::f32 : ActMode::int8; }
  uint64_t weight_bytes() const;
  uint64_t scratch_bytes() const;
  // Sizes everything for batches of at most max_rows.
  void reserve(const Program& program, const StateLayout& layout, int max_rows, int n_threads);
  // Before a batch, by one thread.
  void begin(const Program& program, const Batch& batch, const std::vector<float*>& buffers);
};

// The ops. Called by every worker of the team; each ends with a barrier.
void embed(Team& team, const Context& c, const op::Embed& op, Workspace& w);
void norm_matmul(Team& team, const Context& c, const op::NormMatmul& op, Workspace& w);
void matmul_add(Team& team, const Context& c, const op::MatmulAdd& op, Workspace& w);
void dense_ffn(Team& team, const Context& c, const op::DenseFfn& op, Workspace& w);
void moe_ffn(Team& team, const Context& c, const op::MoeFfn& op, Workspace& w);
// From w.routing.chosen who goes to which expert; experts that are on disk are asked for. By one thread.
void group_choices(const Context& c, const op::MoeFfn& op, Workspace& w);
// Its experts alone. REQUIRES: w.normed (for latent experts w.latent), and the choices in w.routing, grouped.
void moe_experts(Team& team, const Context& c, const op::MoeFfn& op, Workspace& w);
void lm_head(Team& team, const Context& c, const op::LmHead& op, const Outputs& outputs, Workspace& w);
void layer_norm(Team& team, const Context& c, const op::LayerNorm& op);
void gelu(Team& team, const Context& c, const op::Gelu& op);
void hidden_out(Team& team, const Context& c, const op::HiddenOut& op, const Outputs& outputs);
void draft_input(Team& team, const Context& c, const op::DraftInput& op);

// Rows that a matrix reads or writes, `row` floats apart.
struct RowsView {
  float* data;
  int64_t row;
};
// y[t] += factor scale B (A x[t]) for the tokens whose slices name a change of this matrix; nothing otherwise.
void add_adapters(Team& team, const Context& c, MatrixId matrix, RowsView x, RowsView y, float factor = 1.0f);
// The same where x and y are of the batch's logit rows.
void add_head_adapters(Team& team, const Context& c, MatrixId matrix, RowsView x, RowsView y, float factor);
// Whether any token of the batch has adapters.
bool is_adapted(const Context& c);

// Shared by the ops: to = RMSNorm(x) * weight.
void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* to);
// h[i] = silu(g[i]) * h[i]
void apply_gate(const float* g, int64_t n, float* h);

}  // namespace chimere::cpu
