// answer_state.h  Where an answer stands, token by token: inside its thought, closing it, answering, being completed.
//
//                 before(): the next row             judge(): the drawn token            after(): the token taken
//   thought       drawn, or a phrase that steers it  its end may become an extension;    counted; ends the thought
//                                                    a stop, or a word of reflection,
//                                                    becomes the close
//   close         forced                             stands                              no part of the answer
//   answer        drawn                              a stop ends it, or is replaced by   counted; ends a whole answer; a
//                                                    what completes its form or by its   loop is broken or ends it
//                                                    closing
//   completion    forced                             stands                              the last one ends the answer
//
// Forms are those of a TokenConstraint, which is passed in because masks are made from it elsewhere; null where any
// token may follow. An answer bound to a form comes to a whole end where that is possible:
//
//   a stop inside free text  the model has said what it wanted in a string; the string is closed and the model goes on
//   a loop                   what is being written is closed and the model goes on; after a few the answer is completed
//   a limit                  the answer is completed while there is room for the shortest way
//
// A value that follows from the tokens and their stats alone: the same alone and in a batch, streamed or not. A copy
// goes on by itself (a fork), or is kept to come back to (a rollback).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/event.h"
#include "engine/request.h"
#include "sampling/certainty.h"
#include "sampling/loop_guard.h"
#include "sampling/token_constraint.h"

namespace chimere::engine {

class AnswerState {
 public:
  // What the next row is given.
  struct Row {
    std::optional<int32_t> forced;  // taken whatever the model would draw
    bool in_thought = false;
    bool needs_stats = false;
    std::span<const TokenBias> bias;  // lives until the next before()
  };
  // What becomes of a drawn token. `replaced`: the next before() forces the token that stands in its place; it is taken
  // from the same row. `ends`: the answer stops here, without the token.
  enum class Verdict { stands, replaced, ends };

  // `room`: tokens of the context behind the prompt. Of the request nothing is used that belongs to sampling.
  AnswerState(std::shared_ptr<const Request> request, int32_t room);

  // `tokens` is all of the text, prompt and answer; in after() with the new token last.
  Row before(std::span<const int32_t> tokens);
  Verdict judge(int32_t id, std::span<const int32_t> tokens, TokenConstraint* constraint);
  // Why the answer ends behind this token, if it does.
  std::optional<FinishReason> after(const Sampled& token, std::span<const int32_t> tokens, TokenConstraint* constraint);
  void update(const Update& update);

  bool is_thinking() const { return is_thinking_; }
  // Whether the next token is one that a constraint's mask is needed for.
  bool draws_answer() const { return !is_thinking_ && forced_.empty(); }
  int32_t n_tokens() const { return n_tokens_; }
  int32_t n_thought() const { return n_thought_; }    // of these, inside the thought; what ends it is not counted
  int32_t max_tokens() const { return max_tokens_; }  // -1: any number
  // Tokens that may still follow, within every limit.
  int32_t tokens_left() const;
  // What the next rows will be forced to, as far as that is known; a guess at what before() will say.
  std::vector<int32_t> forced_next() const;

 private:
  enum class Origin { model, phrase, close, other };
  struct Forced {
    int32_t id;
    Origin origin;
  };

  void force(std::span<const int32_t> ids, Origin origin);
  void close_thought();
  void steer_thought();
  bool extends_thought();
  // Whether this token is the last of a word that begins a reconsideration behind a sentence.
  bool ends_in_reflection(int32_t id, std::span<const int32_t> tokens) const;
  // Tokens that the open thought may have in all, of which it has some.
  int32_t thought_limit() const;
  bool is_certain() const;
  void watch_thought(const Sampled& token);
  void collect_bias(std::span<const int32_t> tokens);
  // False when the answer has to end here.
  bool break_loop(TokenConstraint* constraint);

  std::shared_ptr<const Request> request_;
  int32_t room_, max_tokens_, budget_;
  bool is_thinking_;
  int32_t n_tokens_ = 0, n_thought_ = 0;
  int32_t n_answer_ = 0;  // behind the thought; counted where there is a constraint or a closing
  bool is_closing_due_ = false, needs_no_closing_ = false;
  std::deque<Forced> forced_;           // written next, whatever the model would draw
  Origin origin_ = Origin::model;       // of the token of the row that before() described
  std::optional<FinishReason> ending_;  // forced_ completes the answer, which then ends for this reason
  int n_loops_ = 0;                     // of the answer, that were broken
  LoopGuard loop_;
  CertaintyWindow window_;  // of the thought
  int32_t n_extensions_ = 0;
  bool is_at_break_ = false;  // the thought stands behind a sentence
  size_t n_sentence_ = 0;     // tokens of the thought since then
  bool was_warned_ = false;
  bool suppresses_ = false;  // ThinkingParams::triggers can not be drawn, or end the thought
  std::vector<TokenBias> bias_;
};

}  // namespace chimere::engine
