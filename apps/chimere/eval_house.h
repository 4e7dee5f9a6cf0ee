// eval_house.h  The model with the orchestrator around it, as the stages of `chimere eval odo` ask them, and what they
// count.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval_stages.h"
#include "eval_tasks.h"
#include "odo/odo.h"
#include "odo/routing/scoreboard.h"
#include "orchestrator/chat_service.h"
#include "tools/toolbox.h"

namespace chimere::apps {

struct EvalHouse {
  std::unique_ptr<orchestrator::ChatService> chat;
  tools::Toolbox box;  // the calculator
  std::unique_ptr<odo::Odo> odo;
};
Result<std::unique_ptr<EvalHouse>> open_house(const EvalOptions& options, std::shared_ptr<store::Journal> journal = {});

struct EvalAnswer {
  std::string content;
  orchestrator::ChatChunk last;
  std::vector<orchestrator::TokenInfo> tokens;  // where the request asks for them
  double ms = 0;
};
// A question with temperature 0; `thinks` absent: as the model does by itself.
orchestrator::ChatRequest asked(const EvalHouse& house, const std::string& text, std::optional<bool> thinks);
// Without an Ask the model alone answers.
Result<EvalAnswer> answer_of(EvalHouse& house, orchestrator::ChatRequest request, std::optional<odo::Ask> ask);

// What answers of one kind came to.
struct EvalTally {
  std::vector<odo::JudgedChoice> answers;  // chosen 1: right
  int64_t n_tokens = 0;

  void add(bool is_right, int64_t tokens, double ms);
  // "| name | right (95 %) | tokens | ms |"
  void print_row(const std::string& name) const;
};

}  // namespace chimere::apps
