// sampling_params.cpp  The ranges of the sampling settings, with a message for each way of leaving them.
#include "sampling/sampling_params.h"

#include <cmath>
#include <limits>
#include <string>

namespace chimere {
namespace {

std::string shown(float value) {
  std::string text = std::to_string(value);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

Status in_range(const char* name, float value, float low, float high) {
  // Written so that NaN fails.
  if (value >= low && value <= high) return Ok{};
  return Error{Code::invalid_argument, std::string(name) + ": expected a number from " + shown(low) + " to " +
                                           shown(high) + ", found " + shown(value)};
}

Status at_least(const char* name, int value, int low) {
  if (value >= low) return Ok{};
  return Error{Code::invalid_argument, std::string(name) + ": expected an integer of at least " + std::to_string(low) +
                                           ", found " + std::to_string(value)};
}

Status in_vocabulary(const char* name, std::int32_t id, std::int32_t n_vocab) {
  if (id >= 0 && id < n_vocab) return Ok{};
  return Error{Code::invalid_argument, std::string(name) + ": expected a token id from 0 to " +
                                           std::to_string(n_vocab - 1) + ", found " + std::to_string(id)};
}

}  // namespace

Status SamplingParams::validate(std::int32_t n_vocab) const {
  TRY(in_range("temperature", temperature, 0.0f, 100.0f));
  TRY(at_least("top_k", top_k, -1));
  TRY(in_range("top_p", top_p, 0.0f, 1.0f));
  TRY(in_range("min_p", min_p, 0.0f, 1.0f));
  TRY(in_range("repetition_penalty", repetition_penalty, 0.01f, 100.0f));
  TRY(in_range("presence_penalty", presence_penalty, -100.0f, 100.0f));
  TRY(in_range("frequency_penalty", frequency_penalty, -100.0f, 100.0f));
  TRY(at_least("penalty_last_n", penalty_last_n, -1));
  TRY(in_range("dry_multiplier", dry_multiplier, 0.0f, 100.0f));
  TRY(in_range("dry_base", dry_base, 1.0f, 100.0f));
  TRY(at_least("dry_allowed_length", dry_allowed_length, 1));
  TRY(at_least("dry_penalty_last_n", dry_penalty_last_n, -1));
  for (std::int32_t id : dry_sequence_breakers) TRY(in_vocabulary("dry_sequence_breakers", id, n_vocab));
  TRY(at_least("top_logprobs", top_logprobs, 0));
  if (top_logprobs > kMaxTopLogprobs) {
    return Error{Code::invalid_argument, "top_logprobs: expected at most " + std::to_string(kMaxTopLogprobs) +
                                             ", found " + std::to_string(top_logprobs)};
  }
  for (const TokenBias& bias : logit_bias) {
    TRY(in_vocabulary("logit_bias", bias.id, n_vocab));
    if (bias.delta == -std::numeric_limits<float>::infinity()) continue;
    TRY(in_range("logit_bias", bias.delta, -1e6f, 1e6f));
  }
  return Ok{};
}

}  // namespace chimere
