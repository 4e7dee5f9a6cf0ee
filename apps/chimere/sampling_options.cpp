#include "sampling_options.h"

#include "common.h"

namespace chimere::apps {

void SamplingOptions::apply_to(SamplingParams& params) const {
  params.temperature = temperature.value_or(params.temperature);
  params.top_k = top_k.value_or(params.top_k);
  params.top_p = top_p.value_or(params.top_p);
  params.min_p = min_p.value_or(params.min_p);
  params.repetition_penalty = repetition_penalty.value_or(params.repetition_penalty);
  params.presence_penalty = presence_penalty.value_or(params.presence_penalty);
  params.frequency_penalty = frequency_penalty.value_or(params.frequency_penalty);
}

void add_sampling_options(CLI::App& command, SamplingOptions& o) {
  const std::string file = "; the file's recommendation when absent";
  command.add_option("-n,--max-tokens", o.max_tokens, "tokens of one answer; -1: until the context is full")
      ->check(at_least(-1))
      ->capture_default_str();
  command.add_option("--seed", o.seed, "same seed, same text; random when absent");
  command.add_option("--temp,--temperature", o.temperature, "0: always the likeliest token" + file);
  command.add_option("--top-k", o.top_k, "draw from the k likeliest tokens" + file);
  command.add_option("--top-p", o.top_p, "draw from the fewest tokens that hold this probability" + file);
  command.add_option("--min-p", o.min_p, "draw from tokens at least this share as likely as the best" + file);
  command.add_option("--repetition-penalty", o.repetition_penalty, "1: off" + file);
  command.add_option("--presence-penalty", o.presence_penalty, "0: off");
  command.add_option("--frequency-penalty", o.frequency_penalty, "0: off");
}

}  // namespace chimere::apps
