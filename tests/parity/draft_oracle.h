// draft_oracle.h  The draft block of Qwen3.5 as its description says it, in float64, from the tensors of a file.
//
//   x = eh_proj [RMSNorm(embedding of x_p) * enorm ; RMSNorm(h_{p-1}) * hnorm]
//   x += attention(RMSNorm(x)),  x += feed-forward(RMSNorm(x)),  n = RMSNorm(x) * shared_head_norm,  logits = output n
//
// Written from the description alone, beside the ops: it shares no code with them but the decoding of weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "gguf/gguf.h"
#include "tensor/dequantize.h"

namespace chimere::parity {

class DraftOracle {
 public:
  using Row = std::vector<double>;
  struct Result {
    Row hidden, logits;
  };

  explicit DraftOracle(const gguf::File& file) : file_(file) {
    arch_ = std::string(*file.metadata().get_string("general.architecture"));
    heads_ = integer("attention.head_count");
    kv_heads_ = integer("attention.head_count_kv");
    head_dim_ = integer("attention.key_length");
    n_rot_ = integer("rope.dimension_count");
    base_ = *file.metadata().get_float(arch_ + ".rope.freq_base");
    eps_ = *file.metadata().get_float(arch_ + ".attention.layer_norm_rms_epsilon");
    n_used_ = file.find("blk.4.ffn_gate_inp.weight") ? integer("expert_used_count") : 0;
  }

  // The next position: its token, and the hidden state of the one before.
  Result next(int32_t token, std::span<const float> hidden) {
    const auto d = static_cast<size_t>(hidden.size());
    const Row embedded = row(has("nextn.embed_tokens.weight") ? "blk.4.nextn.embed_tokens.weight" : "token_embd.weight",
                             static_cast<size_t>(token));
    Row joined = norm(embedded, "blk.4.nextn.enorm.weight");
    const Row h = norm(Row(hidden.begin(), hidden.end()), "blk.4.nextn.hnorm.weight");
    joined.insert(joined.end(), h.begin(), h.end());
    Row x = times("nextn.eh_proj.weight", joined);
    add(x, attend(norm(x, "blk.4.attn_norm.weight")));
    add(x, feed_forward(norm(x, "blk.4.post_attention_norm.weight")));
    Result result;
    result.hidden =
        norm(x, has("nextn.shared_head_norm.weight") ? "blk.4.nextn.shared_head_norm.weight" : "output_norm.weight");
    const std::string head = has("nextn.shared_head_head.weight") ? "blk.4.nextn.shared_head_head.weight"
                             : file_.find("output.weight")        ? "output.weight"
                                                                  : "token_embd.weight";
    result.logits = product(all(head), 0, all(head).size() / d, result.hidden);
    ++pos_;
    return result;
  }

