// wishes.h  How an answer shall be made, as far as somebody said so, and whose word counts.
//
//   the request's own fields  >  the route's file  >  the mode  >  the model's profile (what its file recommends)
//
// Each of the first three is a set of Wishes; what none of them says stays as the profile has it. So a caller's
// sampling is always respected (docs/odo.md has the table, wishes_test.cpp holds it).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/chat_request.h"

namespace chimere::odo {

struct Wishes {
  std::optional<float> temperature = {};
  std::optional<float> top_p = {};
  std::optional<int32_t> top_k = {};
  std::optional<float> min_p = {};
  std::optional<float> presence_penalty = {};
  std::optional<int32_t> max_tokens = {};
  std::optional<bool> thinking = {};
  std::optional<orchestrator::ThinkingMode> thinking_mode = {};
  std::optional<int32_t> thinking_limit = {};  // tokens of a thought
  std::optional<std::vector<orchestrator::MemoryUse::Named>> tables = {};
  std::optional<float> alpha = {};  // weight of these tables
  std::optional<std::vector<orchestrator::AdapterUse>> adapters = {};

  // What these leave open is taken from `lower`.
  Wishes over(const Wishes& lower) const;
  void apply_to(orchestrator::ChatRequest& request) const;
};

// What the caller said himself: the values of those of his fields that are wishes.
Wishes wishes_of(const orchestrator::ChatRequest& request);

// How much an answer may cost. The words mean for thoughts what thinking control says (orchestrator/thinking_options.h),
// and beside that:
//
//              a thought of at most   steps of a route's pipeline   the web, where a route has it   a thought is left out
//   fast       256 tokens             never                         no                              if the model is sure
//   quality    1,024                  if the route does so itself   yes                             if the model is sure
//   ultra      4,096                  always                        yes                             never
struct Mode {
  std::string_view name;
  Wishes wishes;
  bool runs_pipeline = false;  // also where a route does not do so by itself
  bool may_run_pipeline = true;
  bool may_search = true;
  bool may_skip_thought = true;
};

// Null when there is none of that name.
const Mode* mode_named(std::string_view name);
// "fast, quality, ultra"
std::string mode_names();
std::vector<std::string> list_of_modes();

}  // namespace chimere::odo
