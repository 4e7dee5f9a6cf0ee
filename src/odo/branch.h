// branch.h  A way in which an answer can go: what it has said so far, and requests that let it go on.
//
// A branch goes on from its own text (ChatRequest::goes_on), thought or answer. The prompt and the text are read once and forked
// (ChatService::start with n), and come from the prefix cache as far as they were computed before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "odo/judge.h"
#include "odo/run_stream.h"
#include "orchestrator/chat_service.h"

namespace chimere::odo {

// What one request added.
struct Piece {
  std::string reasoning, content;
  std::vector<orchestrator::TokenInfo> tokens;
  ChatChunk last;

  bool has_failed() const { return last.kind == ChatChunk::Kind::failed; }
  double logprob_sum() const;
};

// Waits for all of them. A run that is cancelled cancels them; one whose reader wants the answer now ends their thoughts.
// `step` is charged for the tokens. `wants_answer` is set when the reader said so.
std::vector<Piece> read_pieces(orchestrator::ChatService& chat,
                               std::vector<std::pair<orchestrator::ChatRequest, int>> requests, RunTeller& teller,
                               int step, bool& wants_answer);

struct StepScore {
  std::string text;
  double score = 0;
  bool is_mended = false;  // a sum of it was wrong and has its right result now
};

struct Branch {
  enum class Phase { thinks, thought, answers, done };  // thought: it has ended, and the answer has not begun

  std::string reasoning, content;
  Phase phase = Phase::thinks;
  std::vector<orchestrator::TokenInfo> tokens;
  double logprob_sum = 0;
  int32_t n_tokens = 0;
  std::vector<StepScore> steps;
  ChatChunk last;  // of the last piece
  Judgement judgement = {};
  double votes = 0;

  std::string text() const { return reasoning + (reasoning.empty() || content.empty() ? "" : "\n") + content; }
  double logprob() const { return n_tokens > 0 ? logprob_sum / n_tokens : 0; }
  bool has_text() const { return !reasoning.empty() || !content.empty(); }
};

// How an answer is cut into steps.
struct StepCuts {
  std::string thought_close;  // what ends a thought
  int32_t max_tokens = 192;   // of a step that has no border
};

// The request that lets the branch go on: by a step where it is `to_border`, else to its end.
orchestrator::ChatRequest going_on(const orchestrator::ChatRequest& asked, const Branch& branch, const StepCuts& cuts,
                                   bool to_border, uint64_t seed);
// The branch with what such a request gave.
Branch grown(const Branch& branch, const Piece& piece, const orchestrator::ChatRequest& asked, const StepCuts& cuts,
             bool to_border);
// What the piece added, as one text.
std::string step_text(const Branch& before, const Branch& after);

}  // namespace chimere::odo
