#include "backend/ops.h"

#include <cmath>
#include <numeric>

#include "base/check.h"

namespace chimere {

const char* op_name(const Op& op) {
  static constexpr const char* kNames[] = {"embed",       "norm_matmul",    "matmul_add", "gdn_mix",    "mamba2_mix",
                                           "causal_conv", "selective_scan", "attention",  "dense_ffn",  "moe_ffn",
                                           "lm_head",     "layer_norm",     "gelu",       "hidden_out", "draft_input"};
  static_assert(std::size(kNames) == std::variant_size_v<Op>);
  return kNames[op.index()];
}

bool Program::has_logits() const {
  for (const Op& op : ops) {
    if (std::holds_alternative<op::LmHead>(op)) return true;
  }
  return false;
}

void Program::drop_drafts() {
  if (!trunk_end) return;
  CHECK(!draft_blocks);
  const auto cut = [](auto& list, size_t n) { list.erase(list.begin() + static_cast<std::ptrdiff_t>(n), list.end()); };
  cut(ops, trunk_end->ops);
  cut(buffers, trunk_end->buffers);
  cut(matrices, trunk_end->matrices);
  cut(vectors, trunk_end->vectors);
  cut(kv_layers, trunk_end->kv_layers);
  trunk_end.reset();
}

int Program::whole_sequence_rows() const {
  bool is_bidirectional = false;
  int longest = 0;
  for (const Op& op : trunk()) {
    if (const auto* attention = std::get_if<op::Attention>(&op)) is_bidirectional |= attention->bidirectional;
    if (const auto* embed = std::get_if<op::Embed>(&op); embed && embed->positions != kNone) {
      longest = static_cast<int>(matrices[embed->positions].ne[1]);
    }
  }
  return is_bidirectional ? longest : 0;
}

float Program::score(std::span<const float> state) const {
  const auto d = static_cast<size_t>(d_model);
  const auto dot = [&](const float* weights, std::span<const float> x) {
    return std::inner_product(x.begin(), x.end(), weights, 0.0);
  };
  const auto value = [&](VectorId id, size_t i) { return id == kNone ? 0.0f : vectors[id][i]; };
  std::vector<float> pooled(state.begin(), state.end());
  if (score_head->dense != kNone) {
    for (size_t i = 0; i < d; ++i) {
      const double sum = dot(vectors[score_head->dense].data() + i * d, state);
      pooled[i] = static_cast<float>(std::tanh(sum + value(score_head->dense_bias, i)));
    }
  }
  return static_cast<float>(dot(vectors[score_head->out].data(), pooled) + value(score_head->out_bias, 0));
}

}  // namespace chimere
