// doubt.h  Whether an answer needs a thought, decided by how much the model hesitates when it begins without one.
//
// The first tokens of the direct answer are held back. If the model is sure of them they are shown and the answer goes on,
// so that a sure answer costs nothing; otherwise they are thrown away and it is asked again, with a thought. What was
// computed of the prompt serves both.
#pragma once

#include <functional>
#include <vector>

#include "odo/model_turn.h"

namespace chimere::odo {

// As fitted by `chimere eval odo --stage entropy` for the model in the box (docs/odo.md).
struct DoubtRule {
  size_t n_tokens = 1;     // that are held back
  float threshold = 0.2f;  // their mean entropy in nats from which on the answer is thought about
  // Adds what an answer in doubt is told of (ChatRequest::looked_up); null: nothing.
  std::function<void(orchestrator::ChatRequest&)> look_up = {};
};

struct DoubtedTurn {
  ModelTurn turn;
  double entropy = 0;  // nats
  bool thinks = false;
  std::vector<orchestrator::LookedUp> looked_up;  // what the answer that was kept was told of
};

// As ask_model; `step` is charged for both tries.
DoubtedTurn ask_in_doubt(orchestrator::ChatService& chat, const orchestrator::ChatRequest& request,
                         const DoubtRule& rule, RunTeller& teller, int step,
                         const std::function<bool(const ChatChunk&)>& on_delta = {});

}  // namespace chimere::odo
