// request.h  What goes into the engine: token ids and how to continue them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/adapter.h"
#include "sampling/memory_source.h"
#include "sampling/sampling_params.h"
#include "sampling/thinking_params.h"
#include "sampling/token_constraint.h"
#include "speculative/draft_source.h"
#include "speculative/mode.h"

namespace chimere::engine {

using RequestId = uint64_t;

// How a thought ends. A small or heavily quantised model may stop in the middle of one, or never stop: the engine then
// closes it, so that an answer follows.
struct Thought {
  bool open = false;             // the prompt ends inside a thought
  std::vector<int32_t> end_ids;  // tokens that end it: its own end, or the start of a tool call
  std::vector<int32_t> close;    // emitted where the model did not end it itself
  int32_t budget = -1;           // tokens of the thought, after which it is closed; -1: any number
  int32_t opener = -1;           // opens a thought when it is the first token drawn; -1: none does
};

// With what an answer is to end, whether the model writes it or not. Where the model would end without it, it is written
// then; an answer that calls a tool, one that says nothing and one that is cut by a limit go without.
struct Closing {
  std::vector<int32_t> ids;     // that are written; empty: nothing is
  std::vector<int32_t> tail;    // an answer that ends with these has it
  std::vector<int32_t> unless;  // of an answer that has one of these nothing is asked

  bool is_at_end(std::span<const int32_t> answer) const;
};

struct Request {
  std::vector<int32_t> prompt;  // at least one token, all inside the vocabulary
  SamplingParams sampling;
  int32_t max_tokens = -1;        // tokens to generate; -1: until the context is full
  std::vector<int32_t> stop_ids;  // drawing one of these ends the answer; it is no part of it
  Thought thought;
  ThinkingParams thinking;      // how the thought is steered; the loop guard also watches the answer
  bool token_stats = false;     // fill Sampled::entropy and max_prob of every token
  bool tells_progress = false;  // an event when the prompt begins to be read, and after each slice of it
  // Cloned at admission. Acts on the answer alone: not while a thought is open, nor on the tokens that close one.
  std::shared_ptr<const TokenConstraint> constraint;
  int32_t max_answer_tokens = -1;  // of a constrained answer, behind its thought; -1: any number
  Closing closing;                 // of an answer without a constraint, behind its thought
  // A constrained answer that nears one of its limits is completed by the shortest way; false: the limit cuts it.
  bool completes = false;
  // Cloned at admission; null: none. It is told whether a thought is open and decides itself whether to speak.
  std::shared_ptr<const MemorySource> memory;
  std::optional<speculative::Mode> speculate;  // absent: EngineConfig::speculate
  // Cloned at admission; null: none. Guesses of its own, beside those from the text; no guess changes the answer.
  std::shared_ptr<const speculative::DraftSource> drafts;
  std::vector<int32_t> snapshot_points;  // prompt lengths at which state is worth keeping, ascending
  uint64_t owner = 0;                    // whose it is: shares of the engine and of the cache are counted by it
  uint64_t cache_scope = 0;              // prompts share computed state inside one scope alone
  // Changes to the model for this request; null: none. What is computed with them is kept apart in the cache.
  std::shared_ptr<const AdapterSet> adapters;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// A change to a running request.
struct Update {
  // Emitted next instead of what would be drawn, e.g. the tokens that close a thinking phase.
  std::vector<int32_t> force = {};
  int32_t max_tokens = 0;                       // a new limit on generated tokens; 0 leaves it
  bool stop_thinking = false;                   // ends the thought, if one is open, before the next token is drawn
  std::optional<int32_t> thinking_budget = {};  // a new budget of the thought, counted from its start
};

}  // namespace chimere::engine
