// model_choice.h  Which route the model itself would name: the chances of the names, without drawing one.
//
// The routes and what they are for stand before the question, so that what the model computes for them is read from the
// prefix cache from the second question on. The names are words whose chances are asked for (odo/word_chances.h), in a cache
// scope of their own, so nothing that an answer is computed from changes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "odo/routing/route_rules.h"
#include "orchestrator/chat_service.h"

namespace chimere::odo {

struct ModelCall {
  uint64_t owner = 0;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// What the model is asked; its answer would be a name.
orchestrator::ChatRequest route_question(const std::vector<NamedRules>& routes, std::string_view question);

// The log-probability of each route's name as the beginning of the answer. Blocks; not the engine's thread. Refused for a
// model without a chat template.
Result<std::vector<double>> ask_model(orchestrator::ChatService& service, const std::vector<NamedRules>& routes,
                                      std::string_view question, const ModelCall& call);

}  // namespace chimere::odo
