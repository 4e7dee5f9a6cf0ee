// eval_tools.cpp  Sums of several steps, made here and trained on nowhere: the model alone, with the calculator to call,
// and with sums computed before it answers.
#include <array>
#include <cstdio>
#include <optional>
#include <string>

#include "eval_house.h"
#include "eval_stages.h"
#include "text/json.h"

namespace chimere::apps {
namespace {

constexpr uint32_t kSumsSeed = 2026;

struct ToolSetting {
  const char* name;
  bool is_odo = false, calculates = false;
};
constexpr std::array<ToolSetting, 3> kToolSettings = {{{"the model alone", false, false},
                                                       {"`odo`, calculator to call", true, false},
                                                       {"`odo`, sums computed before", true, true}}};

// Results of the calculator, called by the model or not, and how many of them are the answer.
struct CalculatorTally {
  int n = 0, n_exact = 0;

  void add(const orchestrator::ChatChunk& last, const std::string& expected) {
    if (!last.run) return;
    for (const orchestrator::StepReport& step : last.run->steps) {
      if (step.stage != "tool" && step.stage != "calculate") continue;
      ++n;
      const auto detail = parse_json(step.detail);
      n_exact += detail && detail->contains("result") && (*detail)["result"] == expected;
    }
  }
};

Status measure(EvalHouse& house, const ToolSetting& setting, bool thinks, int n) {
  EvalTally tally;
  CalculatorTally calculator;
  for (const EvalTask& task : made_tasks(TaskKind::sums, kSumsSeed, n)) {
    std::optional<odo::Ask> ask;
    if (setting.is_odo) {
      ask.emplace();
      ask->model = "odo";
      ask->calculates = setting.calculates;
    }
    TRY_ASSIGN(const EvalAnswer answer, answer_of(house, asked(house, task.text, thinks), std::move(ask)));
    tally.add(is_right(answer.content, task), answer.last.usage.completion_tokens, answer.ms);
    calculator.add(answer.last, task.answer);
  }
  tally.print_row(std::string(setting.name) + (thinks ? ", thinking" : ""));
  if (calculator.n > 0) std::printf(" %d of %d |\n", calculator.n_exact, calculator.n);
  if (calculator.n == 0) std::printf(" |\n");
  std::fflush(stdout);
  return Ok{};
}

}  // namespace

Status eval_tools(const EvalOptions& o) {
  TRY_ASSIGN(const auto house, open_house(o));
  std::printf("| %d sums | right (95 %%) | tokens | ms | right results of the calculator |\n|---|---|---|---|---|\n",
              o.n);
  for (const bool thinks : {false, true}) {
    for (const ToolSetting& setting : kToolSettings) {
      TRY(measure(*house, setting, thinks, o.n));
    }
  }
  return Ok{};
}

}  // namespace chimere::apps