 private:
  bool has(const std::string& part) const { return file_.find("blk.4." + part) != nullptr; }
  size_t integer(const char* key) const {
    return static_cast<size_t>(*file_.metadata().get_int(arch_ + "." + key, 1, 1 << 20));
  }
  const Row& all(const std::string& name) {
    Row& values = tensors_[name];
    if (!values.empty()) return values;
    const TensorView* t = file_.find(name);
    std::vector<float> floats(t->elems());
    dequantize_row(t->type, t->data, floats.data(), static_cast<int64_t>(floats.size()));
    values.assign(floats.begin(), floats.end());
    return values;
  }
  Row row(const std::string& name, size_t i) {
    const size_t width = file_.find(name)->ne[0];
    const auto begin = all(name).begin() + static_cast<std::ptrdiff_t>(i * width);
    return Row(begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  // Rows [first, first + n) of a matrix, times x.
  static Row product(const Row& matrix, size_t first, size_t n, const Row& x) {
    Row y(n);
    for (size_t o = 0; o < n; ++o) {
      const auto weights = matrix.begin() + static_cast<std::ptrdiff_t>((first + o) * x.size());
      y[o] = std::inner_product(x.begin(), x.end(), weights, 0.0);
    }
    return y;
  }
  Row times(const std::string& part, const Row& x) {
    const Row& matrix = all("blk.4." + part);
    return product(matrix, 0, matrix.size() / x.size(), x);
  }
  Row norm(const Row& x, const std::string& weight) { return norm(std::span(x), all(weight)); }
  Row norm(std::span<const double> x, const Row& weight) const {
    const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps_);
    Row y;
    for (size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * scale * weight[i]);
    return y;
  }
  static void add(Row& x, const Row& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  // A head under its norm, rotated: pairs (k, k + n_rot / 2).
  Row head(const Row& x, size_t begin, const char* weight) {
    Row y = norm(std::span(x).subspan(begin, head_dim_), all(std::string("blk.4.") + weight));
    for (size_t k = 0; k < n_rot_ / 2; ++k) {
      const double angle =
          static_cast<double>(pos_) * std::pow(base_, -2.0 * static_cast<double>(k) / static_cast<double>(n_rot_));
      const double a = y[k], b = y[k + n_rot_ / 2];
      y[k] = a * std::cos(angle) - b * std::sin(angle);
      y[k + n_rot_ / 2] = a * std::sin(angle) + b * std::cos(angle);
    }
    return y;
  }

  Row attend(const Row& n) {
    const Row q = times("attn_q.weight", n), k = times("attn_k.weight", n), v = times("attn_v.weight", n);
    Row keys;
    for (size_t h = 0; h < kv_heads_; ++h) {
      const Row key = head(k, h * head_dim_, "attn_k_norm.weight");
      keys.insert(keys.end(), key.begin(), key.end());
    }
    keys_.push_back(keys);
    values_.push_back(v);
    Row out;
    for (size_t h = 0; h < heads_; ++h) {
      const Row query = head(q, 2 * h * head_dim_, "attn_q_norm.weight");
      const size_t at = h / (heads_ / kv_heads_) * head_dim_;
      Row weights;
      for (const Row& key : keys_) {
        const auto begin = key.begin() + static_cast<std::ptrdiff_t>(at);
        weights.push_back(std::inner_product(query.begin(), query.end(), begin, 0.0) /
                          std::sqrt(static_cast<double>(head_dim_)));
      }
      const double top = *std::max_element(weights.begin(), weights.end());
      double sum = 0;
      for (double& w : weights) sum += w = std::exp(w - top);
      for (size_t i = 0; i < head_dim_; ++i) {
        double mixed = 0;
        for (size_t p = 0; p < values_.size(); ++p) mixed += weights[p] / sum * values_[p][at + i];
        out.push_back(mixed * sigmoid(q[(2 * h + 1) * head_dim_ + i]));
      }
    }
    return times("attn_output.weight", out);
  }

  static Row gated(Row gate, const Row& up) {
    for (size_t i = 0; i < gate.size(); ++i) gate[i] *= sigmoid(gate[i]) * up[i];
    return gate;
  }

  Row feed_forward(const Row& n) {
    if (n_used_ == 0) return times("ffn_down.weight", gated(times("ffn_gate.weight", n), times("ffn_up.weight", n)));
    const Row scores = times("ffn_gate_inp.weight", n);
    std::vector<size_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    double sum = 0;
    for (size_t i = 0; i < n_used_; ++i) sum += std::exp(scores[order[i]]);
    Row out(n.size(), 0.0);
    const Row &gates = all("blk.4.ffn_gate_exps.weight"), &ups = all("blk.4.ffn_up_exps.weight");
    const Row& downs = all("blk.4.ffn_down_exps.weight");
    const size_t ff = gates.size() / n.size() / scores.size();
    for (size_t i = 0; i < n_used_; ++i) {
      const size_t e = order[i];
      Row y = product(downs, e * n.size(), n.size(), gated(product(gates, e * ff, ff, n), product(ups, e * ff, ff, n)));
      for (double& value : y) value *= std::exp(scores[e]) / sum;
      add(out, y);
    }
    const double gate = sigmoid(times("ffn_gate_inp_shexp.weight", n)[0]);
    Row shared =
        times("ffn_down_shexp.weight", gated(times("ffn_gate_shexp.weight", n), times("ffn_up_shexp.weight", n)));
    for (double& value : shared) value *= gate;
    add(out, shared);
    return out;
  }

  const gguf::File& file_;
  std::string arch_;
  size_t heads_, kv_heads_, head_dim_, n_rot_, n_used_;
  double base_, eps_;
  std::map<std::string, Row> tensors_;
  size_t pos_ = 0;
  std::vector<Row> keys_, values_;  // [position]
};

}  // namespace chimere::parity
