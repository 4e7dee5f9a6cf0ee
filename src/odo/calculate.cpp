#include "odo/calculate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "odo/sums.h"
#include "orchestrator/recall.h"
#include "text/json.h"

namespace chimere::odo {
namespace {

using State = StepReport::State;

// {"result": 84}: results in this form the model in the box was trained to say. Of the same 40 sums it says 40, and 28 where
// the result is the bare number.
std::string as_read(const std::string& result) {
  const bool is_number = result.find_first_not_of("-.0123456789") == std::string::npos;
  return "{\"result\": " + (is_number ? result : to_text(Json(result))) + "}";
}

// Only a question can be computed for, and only where the name is not that of a tool of the caller's.
bool may_calculate(const tools::Toolbox& box, const orchestrator::ChatRequest& request) {
  const bool is_question = !request.messages.empty() && request.messages.back().role == "user" && !request.goes_on;
  const bool is_callers = std::any_of(request.tools.begin(), request.tools.end(), [](const chat::Tool& tool) {
    return tool.json.find('"' + std::string(kCalculator) + '"') != std::string::npos;
  });
  return is_question && !is_callers && box.policy(kCalculator) == tools::Policy::allow;
}

}  // namespace

bool calculate(const tools::Toolbox& box, const tools::ToolContext& context, RunTeller& teller,
               orchestrator::ChatRequest& request) {
  if (!may_calculate(box, request)) return false;
  chat::Message call;
  call.role = "assistant";
  call.content = "";
  std::vector<chat::Message> results;
  for (const std::string& sum : sums_in(orchestrator::question_of(request.messages))) {
    const int step = teller.begin("calculate", sum, false);
    Json detail = {{"expression", sum}};
    const std::string arguments = to_text(detail);
    const tools::ToolResult result = box.run(kCalculator, arguments, context);
    if (result.is_error) {
      teller.end(step, State::failed, sum + ": " + result.text, arguments);
      continue;
    }
    detail["result"] = result.text;
    teller.end(step, State::done, sum, to_text(detail));
    call.tool_calls.push_back({"sum_" + std::to_string(results.size() + 1), kCalculator, arguments});
    chat::Message& read = results.emplace_back();
    read.role = "tool";
    read.name = kCalculator;
    read.tool_call_id = call.tool_calls.back().id;
    read.content = as_read(result.text);
  }
  if (results.empty()) return false;
  request.messages.push_back(std::move(call));
  request.messages.insert(request.messages.end(), results.begin(), results.end());
  return true;
}

}  // namespace chimere::odo
