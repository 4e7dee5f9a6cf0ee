// bert_rules.cpp  BERT and XLM-RoBERTa: encoders for embeddings, and rerankers, the same with a head that scores pairs.
//
// Positions of XLM-RoBERTa begin behind its padding token's id; the file has them from 0.
#include "convert/rules.h"
#include "models/config.h"

namespace chimere::convert {
namespace {

void pair(Recipe& r, const std::string& name, const std::string& source, bool matrix) {
  if (matrix) {
    r.matrix(name + ".weight", source + ".weight");
  } else {
    r.f32(name + ".weight", source + ".weight");
  }
  r.f32(name + ".bias", source + ".bias");
}

// The first state through the pooler (tanh) and the classifier. Others have a label for each class and rank nothing.
void add_score_head(Recipe& r, const std::string& in) {
  r.set_int("pooling_type", models::kRankPooling);
  const bool is_roberta = r.has("classifier.out_proj.weight");
  const std::string last = is_roberta ? "classifier.out_proj" : "classifier";
  pair(r, "cls", is_roberta ? "classifier.dense" : in + "pooler.dense", true);
  pair(r, "cls.output", last, false);
  const StoredTensor* out = r.require(last + ".weight");
  if (out && out->elems() != static_cast<uint64_t>(r.integer("hidden_size"))) {
    r.fail(Code::unsupported,
           "tensor '" + last + ".weight': expected one label, found shape " + shape_text(out->shape));
  }
}

}  // namespace

void bert_rules(Recipe& r) {
  std::string in = "";
  for (const char* prefix : {"bert.", "roberta."}) {
    if (r.has(std::string(prefix) + "embeddings.word_embeddings.weight")) in = prefix;
  }
  const int64_t n_before = r.text_or("model_type", "bert") == "xlm-roberta" ? r.integer_or("pad_token_id", 1) + 1 : 0;
  const int64_t n_layers = r.count("num_hidden_layers", kMaxLayers);
  r.set_int("block_count", n_layers);
  const int64_t n_positions = r.integer("max_position_embeddings") - n_before;
  if (n_positions < 1) r.fail(Code::corrupt, "config.json: max_position_embeddings: expected more than pad_token_id");
  r.set_int("context_length", n_positions);
  r.set_int("embedding_length", r.integer("hidden_size"));
  r.set_int("feed_forward_length", r.integer("intermediate_size"));
  r.set_int("attention.head_count", r.integer("num_attention_heads"));
  r.set_float("attention.layer_norm_epsilon", r.number("layer_norm_eps"));
  r.set_bool("attention.causal", false);
  const std::string act = r.text_or("hidden_act", "gelu");
  if (act != "gelu") r.fail(Code::unsupported, "config.json: hidden_act: expected gelu, found '" + act + "'");
  const std::string embeddings = in + "embeddings.";
  r.matrix("token_embd.weight", embeddings + "word_embeddings.weight");
  Target& positions = r.f32("position_embd.weight", embeddings + "position_embeddings.weight");
  if (n_before > 0 && n_positions > 0) {
    positions.ne[1] = static_cast<uint64_t>(n_positions);
    positions.with_rows([n = static_cast<uint64_t>(n_before)](uint64_t row) { return row + n; });
  }
  r.f32("token_types.weight", embeddings + "token_type_embeddings.weight");
  pair(r, "token_embd_norm", embeddings + "LayerNorm", false);
  r.skip(embeddings + "position_ids");
  for (int64_t i = 0; i < n_layers; ++i) {
    const std::string layer = in + "encoder.layer." + std::to_string(i) + ".";
    pair(r, block(i, "attn_q"), layer + "attention.self.query", true);
    pair(r, block(i, "attn_k"), layer + "attention.self.key", true);
    pair(r, block(i, "attn_v"), layer + "attention.self.value", true);
    pair(r, block(i, "attn_output"), layer + "attention.output.dense", true);
    pair(r, block(i, "attn_output_norm"), layer + "attention.output.LayerNorm", false);
    pair(r, block(i, "ffn_up"), layer + "intermediate.dense", true);
    pair(r, block(i, "ffn_down"), layer + "output.dense", true);
    pair(r, block(i, "layer_output_norm"), layer + "output.LayerNorm", false);
  }
  if (r.has("classifier.weight") || r.has("classifier.out_proj.weight")) add_score_head(r, in);
}

}  // namespace chimere::convert
