// layers.h  Blocks that several architectures share, appended as ops.
#pragma once

#include <string>

#include "models/binder.h"
#include "models/config.h"

namespace chimere::models {

// The buffers that every architecture uses. Widths are the largest that any layer of the model needs.
struct Trunk {
  BufferId x;  // residual stream [T, d_model]
};

Trunk begin_trunk(Binder& b, const Config& c, float embedding_scale = 1);
// Final norm and output head; the head is tied to the embedding when the file has none of its own.
void end_trunk(Binder& b, const Config& c, const Trunk& t, float logit_scale = 1);

// Between the end of the trunk and the blocks of the draft pass: x = eh_proj [RMSNorm(embedding) | RMSNorm(hidden)].
// What is appended from here on is the draft pass. `layer`: the block that has the nextn.* tensors.
void begin_draft_pass(Binder& b, const Config& c, int layer, const Trunk& t);
// Its norm and its head, the trunk's where the block has none of its own.
void end_draft_pass(Binder& b, const Config& c, int layer, const Trunk& t);

struct AttentionStyle {
  bool qk_norm = false;  // attn_q_norm, attn_k_norm over each head
  bool gated = false;    // attn_q holds [query | gate] head by head
  RopeId rope = kNone;
  bool interleaved_halves = false;  // of each head's rows in attn_q and attn_k; they are bound one after the other
  bool sinks = false;               // attn_sinks, a logit for each head
  int window = 0;                   // keys that a query sees; 0: all
  float scale = 1;                  // of what is added to the residual
  bool bidirectional = false;
};

struct AttentionBuffers {
  BufferId q, k, v, out;
};

AttentionBuffers attention_buffers(Binder& b, const Config& c, const AttentionStyle& style);
// x += attn_output(attention(RMSNorm(x; attn_norm))). Biases are used where the file has them.
void add_attention(Binder& b, const Config& c, int layer, const Trunk& t, const AttentionBuffers& buffers,
                   const AttentionStyle& style);

// The two parts of add_attention, for layers whose norm feeds another mixer too: projections appended to `in`, and what
// comes after them.
op::NormMatmul mixer_input(Binder& b, const Config& c, int layer, const Trunk& t);
void add_attention_projections(Binder& b, const Config& c, int layer, const AttentionBuffers& buffers,
                               const AttentionStyle& style, op::NormMatmul& in);
void add_attention_mix(Binder& b, const Config& c, int layer, const Trunk& t, const AttentionBuffers& buffers,
                       const AttentionStyle& style);

struct FfnStyle {
  std::string norm;  // name of its tensor inside the block
  op::Activation activation = op::Activation::swiglu;
  float scale = 1;  // of what is added to the residual
  // Mixture of experts:
  op::Gating gating = op::Gating::softmax;
  bool renormalise = true;
  float weight_scale = 1;
  bool shared_router = true;    // ffn_gate_inp_shexp gates the shared expert
  bool selection_bias = false;  // exp_probs_b
  bool biases = false;          // of the router and of every expert
  int d_latent = 0;             // input width of the experts; 0: d_model
};

// x += ffn_down(activation(ffn_gate n, ffn_up n)), n = RMSNorm(x; norm)
void add_dense_ffn(Binder& b, const Config& c, int layer, const Trunk& t, const FfnStyle& style);
// Routed experts, and a shared one where the model has it.
void add_moe_ffn(Binder& b, const Config& c, int layer, const Trunk& t, const FfnStyle& style);
// Experts where the model has them, else one dense block.
void add_ffn(Binder& b, const Config& c, int layer, const Trunk& t, const FfnStyle& style);

// A whole plain transformer: attention and a feed-forward, dense or of experts, in every layer.
struct TransformerStyle {
  Rope::Pairing pairing;
  bool qk_norm;
};
Result<Program> build_transformer(WeightSource& source, const TransformerStyle& style);

// "blk.7.attn_q.weight"
std::string block(int layer, const char* part);

}  // namespace chimere::models
