// bert.cpp  BERT and models built like it (BGE, E5, MiniLM): an encoder with learned positions, a LayerNorm after every
// residual sum, bidirectional attention and GELU. Its output is the hidden states; a reranker's head turns the first
// one into a score.
#include <algorithm>

#include "models/layers.h"

namespace chimere::models {
namespace {

// x = LayerNorm(x) with the tensors NAME.weight and NAME.bias.
void add_layer_norm(Binder& b, const Config& c, BufferId x, const std::string& name) {
  b.add(op::LayerNorm{.x = x,
                      .weight = b.vector(name + ".weight", c.d_model),
                      .bias = b.vector(name + ".bias", c.d_model),
                      .eps = c.eps});
}

op::Projection projection(Binder& b, const std::string& name, uint64_t in, uint64_t out, BufferId to) {
  return {.weight = b.matrix(name + ".weight", {in, out}), .bias = b.vector_if_present(name + ".bias", out), .out = to};
}

Trunk begin_encoder(Binder& b, const Config& c, uint64_t n_token_types) {
  const Trunk t = begin_trunk(b, c);
  const auto d = static_cast<uint64_t>(c.d_model);
  auto& embed = std::get<op::Embed>(b.program().ops.back());
  embed.positions = b.matrix("position_embd.weight", {d, static_cast<uint64_t>(c.context_length)});
  if (n_token_types > 0) embed.kinds = b.vector("token_types.weight", d * n_token_types);
  add_layer_norm(b, c, t.x, "token_embd_norm");
  return t;
}

// The score of a pair of texts. Classifiers with several labels are loaded as encoders without it.
Status bind_score_head(Binder& b, WeightSource& source, const Config& c) {
  TRY_ASSIGN(const int64_t pooling, source.metadata().get_int_or(c.key("pooling_type"), 0, 1000, 0));
  const bool declared = pooling == kRankPooling;
  const auto d = static_cast<uint64_t>(c.d_model);
  const TensorView* out = source.find("cls.output.weight", {d, 1, 1, 1}, declared);
  if (!out || out->elems() != d) {
    if (!declared) return Ok{};
    return Error{Code::unsupported, c.key("pooling_type") + " says that the model ranks: expected a tensor " +
                                        "'cls.output.weight' of " + std::to_string(d) + " values, found " +
                                        (out ? to_string(out->ne) : "none")};
  }
  ScoreHead head{.out = b.flattened("cls.output.weight", {d})};
  head.out_bias = b.vector_if_present("cls.output.bias", 1);
  if (b.has("cls.weight")) {
    head.dense = b.flattened("cls.weight", {d, d});
    head.dense_bias = b.vector_if_present("cls.bias", d);
  }
  b.program().score_head = head;
  return Ok{};
}

}  // namespace

Result<Program> build_bert(WeightSource& source) {
  TRY_ASSIGN(const Config c, read_config(source));
  const gguf::Metadata& m = source.metadata();
  TRY_ASSIGN(const bool is_causal, m.get_bool_or(c.key("attention.causal"), false));
  if (is_causal) {
    return Error{Code::unsupported, c.key("attention.causal") + ": expected false for an encoder, found true"};
  }
  TRY_ASSIGN(const int64_t n_token_types, m.get_int_or("tokenizer.ggml.token_type_count", 0, 1024, 0));
  Binder b(source);
  const Trunk t = begin_encoder(b, c, static_cast<uint64_t>(n_token_types));
  const auto d = static_cast<uint64_t>(c.d_model);
  const AttentionBuffers buffers = attention_buffers(b, c, {});
  const uint64_t widest_ff = *std::max_element(c.d_ff.begin(), c.d_ff.end());
  const BufferId hidden = b.buffer("ffn", widest_ff);
  for (int i = 0; i < c.n_layers; ++i) {
    const auto ff = static_cast<uint64_t>(c.d_ff[i]);
    if (ff != widest_ff || ff == 0 || c.n_kv_heads[i] != c.n_heads) {
      return Error{Code::unsupported, "layer " + std::to_string(i) + ": an encoder's layers are of one size, with a " +
                                          "feed-forward part and as many key heads as heads"};
    }
    op::NormMatmul in{.x = t.x, .outs = {}};
    add_attention_projections(b, c, i, buffers, {}, in);
    b.add(std::move(in));
    add_attention_mix(b, c, i, t, buffers, {.bidirectional = true});
    add_layer_norm(b, c, t.x, block(i, "attn_output_norm"));
    b.add(op::NormMatmul{.x = t.x, .outs = {projection(b, block(i, "ffn_up"), d, ff, hidden)}});
    b.add(op::Gelu{.x = hidden});
    const op::Projection down = projection(b, block(i, "ffn_down"), ff, d, t.x);
    b.add(op::MatmulAdd{.x = hidden, .weight = down.weight, .bias = down.bias, .residual = t.x});
    add_layer_norm(b, c, t.x, block(i, "layer_output_norm"));
  }
  b.add(op::HiddenOut{.x = t.x});
  TRY(bind_score_head(b, source, c));
  return b.finish();
}

}  // namespace chimere::models
