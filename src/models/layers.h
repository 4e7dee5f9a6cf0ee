// layers.h  Blocks that several architectures share, appended as ops.
#pragma once

#include <string>

#include "models/binder.h"
#include "models/config.h"

namespace chimere::models {

// The buffers every trunk uses. Widths are the largest that any layer of the model needs.
struct Trunk {
  BufferId x;  // residual stream [T, d_model]
};

Trunk begin_trunk(Binder& b, const Config& c);
// Final norm and output head; the head is the embedding when the file has none of its own.
void end_trunk(Binder& b, const Config& c, const Trunk& t);

struct AttentionStyle {
  bool qk_norm = false;  // attn_q_norm, attn_k_norm over each head
  bool gated = false;    // attn_q holds [query | gate] head by head
  RopeId rope = kNone;
};

struct AttentionBuffers {
  BufferId q, k, v, out;
};

AttentionBuffers attention_buffers(Binder& b, const Config& c, const AttentionStyle& style);
// x += attn_output(attention(RMSNorm(x; attn_norm))). Biases are used where the file has them.
void add_attention(Binder& b, const Config& c, int layer, const Trunk& t, const AttentionBuffers& buffers,
                   const AttentionStyle& style);

// The feed-forward of a layer behind its norm: experts where the model has them, else one dense block.
void add_ffn(Binder& b, const Config& c, int layer, const Trunk& t, const std::string& norm_name);

// A whole plain transformer: attention and a feed-forward, dense or of experts, in every layer.
struct TransformerStyle {
  Rope::Pairing pairing;
  bool qk_norm;
};
Result<Program> build_transformer(WeightSource& source, const TransformerStyle& style);

// "blk.7.attn_q.weight"
std::string block(int layer, const char* part);

}  // namespace chimere::models
