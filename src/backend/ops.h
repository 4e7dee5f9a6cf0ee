// ops.h  The only list of operations. A model is a list of these, written once at load; backends run them.
//
// An op is as coarse as a good kernel. Activations are float32 rows, one row per token of the batch, in numbered
// buffers [n_rows, width]; the residual stream is the buffer that ops read with a norm and add into. Matrices keep
// their file format until a backend repacks them. `W x` for a matrix {in, out}: y[o] = sum_i W[o][i] x[i].
//
// Numbers contract, honoured by every backend:
//   - decode class (slices of at most kDecodeTokens tokens): a row's bits do not depend on what else is in the batch,
//     nor on the number of threads; recurrences run token by token in order;
//   - prefill class (longer slices): recurrences may run in chunks on a grid of kChunkTokens anchored at absolute
//     positions, so that the same cuts give the same bits;
//   - router logits, norm statistics, softmax, gates, recurrent states and angles are float32 at least.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "backend/state_layout.h"
#include "tensor/tensor_view.h"

namespace chimere {

inline constexpr int kDecodeTokens = 16;
inline constexpr int kChunkTokens = 64;

using BufferId = int32_t;  // into Program::buffers
using MatrixId = int32_t;  // into Program::matrices
using VectorId = int32_t;  // into Program::vectors
using RopeId = int32_t;    // into Program::ropes
inline constexpr int32_t kNone = -1;

// Rotary embedding reduced to what every scaling rule comes to: one frequency per pair and one magnitude.
struct Rope {
  enum class Pairing { half, adjacent };  // (k, k + n/2) as in NeoX, or (2k, 2k + 1)
  Pairing pairing = Pairing::half;
  std::vector<float> inv_freq;  // [n_rot / 2]; the angle of pair k at position p is p * inv_freq[k]
  float magnitude = 1.0f;       // multiplies cos and sin
  int n_rot() const { return static_cast<int>(inv_freq.size()) * 2; }
};

namespace op {

// out[t] = scale table[token t] [+ positions[position of t]] [+ kinds[kind of t]]
struct Embed {
  MatrixId table;
  BufferId out;
  float scale = 1;
  MatrixId positions = kNone;  // {d_model, longest sequence}
  VectorId kinds = kNone;      // [token types, d_model], BERT's segments; Slice::second_kind_at divides them
};

struct Projection {
  MatrixId weight;
  VectorId bias = kNone;
  BufferId out = kNone;
};

// n = norm ? RMSNorm(x) * norm : x;   out_i = W_i n + b_i for each projection
struct NormMatmul {
  BufferId x;
  VectorId norm = kNone;
  float eps = 0;
  std::vector<Projection> outs;
};

// residual += scale (W x + b)
struct MatmulAdd {
  BufferId x;
  MatrixId weight;
  VectorId bias = kNone;
  BufferId residual;
  float scale = 1;
};

// Gated DeltaNet: causal conv + SiLU over [q | k | v], L2-normalised q and k, delta rule, RMSNorm, SiLU(z) gate.
//   per value head j, with key head of j:  S <- exp(g) S;  d = beta (v - S^T k);  S <- S + k d^T;  o = S^T q
//   g = a[j] softplus(alpha + dt_bias[j]),  beta = sigmoid(beta),  q scaled by 1/sqrt(d_head)
struct GdnMix {
  BufferId qkv;          // [T, (2 n_key_heads + n_value_heads) d_head]
  BufferId z;            // [T, n_value_heads d_head]
  BufferId alpha, beta;  // [T, n_value_heads]
  VectorId conv;         // [channels][kernel]; the last tap is applied to the current token
  VectorId a, dt_bias;   // [n_value_heads]; a is already -exp(A_log)
  VectorId norm;         // [d_head]
  float eps;
  int n_key_heads, n_value_heads, d_head;
  bool tiled_heads;     // key head of value head j: j % n_key_heads if tiled, else j / (n_value_heads / n_key_heads)
  int recurrent_layer;  // into StateLayout::recurrent
  BufferId out;         // [T, n_value_heads d_head]

