// penalties.cpp  Counting penalties over a window, and DRY in linear time.
#include "sampling/penalties.h"

#include <algorithm>
#include <cmath>

namespace chimere {
namespace {

std::size_t window_start(std::size_t n_tokens, int last_n) {
  return last_n < 0 || static_cast<std::size_t>(last_n) >= n_tokens ? 0 : n_tokens - static_cast<std::size_t>(last_n);
}

// z[k] = length of the longest common prefix of s and s[k..] (Gusfield's Z algorithm), for k >= 1.
void common_prefixes(const std::vector<std::int32_t>& s, std::vector<std::int32_t>& z) {
  const std::int32_t n = static_cast<std::int32_t>(s.size());
  z.assign(s.size(), 0);
  std::int32_t left = 0, right = 0;
  for (std::int32_t k = 1; k < n; ++k) {
    std::int32_t length = k < right ? std::min(right - k, z[k - left]) : 0;
    while (k + length < n && s[length] == s[k + length]) ++length;
    z[k] = length;
    if (k + length > right) {
      left = k;
      right = k + length;
    }
  }
}

}  // namespace

bool Penalties::apply_counts(const SamplingParams& params, const SamplerState& state, ScoreRow& row) {
  const bool none =
      params.repetition_penalty == 1.0f && params.presence_penalty == 0.0f && params.frequency_penalty == 0.0f;
  if (none || params.penalty_last_n == 0) return false;
  const std::span<const std::int32_t> tokens = state.tokens();
  touched_.clear();
  for (std::size_t i = window_start(tokens.size(), params.penalty_last_n); i < tokens.size(); ++i) {
    const std::int32_t id = tokens[i];
    if (id < 0 || id >= row.n_vocab()) continue;
    if (counts_[id].all++ == 0) touched_.push_back(id);
    counts_[id].generated += i >= state.n_prompt();
  }
  for (std::int32_t id : touched_) {
    const Count count = counts_[id];
    counts_[id] = {};
    float score = row[id];
    score = score > 0.0f ? score / params.repetition_penalty : score * params.repetition_penalty;
    if (count.generated > 0) {
      score -= params.presence_penalty + params.frequency_penalty * static_cast<float>(count.generated);
    }
    row.set(id, score);
  }
  return !touched_.empty();
}

bool Penalties::apply_dry(const SamplingParams& params, const SamplerState& state, ScoreRow& row) {
  if (params.dry_multiplier == 0.0f || params.dry_penalty_last_n == 0) return false;
  const std::span<const std::int32_t> tokens = state.tokens();
  const std::size_t start = window_start(tokens.size(), params.dry_penalty_last_n);
  reversed_.assign(tokens.rbegin(), tokens.rbegin() + static_cast<std::ptrdiff_t>(tokens.size() - start));
  for (std::int32_t id : params.dry_sequence_breakers) breaker_[id] = 1;
  const auto breaks = [&](std::int32_t id) { return id < 0 || id >= row.n_vocab() || breaker_[id] != 0; };
  // A repetition is a copy of the last tokens, so one breaker there bounds the length of all of them.
  std::int32_t limit = 0;
  while (limit < static_cast<std::int32_t>(reversed_.size()) && !breaks(reversed_[limit])) ++limit;

  touched_.clear();
  if (limit >= params.dry_allowed_length) {
    common_prefixes(reversed_, matches_);
    for (std::size_t k = 1; k < reversed_.size(); ++k) {
      const std::int32_t length = std::min(matches_[k], limit);
      const std::int32_t next = reversed_[k - 1];
      if (length < params.dry_allowed_length || breaks(next)) continue;
      if (longest_[next] == 0) touched_.push_back(next);
      longest_[next] = std::max(longest_[next], length);
    }
  }
  for (std::int32_t id : touched_) {
    const int excess = longest_[id] - params.dry_allowed_length;
    longest_[id] = 0;
    const double penalty = params.dry_multiplier * std::pow(static_cast<double>(params.dry_base), excess);
    row.set(id, row[id] - static_cast<float>(std::min(penalty, kMaxDryPenalty)));
  }
  for (std::int32_t id : params.dry_sequence_breakers) breaker_[id] = 0;
  return !touched_.empty();
}

}  // namespace chimere
