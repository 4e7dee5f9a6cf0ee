// sampling_options.h  How `chat` and `serve` draw tokens where nothing else is said.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

#include "sampling/sampling_params.h"

namespace chimere::apps {

struct SamplingOptions {
  std::optional<uint64_t> seed;
  std::optional<float> temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int> top_k;
  int max_tokens = -1;

  void apply_to(SamplingParams& params) const;
};

void add_sampling_options(CLI::App& command, SamplingOptions& options);

}  // namespace chimere::apps
