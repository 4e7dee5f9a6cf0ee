#include "backend/backend.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

namespace chimere {
namespace {

// About what a backend keeps per row of a batch: the buffers, their 8-bit form, and what an FFN has in flight. Those of a
// draft pass, which are few, do not count: batches are cut the same with it and without.
int64_t bytes_per_row(const Program& program) {
  int64_t floats = 4 * int64_t{program.d_model};
  for (const Buffer& b : program.trunk_buffers()) floats += b.width;
  int64_t ffn = 0;
  for (const Op& op : program.trunk()) {
    if (const auto* moe = std::get_if<op::MoeFfn>(&op)) {
      const auto ff = static_cast<int64_t>(program.matrices[moe->up].ne[1]);
      ffn = std::max(ffn, moe->n_used * (2 * ff + program.d_model));
    } else if (const auto* dense = std::get_if<op::DenseFfn>(&op)) {
      ffn = std::max(ffn, 2 * static_cast<int64_t>(program.matrices[dense->up].ne[1]));
    }
  }
  return (floats + ffn) * 5;  // 4 bytes a float, about 1 for its 8-bit form
}

}  // namespace

Status ExpertRange::apply_to(Program& program) const {
  if (least == 0 && most == 0) return Ok{};
  if (!(entropy_low >= 0 && entropy_low < entropy_high && entropy_high <= 1)) {
    return Error{Code::invalid_argument, "expert entropies: expected 0 <= low < high <= 1, found " +
                                             std::to_string(entropy_low) + " and " + std::to_string(entropy_high)};
  }
  bool any = false;
  for (Op& op : program.ops) {
    auto* moe = std::get_if<op::MoeFfn>(&op);
    if (!moe) continue;
    any = true;
    const int highest = most > 0 ? most : moe->n_used;
    if (least < 1 || least > highest || highest > moe->n_experts) {
      return Error{Code::invalid_argument,
                   "experts of a token: expected 1 <= least <= most <= " + std::to_string(moe->n_experts) + ", found " +
                       std::to_string(least) + " and " + std::to_string(highest)};
    }
    moe->n_used = highest;
    moe->n_least = least;
    moe->entropy_low = entropy_low;
    moe->entropy_high = entropy_high;
  }
  if (!any) return Error{Code::invalid_argument, "experts of a token: expected a model with experts, found none"};
  return Ok{};
}

Result<int> cpu_moe_from_text(std::string_view text) {
  if (text == "all") return kAllMixtures;
  if (text == "auto") return kFittingMixtures;
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 0) {
    return Error{Code::invalid_argument,
                 "--cpu-moe: expected a number of layers, 'all' or 'auto', found '" + std::string(text) + "'"};
  }
  return n;
}

Result<int> gpu_layers_from_text(std::string_view text) {
  if (text == "all") return kAllLayers;
  if (text == "auto") return kFittingLayers;
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 0) {
    return Error{Code::invalid_argument,
                 "--gpu-layers: expected a number of layers, 'all' or 'auto', found '" + std::string(text) + "'"};
  }
  return n;
}

Result<RamExperts> ram_experts_from_text(std::string_view text) {
  if (text == "auto") return RamExperts::automatic;
  if (text == "cpu") return RamExperts::cpu;
  if (text == "card") return RamExperts::card;
  return Error{Code::invalid_argument,
               "--ram-experts: expected 'auto', 'cpu' or 'card', found '" + std::string(text) + "'"};
}

Result<std::optional<float>> imposed_skew_from_text(std::string_view text) {
  constexpr std::string_view kZipf = "zipf:";
  constexpr float kMost = 10;
  if (text == "model") return std::optional<float>();
  if (text == "uniform") return std::optional(0.0f);
  float skew = -1;
  const std::string_view number = text.starts_with(kZipf) ? text.substr(kZipf.size()) : std::string_view();
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), skew);
  if (error != std::errc() || end != number.data() + number.size() || !(skew >= 0 && skew <= kMost)) {
    return Error{Code::invalid_argument,
                 "--routing: expected 'model', 'uniform' or 'zipf:' and a number from 0 to 10, "
                 "as in zipf:1.0, found '" +
                     std::string(text) + "'"};
  }
  return std::optional(skew);
}

int default_max_rows(const Program& program, int decode_rows) {
  constexpr int kMost = 512;
  int slice = 256;
  for (const Op& op : program.trunk()) {
    if (const auto* moe = std::get_if<op::MoeFfn>(&op)) slice = 16 * moe->n_experts / moe->n_used;
  }
  slice = std::clamp((slice + kChunkTokens - 1) / kChunkTokens * kChunkTokens, kChunkTokens, kMost);
  int64_t weights = 0;
  for (const TensorView& m : program.trunk_matrices()) weights += static_cast<int64_t>(m.size_bytes());
  // Activations stay within a twentieth of the weights, down to one chunk.
  while (slice > kChunkTokens && slice * bytes_per_row(program) > weights / 20) slice -= kChunkTokens;
  // What comes in one slice must fit, whatever it costs.
  slice = std::max(slice, program.whole_sequence_rows());
  return slice + decode_rows;
}

}  // namespace chimere
