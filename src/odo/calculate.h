// calculate.h  The sums that a question asks for (sums.h), computed by the calculator before the model answers: a small
// model copies a result more often rightly than it copies a sum into a call. It reads them as results of calls it made.
#pragma once

#include <string>

#include "odo/run_stream.h"
#include "orchestrator/chat_request.h"
#include "tools/toolbox.h"

namespace chimere::odo {

inline constexpr const char* kCalculator = "calculator";

// A step `calculate` for each sum, with expression and result; the request is told of the results. False where there was
// none: no sum, no calculator that may be used without asking, or none that has a result.
bool calculate(const tools::Toolbox& box, const tools::ToolContext& context, RunTeller& teller,
               orchestrator::ChatRequest& request);

}  // namespace chimere::odo
