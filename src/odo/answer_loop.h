// answer_loop.h  The model answers, and calls tools of the program on the way: each call is run, its result told to the
// model, until it answers without one. What it writes is streamed as it comes.
//
// Calls of the caller's own tools go to the caller, as without this loop. The loop always ends with an answer: when its
// budget is used up, the model is asked once more without tools.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "odo/approvals.h"
#include "odo/doubt.h"
#include "odo/lookup.h"
#include "odo/model_turn.h"
#include "tools/toolbox.h"

namespace chimere::odo {

struct LoopLimits {
  int rounds = 6;           // times that the model may call
  int calls = 16;           // calls of all rounds
  int32_t tokens = 16'384;  // that all rounds may write; looked at between them, as an answer is never cut for it
  int at_once = 4;
  std::chrono::seconds one_call{30};
  std::chrono::seconds one_question{120};  // for a person to allow a call
};

struct LoopTools {
  tools::Toolbox* box = nullptr;   // null: the model has the caller's tools alone
  std::vector<std::string> names;  // of the box: what may be called
  Approvals* approvals = nullptr;  // null: calls that need a person's word are refused
  std::string owner;               // whose data the tools may touch
  std::string client;              // the key: whose documents they may read, and who may allow calls
  std::optional<int32_t> tokens;   // of LoopLimits, where somebody says so
  Sources* sources = nullptr;      // where texts of results are kept, with the numbers they are told by; null: nowhere
  std::optional<DoubtRule> doubt;  // whether the answer is thought about is the model's to say; absent: the request's
};

// Whether a name is one of `patterns`, where `*` at the end stands for any text.
bool is_named(const std::string& name, const std::vector<std::string>& patterns);

// `is_live`: deltas go to the teller. The turn's content is that of all rounds.
ModelTurn answer_with_tools(orchestrator::ChatService& chat, orchestrator::ChatRequest request, const LoopTools& tools,
                            const LoopLimits& limits, RunTeller& teller, const std::string& stage, bool is_live);

}  // namespace chimere::odo
