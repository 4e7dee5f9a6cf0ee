// judge.h  How good an answer, or a step towards one, is: 0 to 1, and why.
//
//   checks       what can be computed again is: equations, the form that was asked for, programs in the sandbox
//   a model      a process reward model, where there is one: how much likelier it answers "+" than "-" behind the step
//   confidence   without one: the mean chance of the tokens, which the engine gives for nothing
//
// A check that fails is 0, whatever the others say; one that holds lifts the score half of the way to 1 where no model judges,
// which has read it itself. Nothing is drawn.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "orchestrator/chat_service.h"
#include "tools/toolbox.h"

namespace chimere::odo {

// The adapter that makes the served model a judge, where it is loaded.
inline constexpr const char* kJudgeAdapter = "prm";

struct JudgeParts {
  orchestrator::ChatService* chat = nullptr;  // the model that answers; its adapter `prm`, if loaded, judges
  orchestrator::ChatService* prm = nullptr;   // a model that judges; null: none
  const tools::Toolbox* box = nullptr;        // runs programs; null: none are run
  tools::ToolContext context = {};
  bool runs_code = false;  // and only where the policy of run_code is `allow`
};

// What is judged.
struct Judged {
  std::string question;
  std::string before;  // what the answer has said already, thought and text; empty: it begins here
  std::string text;
  const orchestrator::AnswerForm* form = nullptr;  // of a whole answer; null: any
  double logprob = 0;                              // mean of its tokens, in nats
  bool is_cut = false;                             // it ended at a limit
  uint64_t owner = 0, cache_scope = 0;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

struct Judgement {
  double score = 0;
  const char* by = "confidence";  // "check", "model" or "confidence": what decided
  std::string why;                // one line; of a failed check what is wrong
  bool is_proven_wrong = false;
  int32_t tokens = 0;  // that the judge generated

  // 1 to 5.
  int stars() const;
};

class Judge {
 public:
  explicit Judge(JudgeParts parts);

  // Whether a model judges.
  bool has_model() const { return prm_ != nullptr; }
  // Blocks. A judge that fails is left out: the others decide.
  Judgement judge(const Judged& judged) const;

 private:
  struct Checks;
  Checks check(const Judged& judged) const;
  Result<double> by_model(const Judged& judged) const;
  bool runs(const std::string& program, std::string& why) const;

  JudgeParts parts_;
  orchestrator::ChatService* prm_ = nullptr;  // who is asked; null: nobody
  bool by_adapter_ = false;
};

// The request whose answer "+" or "-" is the verdict: what a process reward model has to be trained on.
orchestrator::ChatRequest verdict_question(const Judged& judged);
// The first program (```python ... ```) of a text; empty: none.
std::string program_in(const std::string& text);

}  // namespace chimere::odo
