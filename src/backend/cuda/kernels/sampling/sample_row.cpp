// sample_row.cpp  A request's settings as flat arrays for the device.
#include "backend/cuda/kernels/sampling/sample_row.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sampling/penalties.h"

namespace chimere::cuda {
namespace {

int32_t window_start(int32_t n_tokens, int last_n) { return last_n < 0 || last_n >= n_tokens ? 0 : n_tokens - last_n; }

// One penalty for each length from the allowed one up to the first whose penalty is capped, or the longest possible.
std::vector<float> dry_penalties(const SamplingParams& params, int32_t window) {
  std::vector<float> penalties;
  for (int excess = 0; excess <= std::max(0, window - params.dry_allowed_length); ++excess) {
    const double penalty = params.dry_multiplier * std::pow(static_cast<double>(params.dry_base), excess);
    penalties.push_back(static_cast<float>(std::min(penalty, kMaxDryPenalty)));
    if (penalty >= kMaxDryPenalty || (params.dry_base == 1.0f)) break;
  }
  return penalties;
}

}  // namespace

void SampleNeeds::add(const SampleNeeds& other) {
  stats |= other.stats;
  top_logprobs |= other.top_logprobs;
  memory |= other.memory;
  edits |= other.edits;
  whole |= other.whole;
  draw |= other.draw;
  truncation |= other.truncation;
  two_cuts |= other.two_cuts;
  retry |= other.retry;
}

SampleNeeds SampleNeeds::rounded() const {
  SampleNeeds more = *this;
  if (top_logprobs || memory) more.stats = more.top_logprobs = more.memory = more.edits = true;
  more.draw = more.truncation = more.two_cuts = whole;
  return more;
}

PackedSampleRow pack_sample_row(const SamplingParams& params, const RowInputs& inputs, int32_t n_vocab,
                                int32_t n_history, int32_t n_prompt, uint64_t position) {
  PackedSampleRow packed;
  SampleRow& row = packed.row;
  const bool greedy = params.temperature < kGreedyBelow;
  row.temperature = params.temperature;
  row.scale = greedy ? 1.0f : 1.0f / params.temperature;
  row.top_k = params.top_k > 0 && params.top_k < n_vocab ? params.top_k : 0;
  row.top_p = params.top_p;
  row.min_p = params.min_p;
  row.forced = inputs.forced.value_or(-1);
  row.wants_stats = params.stats || params.top_logprobs > 0;
  row.top_logprobs = params.top_logprobs;
  row.seed = params.seed;
  row.position = position;
  row.choice = params.choice;

  const auto take_bias = [&](std::span<const TokenBias> bias) {
    for (const TokenBias& entry : bias) {
      if (entry.id >= 0 && entry.id < n_vocab && !std::isnan(entry.delta)) packed.bias.push_back(entry);
    }
  };
  take_bias(params.logit_bias);
  take_bias(inputs.bias);
  std::stable_sort(packed.bias.begin(), packed.bias.end(),
                   [](const TokenBias& a, const TokenBias& b) { return a.id < b.id; });
  packed.memory.assign(inputs.memory.begin(), inputs.memory.end());
  row.n_bias = static_cast<int32_t>(packed.bias.size());
  row.n_memory = static_cast<int32_t>(packed.memory.size());

  row.n_history = n_history;
  row.n_prompt = n_prompt;
  row.repetition_penalty = params.repetition_penalty;
  row.presence_penalty = params.presence_penalty;
  row.frequency_penalty = params.frequency_penalty;
  const bool counts =
      params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f || params.frequency_penalty != 0.0f;
  row.counts_start = counts ? window_start(n_history, params.penalty_last_n) : n_history;
  // Presence and frequency look at the answer alone: a prompt is often much longer.
  if (params.repetition_penalty == 1.0f) row.counts_start = std::max(row.counts_start, n_prompt);
  const bool dry = params.dry_multiplier != 0.0f;
  row.dry_start = dry ? window_start(n_history, params.dry_penalty_last_n) : n_history;
  row.dry_allowed_length = params.dry_allowed_length;
  if (row.dry_start < n_history) {
    packed.dry_penalties = dry_penalties(params, n_history - row.dry_start);
    packed.dry_breakers = params.dry_sequence_breakers;
    std::sort(packed.dry_breakers.begin(), packed.dry_breakers.end());
  }
  row.n_dry_penalties = static_cast<int32_t>(packed.dry_penalties.size());
  row.n_dry_breakers = static_cast<int32_t>(packed.dry_breakers.size());

  const bool free_choice = row.forced < 0;
  const bool two_cuts = row.top_k > 0 && params.top_p < 1.0f;
  SampleNeeds& needs = packed.needs;
  needs.stats = row.wants_stats != 0;
  needs.top_logprobs = params.top_logprobs > 0;
  needs.memory = free_choice && row.n_memory > 0;
  needs.edits =
      free_choice && (row.n_memory > 0 || row.n_bias > 0 || row.counts_start < n_history || row.dry_start < n_history);
  needs.draw = free_choice && !greedy;
  needs.truncation = needs.draw && (row.top_k > 0 || params.top_p < 1.0f || params.min_p > 0.0f);
  needs.two_cuts = needs.truncation && two_cuts;
  needs.retry = needs.truncation && !inputs.mask.empty();
  needs.whole = needs.draw && (needs.retry || row.top_k == 0 || row.top_k > kShortTop);
  return packed;
}

Status sample_status(const SampledRow& row, int32_t n_vocab, uint64_t position) {
  switch (row.status) {
    case SampleStatus::no_logits:
      return Error{Code::internal, "logits at position " + std::to_string(position) + ": none of the " +
                                       std::to_string(n_vocab) + " values is a number; expected at least one"};
    case SampleStatus::nothing_allowed:
      return Error{Code::invalid_argument,
                   "token mask: expected at least one allowed token, found none among " + std::to_string(n_vocab)};
    case SampleStatus::ok: break;
  }
  return Ok{};
}

}  // namespace chimere::cuda
