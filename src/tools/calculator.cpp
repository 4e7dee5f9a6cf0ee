#include "tools/calculator.h"

#include "tools/arguments.h"
#include "tools/expression.h"

namespace chimere::tools {
namespace {

class Calculator : public Tool {
 public:
  const ToolSpec& spec() const override {
    static const ToolSpec kSpec = {
        "calculator",
        "Computes an arithmetic expression exactly. Operators: + - * / ^, // (rounded down), % (remainder, or percent "
        "as "
        "in 15% of 80), ! and one comparison. Functions: sqrt, cbrt, abs, min, max, round(x, decimals), floor, ceil, "
        "gcd, "
        "lcm, mod, pow, factorial, sum, mean.",
        R"json({"type":"object","properties":{"expression":{"type":"string","description":"for example (12.5 + 7) * 3^2"}},)json"
        R"json("required":["expression"],"additionalProperties":false})json"};
    return kSpec;
  }

  ToolResult run(const std::string& arguments, const ToolContext& context) override {
    const auto parsed = read_arguments(arguments);
    if (!parsed) return {parsed.error().message, true};
    const auto answer = evaluate(text_argument(*parsed, "expression"), [&context] {
      return context.is_cancelled() || std::chrono::steady_clock::now() >= context.deadline;
    });
    if (!answer) return {answer.error().message, true};
    return {answer->text};
  }
};

}  // namespace

std::shared_ptr<Tool> make_calculator() { return std::make_shared<Calculator>(); }

}  // namespace chimere::tools
