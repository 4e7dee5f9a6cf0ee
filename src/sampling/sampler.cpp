// sampler.cpp  The stages of sampler.h in their order.
#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "sampling/gumbel.h"
#include "sampling/truncation.h"
#include "sampling/weight.h"

namespace chimere {
namespace {

bool allowed(std::span<const std::uint64_t> mask, std::int32_t id) {
  return mask.empty() || ((mask[static_cast<std::size_t>(id) / 64] >> (id % 64)) & 1) != 0;
}

// Log-softmax of one raw logit; the differences are taken in double, before they are rounded once.
float logprob(float score, float max, const Mass& mass) {
  return static_cast<float>((static_cast<double>(score) - static_cast<double>(max)) - std::log(mass.total));
}

}  // namespace

Result<Sampler> Sampler::create(std::int32_t n_vocab, std::span<const std::int32_t> suppressed) {
  if (n_vocab <= 0 || n_vocab > kMaxVocab) {
    return Error{Code::unsupported, "vocabulary: expected 1 to " + std::to_string(kMaxVocab) + " tokens, found " +
                                        std::to_string(n_vocab)};
  }
  return Result<Sampler>{Sampler(n_vocab, suppressed)};
}

Sampler::Sampler(std::int32_t n_vocab, std::span<const std::int32_t> suppressed)
    : row_(n_vocab), penalties_(n_vocab), suppressed_(suppressed.begin(), suppressed.end()) {
  const auto outside = [&](std::int32_t id) { return id < 0 || id >= n_vocab; };
  suppressed_.erase(std::remove_if(suppressed_.begin(), suppressed_.end(), outside), suppressed_.end());
  std::sort(suppressed_.begin(), suppressed_.end());
}

Result<Sampled> Sampler::sample(std::span<const float> logits, const SamplingParams& params, const SamplerState& state,
                                const RowInputs& inputs, std::uint64_t position) {
  CHECK(inputs.mask.empty() || inputs.mask.size() >= row_.block_maxima().size());
  Sampled sampled;
  const bool wants_stats = params.stats || params.top_logprobs > 0;
  if (inputs.forced && (*inputs.forced < 0 || *inputs.forced >= row_.n_vocab())) {
    return Error{Code::invalid_argument, "forced token: expected an id from 0 to " +
                                             std::to_string(row_.n_vocab() - 1) + ", found " +
                                             std::to_string(*inputs.forced)};
  }
  if (inputs.forced && !wants_stats) {
    sampled.id = *inputs.forced;
    return sampled;
  }

  row_.load(logits);
  if (row_.max() == kNoScore) {
    return Error{Code::internal, "logits at position " + std::to_string(position) + ": none of the " +
                                     std::to_string(row_.n_vocab()) + " values is a number; expected at least one"};
  }
  const float max_logit = row_.max();
  const Mass mass = wants_stats || !inputs.memory.empty() ? row_.mass(1.0f) : Mass{};
  if (wants_stats) fill_stats(mass, params.top_logprobs, sampled);

  if (inputs.forced) {
    sampled.id = *inputs.forced;
  } else {
    bool changed = mix_memory(mass, inputs.memory);
    for (std::int32_t id : suppressed_) row_.set(id, kNoScore);
    changed |= !suppressed_.empty();
    changed |= apply_bias(params.logit_bias);
    changed |= apply_bias(inputs.bias);
    changed |= penalties_.apply_counts(params, state, row_);
    changed |= penalties_.apply_dry(params, state, row_);
    if (changed) row_.refresh();
    sampled.id = choose(params, inputs, position);
  }
  if (sampled.id < 0) {
    TRY_ASSIGN(sampled.id, last_resort(logits, inputs.mask));
  }
  if (wants_stats) sampled.logprob = logprob(ScoreRow::cleaned(logits[sampled.id]), max_logit, mass);
  return Result<Sampled>{std::move(sampled)};
}

void Sampler::fill_stats(const Mass& mass, int top_n, Sampled& sampled) {
  // -sum p log p with p = w / total and log p = t - log total.
  sampled.entropy = static_cast<float>(std::max(0.0, std::log(mass.total) - mass.weighted / mass.total));
  sampled.max_prob = static_cast<float>(1.0 / mass.total);
  if (top_n == 0) return;
  row_.top_k(top_n, candidates_);
  std::sort(candidates_.begin(), candidates_.end(), better);
  sampled.top.reserve(candidates_.size());
  for (const Candidate& c : candidates_) sampled.top.push_back({c.id, logprob(c.score, row_.max(), mass)});
}

// Dividing p' by 1 - A leaves every token outside the list as it was, so only the listed ones need a new score:
// log(p_i + a_i / (1 - A)), back on the scale of the logits. An id that is listed twice adds up.
bool Sampler::mix_memory(const Mass& mass, std::span<const MemoryEntry> memory) {
  const auto claim = [&](const MemoryEntry& entry) {
    const double share = static_cast<double>(entry.probability) * static_cast<double>(entry.weight);
    const bool usable = entry.id >= 0 && entry.id < row_.n_vocab() && entry.probability >= 0.0f &&
                        entry.probability <= 1.0f && entry.weight >= 0.0f && entry.weight <= 1.0f;
    return usable ? share : 0.0;
  };
  double total = 0;
  for (const MemoryEntry& entry : memory) total += claim(entry);
  if (total <= 0.0) return false;
  const double shrink = total > kMaxMemoryShare ? kMaxMemoryShare / total : 1.0;
  const double log_denominator = static_cast<double>(row_.max()) + std::log(mass.total);
  for (const MemoryEntry& entry : memory) {
    const double share = claim(entry) * shrink;
    if (share <= 0.0) continue;
    const double p = std::exp(static_cast<double>(row_[entry.id]) - log_denominator);
    row_.set(entry.id, static_cast<float>(log_denominator + std::log(p + share / (1.0 - total * shrink))));
  }
  return true;
}

bool Sampler::apply_bias(std::span<const TokenBias> bias) {
  for (const TokenBias& entry : bias) {
    if (entry.id < 0 || entry.id >= row_.n_vocab() || std::isnan(entry.delta)) continue;
    // A ban stays a ban: -infinity plus +infinity would be NaN, which a row reads as no score as well.
    row_.set(entry.id, row_[entry.id] + entry.delta);
  }
  return !bias.empty();
}

std::int32_t Sampler::choose(const SamplingParams& params, const RowInputs& inputs, std::uint64_t position) {
  const bool greedy = params.temperature < kGreedyBelow;
  const float scale = greedy ? 1.0f : 1.0f / params.temperature;
  const DrawKey key{params.seed, params.choice, position};
  const bool shortened = !greedy && truncates(params, row_);
  if (shortened && row_.max() != kNoScore) {
    truncate(row_, params, scale, candidates_);
    const auto masked = [&](const Candidate& c) { return !allowed(inputs.mask, c.id); };
    candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(), masked), candidates_.end());
    if (!candidates_.empty()) return draw(candidates_, row_.max(), scale, key);
  }
  // Without truncation it makes no difference when the mask comes, and first is cheapest.
  row_.keep_only(inputs.mask);
  if (greedy || row_.max() == kNoScore) return row_.best();
  if (!shortened) return draw_from_all(row_, scale, key);
  truncate(row_, params, scale, candidates_);
  return draw(candidates_, row_.max(), scale, key);
}

Result<std::int32_t> Sampler::last_resort(std::span<const float> logits, std::span<const std::uint64_t> mask) const {
  std::int32_t best = -1;
  float best_logit = kNoScore;
  for (std::int32_t id = 0; id < row_.n_vocab(); ++id) {
    if (!allowed(mask, id) || std::binary_search(suppressed_.begin(), suppressed_.end(), id)) continue;
    if (best < 0 || logits[id] > best_logit) {
      best = id;
      best_logit = std::isnan(logits[id]) ? kNoScore : logits[id];
    }
  }
  if (best >= 0) return best;
  return Error{Code::invalid_argument, "token mask: expected at least one allowed token, found none among " +
                                           std::to_string(row_.n_vocab()) + " (" + std::to_string(suppressed_.size()) +
                                           " of them suppressed)"};
}

}  // namespace chimere
