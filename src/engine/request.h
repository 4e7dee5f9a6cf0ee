// request.h  What goes into the engine: token ids and how to continue them.
#pragma once

#include <cstdint>
#include <vector>

#include "sampling/sampling_params.h"

namespace chimere::engine {

using RequestId = uint64_t;

struct Request {
  std::vector<int32_t> prompt;  // at least one token, all inside the vocabulary
  SamplingParams sampling;
  int32_t max_tokens = -1;        // tokens to generate; -1: until the context is full
  std::vector<int32_t> stop_ids;  // drawing one of these ends the answer; it is no part of it
};

// A change to a running request.
struct Update {
  // Emitted next instead of what would be drawn, e.g. the tokens that close a thinking phase.
  std::vector<int32_t> force;
  int32_t max_tokens = 0;  // a new limit on generated tokens; 0 leaves it
};

}  // namespace chimere::engine