  int channels() const { return (2 * n_key_heads + n_value_heads) * d_head; }
  int key_head(int j) const { return tiled_heads ? j % n_key_heads : j / (n_value_heads / n_key_heads); }
};

// Mamba-2: causal conv + SiLU over [x | B | C], a state with one decay per head, SiLU(z) gate, RMSNorm per group.
//   per head h of group h / (n_heads / n_groups):  S <- exp(dt a[h]) S + B (dt x)^T;  y = S^T C + d[h] x
//   dt = softplus(dt + dt_bias[h]);  out = RMSNorm(y silu(z)) * norm, each group by itself; without norm, y silu(z)
struct Mamba2Mix {
  BufferId in;                 // [T, z: d_inner | x: d_inner, B: n_groups d_state, C: n_groups d_state | dt: n_heads]
  VectorId conv;               // [channels][kernel]; the last tap is applied to the current token
  VectorId conv_bias = kNone;  // [channels]
  VectorId a, d, dt_bias;      // [n_heads]; a is already -exp(A_log)
  VectorId norm = kNone;       // [d_inner]
  float eps;
  int n_heads, d_head, n_groups, d_state;
  int recurrent_layer;  // into StateLayout::recurrent; its matrices are [n_heads][d_state][d_head]
  BufferId out;         // [T, d_inner]

  int d_inner() const { return n_heads * d_head; }
  int channels() const { return d_inner() + 2 * n_groups * d_state; }
  int width() const { return d_inner() + channels() + n_heads; }  // of `in`
  int group(int head) const { return head / (n_heads / n_groups); }
};

// Causal conv + SiLU over the first `channels` columns of `in`: the first part of a Mamba-1 layer.
struct CausalConv {
  BufferId in;
  VectorId conv;               // [channels][kernel]
  VectorId conv_bias = kNone;  // [channels]
  int channels;
  int recurrent_layer;
  BufferId out;  // [T, channels]
};

// Mamba-1: a state with a separate decay for each channel and state index, D skip, SiLU(z) gate.
//   s[n][c] <- exp(dt[c] a[n][c]) s[n][c] + dt[c] B[n] x[c];  out[c] = (sum_n C[n] s[n][c] + d[c] x[c]) silu(z[c])
//   dt = softplus(dt), its bias added before;  B and C under RMSNorm where they have a norm
struct SelectiveScan {
  BufferId x;     // [T, channels], the output of a CausalConv of the same recurrent layer
  BufferId dt;    // [T, channels]
  BufferId b, c;  // [T, d_state]
  BufferId z;     // [T, >= z_at + channels], the gate from column z_at on
  int z_at;
  VectorId a;                               // [channels][d_state], already -exp(A_log)
  VectorId d;                               // [channels]
  VectorId b_norm = kNone, c_norm = kNone;  // [d_state]
  float eps;
  int channels, d_state;
  int recurrent_layer;  // its one matrix is [d_state][channels]
  BufferId out;         // [T, channels]
};

// Grouped-query causal attention: optional per-head RMSNorm of q and k, RoPE, store K and V, softmax(q k scale) V,
// optional elementwise sigmoid gate. A sink is one extra logit per head: it takes part in the softmax, without a value.
struct Attention {
  // [T, n_heads (gated ? 2 : 1) head_dim_k]; gated rows hold [query | gate] head by head. kNone: keys and values are
  // stored, for others to see, and that is all.
  BufferId q;
  BufferId k, v;
  int n_heads, n_kv_heads, head_dim_k, head_dim_v;
  bool gated = false;                       // needs head_dim_k == head_dim_v
  VectorId q_norm = kNone, k_norm = kNone;  // [head_dim_k]
  float eps = 0;
  RopeId rope = kNone;
  float scale;
  VectorId sinks = kNone;  // [n_heads]
  int window = 0;          // the query at p sees keys p - window + 1 .. p; 0: all up to p
  int kv_layer;            // into StateLayout::kv
  BufferId out;            // [T, n_heads head_dim_v]
  // A query sees every key up to the end of its slice, later ones too: encoders, whose sequences are one slice each, and
  // blocks of drafts. REQUIRES: a window in slices of the decode class alone.
  bool bidirectional = false;
};

// The function between the up-projection (and the gate projection) and the down-projection of a feed-forward.
enum class Activation {
  swiglu,          // silu(gate) * up
  relu2,           // max(up, 0)^2; there is no gate
  clamped_swiglu,  // g sigmoid(1.702 g) (u + 1), g = min(gate, 7), u = clamp(up, -7, 7)
};

// x += scale down(activation(gate n, up n)) with n = RMSNorm(x) * norm
struct DenseFfn {
  BufferId x;
  VectorId norm;
  float eps;
  MatrixId gate, up, down;  // gate is kNone with relu2
  Activation activation = Activation::swiglu;
  float scale = 1;
};

enum class Gating { softmax, sigmoid };

// Mixture of experts. s = gating(router n + router_bias) over all experts; the n_used best of s + selection_bias are
// chosen; their weights are s, divided by their sum if `renormalise`, times weight_scale:
//   x += scale (sum_e w_e expert_e(n)  [+ sigmoid(shared_router . n) * shared(n)])
// With latent matrices the experts see latent_down n, and their weighted sum goes through latent_up.
// The router always reads float32 activations, so that quantisation never changes a choice. Ties: the lower index.
struct MoeFfn {
  BufferId x;
  VectorId norm;
  float eps;
  MatrixId router;  // {d_model, n_experts}
  // {d_in, d_ff, n_experts} twice, {d_ff, d_in, n_experts}; d_in = d_model or the latent width
  MatrixId gate, up, down;
  int n_experts, n_used;
  MatrixId shared_gate = kNone, shared_up = kNone, shared_down = kNone;
  VectorId shared_router = kNone;  // [d_model]; without it the shared expert is not gated
  Activation activation = Activation::swiglu;
  Gating gating = Gating::softmax;
  bool renormalise = true;
  float weight_scale = 1;
  VectorId router_bias = kNone, selection_bias = kNone;            // [n_experts]
  VectorId gate_bias = kNone, up_bias = kNone, down_bias = kNone;  // [n_experts][d_ff] twice, [n_experts][d_in]
  MatrixId latent_down = kNone, latent_up = kNone;                 // {d_model, latent}, {latent, d_model}
  float scale = 1;
  // Adaptive: with n_least > 0 a token uses n_least to n_used experts, more the less decided its router is. h is the
  // entropy of softmax(router n + router_bias) divided by ln n_experts: n_least at entropy_low and below, n_used
  // at entropy_high and above, linear between. The others count as not chosen.
  int n_least = 0;
  float entropy_low = 0, entropy_high = 1;

