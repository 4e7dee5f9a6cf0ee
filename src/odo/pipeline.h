// pipeline.h  The steps of a route, one after the other or side by side: each reads the conversation, its own words and
// what the steps before it wrote. The last one's answer is the run's.
#pragma once

#include "odo/answer_loop.h"
#include "odo/route.h"

namespace chimere::odo {

// A text as part of the system message, behind what it says already.
void append_system(orchestrator::ChatRequest& request, const std::string& text);

// `own`: what the caller said himself, which no step overrules. A step that fails is left out; when the last one does,
// the answer is the latest text there is. REQUIRES: the route has steps.
ModelTurn run_pipeline(orchestrator::ChatService& chat, orchestrator::ChatRequest request, const Wishes& own,
                       const Route& route, const LoopTools& tools, const LoopLimits& limits, RunTeller& teller);

}  // namespace chimere::odo
