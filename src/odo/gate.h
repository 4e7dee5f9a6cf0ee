// gate.h  An answer is judged before it is shown (judge.h). A bad one, two stars of five or fewer, is tried once more: the model
// reads it and what is wrong with it. Of the two the better is shown; there is no third.
#pragma once

#include <functional>

#include "odo/judge.h"
#include "odo/model_turn.h"

namespace chimere::odo {

inline constexpr int kGateStars = 2;

// `turn`: the answer, not shown yet, made with token figures; `answer` makes another one of a request. A step `gate` of the run
// with the judgement. Gives the one to be shown.
ModelTurn pass_gate(ModelTurn turn, const orchestrator::ChatRequest& request, const Judge& judge, RunTeller& teller,
                    const std::function<ModelTurn(orchestrator::ChatRequest)>& answer);

}  // namespace chimere::odo