  int n_used_at(double h) const {
    const double share = std::clamp((h - entropy_low) / (entropy_high - entropy_low), 0.0, 1.0);
    return n_least + static_cast<int>(std::lround(share * (n_used - n_least)));
  }
  bool has_shared() const { return shared_up != kNone; }
};

// x = (x - mean) / sqrt(variance + eps) * weight + bias, mean and variance over each row
struct LayerNorm {
  BufferId x;
  VectorId weight, bias;
  float eps;
};

// x = x / 2 (1 + erf(x / sqrt(2)))
struct Gelu {
  BufferId x;
};

// The end of a model without logits: Outputs::hidden is x as it is.
struct HiddenOut {
  BufferId x;
};

// What a draft pass begins with: out[t] = [RMSNorm(x[t]) * x_norm | RMSNorm(h[t]) * hidden_norm], h = Batch::draft_hidden
struct DraftInput {
  BufferId x;  // embeddings
  VectorId x_norm, hidden_norm;
  float eps;
  BufferId out;  // [T, 2 d_model]
};

// logits of the batch's logit rows: scale weight (RMSNorm(x) * norm)
struct LmHead {
  BufferId x;
  VectorId norm;
  float eps;
  MatrixId weight;
  float scale = 1;
};

}  // namespace op

using Op = std::variant<op::Embed, op::NormMatmul, op::MatmulAdd, op::GdnMix, op::Mamba2Mix, op::CausalConv,
                        op::SelectiveScan, op::Attention, op::DenseFfn, op::MoeFfn, op::LmHead, op::LayerNorm, op::Gelu,
                        op::HiddenOut, op::DraftInput>;

// The snake_case name of an op, for traces, profiles and errors.
const char* op_name(const Op& op);

struct Buffer {
  std::string name;
  int width;
};

// A tensor built at load, where the file orders rows differently from what the ops expect.
struct OwnedTensor {
  std::string name;
  std::string source;  // the tensor of the file that its rows are from
  std::vector<std::byte> data;
};

// The head of a reranker: one score, of how well two texts match, from the first token's hidden state:
//   out . tanh(dense x + dense_bias) + out_bias,   or out . x + out_bias without a dense layer
struct ScoreHead {
  VectorId out;  // [d_model]
  VectorId out_bias = kNone;
  VectorId dense = kNone;  // [d_model, d_model]
  VectorId dense_bias = kNone;
};

// Where the trunk ends in the lists of a program that has a draft pass behind it.
struct TrunkEnd {
  size_t ops = 0, buffers = 0, matrices = 0, vectors = 0;
  size_t kv_layers = 0;
};

// A draft pass that guesses a whole block at once (DFlash).
struct DraftBlocks {
  int n_rows = 0;              // of a block: a token, and masks in place of those that follow it
  int32_t mask_token = kNone;  // its row of the embedding
};

// A model ready to run: what to keep, what to compute, what to remember.
//
// Some models have a block that guesses the token after the next (MTP). It is a second list of ops, the draft pass, over
// the same buffers and pages as the trunk, with a KV layer of its own: row t has the token of position p and the trunk's
// hidden state of p - 1 (zeros before the first), and its logits are of p + 1. The hidden state that the pass gives for p
// stands in for the trunk's where there is none yet.
//
// With `draft_blocks` the draft pass is a drafter from a file of its own (models/dflash.h). The trunk itself writes what
// the drafter knows of the text, to KV layers that it alone reads.
struct Program {
  int n_vocab = 0;
  int d_model = 0;
  std::vector<Buffer> buffers;
  std::vector<TensorView> matrices;  // point into the source of weights, which outlives the Program
  std::vector<std::shared_ptr<OwnedTensor>> owned;
  std::vector<std::vector<float>> vectors;  // norms, biases, gates: small and always float32
  std::vector<Rope> ropes;
  std::vector<Op> ops;  // of the trunk, then of the draft pass
  std::optional<TrunkEnd> trunk_end;
  std::optional<DraftBlocks> draft_blocks;  // with trunk_end alone
  std::vector<size_t>
      layer_ends;  // [layers]: ops up to the end of each; empty where they are no layers of one residual
  std::vector<KvLayer> kv_layers;
  std::vector<RecurrentLayer> recurrent_layers;
  std::optional<ScoreHead> score_head;

  bool has_drafts() const { return trunk_end.has_value(); }
  std::span<const Op> trunk() const { return std::span(ops).first(trunk_end ? trunk_end->ops : ops.size()); }
  std::span<const Op> draft_pass() const { return std::span(ops).subspan(trunk_end ? trunk_end->ops : ops.size()); }
  std::span<const Buffer> trunk_buffers() const {
    return std::span(buffers).first(trunk_end ? trunk_end->buffers : buffers.size());
  }
  std::span<const TensorView> trunk_matrices() const {
    return std::span(matrices).first(trunk_end ? trunk_end->matrices : matrices.size());
  }
  std::span<const std::vector<float>> trunk_vectors() const {
    return std::span(vectors).first(trunk_end ? trunk_end->vectors : vectors.size());
  }
  // Makes it a program without the draft pass. REQUIRES: no draft_blocks, whose input the trunk computes.
  void drop_drafts();
  // False for an encoder: it has hidden states and no logits.
  bool has_logits() const;
  // For models that need a whole sequence in one slice (encoders): the longest one. 0: it may be cut anywhere.
  int whole_sequence_rows() const;
  // REQUIRES: score_head, and d_model values.
  float score(std::span<const float> state) const;
};

}  // namespace chimere
