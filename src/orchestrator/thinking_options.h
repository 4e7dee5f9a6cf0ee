// thinking_options.h  How the thought of an answer is steered, in words: what a request asks for, or a server by
// default.
//
// A mode is a set of values; what is said beside it wins. Without a mode and without anything said, nothing is steered
// and answers are the same, bit for bit, as if none of this existed; only one that repeats itself for 2,048 tokens
// comes to its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sampling/thinking_params.h"
#include "tokenizer/tokenizer.h"

namespace chimere::orchestrator {

// fast: ends as soon as it is sure. quality: ends when it is very sure, goes on once when it is in doubt. ultra: never
// ends early, goes on up to three times.
enum class ThinkingMode { off, fast, quality, ultra };
std::optional<ThinkingMode> thinking_mode(std::string_view name);

struct ThinkingOptions {
  std::optional<ThinkingMode> mode = {};
  std::optional<int32_t> window = {};      // tokens that certainty is taken over
  std::optional<int32_t> min_tokens = {};  // of a thought before it is ended for certainty
  std::optional<float> close_above = {};   // certainty that ends a thought; above 1: none
  std::optional<float> extend_below = {};  // certainty below which the model's own end is not accepted; 0: any is
  std::optional<int32_t> max_extensions = {};
  std::optional<std::string> extension = {};     // the phrase written instead of that end
  std::optional<std::string> warning = {};       // the phrase that says that the budget runs out
  std::optional<int32_t> warn_before = {};       // tokens of the budget behind the warning; 0: no warning
  std::optional<int32_t> answer_tokens = {};     // of all tokens of the request, kept for the answer
  std::optional<float> suppress_above = {};      // certainty from which reflection is suppressed; above 1: never
  std::optional<float> release_below = {};       // certainty below which it is allowed again
  std::optional<bool> close_at_reflection = {};  // instead, a sentence that begins with such a word ends the thought
  std::optional<std::vector<std::string>> triggers = {};  // words that begin a reflection
  std::optional<bool> loop_guard = {};                    // absent: on, but only for loops that nobody can mean
  std::optional<int32_t> loop_tokens = {};                // of a repetition before it counts as a loop
  std::optional<float> loop_penalty = {};

  // Whether somebody said so, here or by a mode.
  bool asks_for_loop_guard() const;
  // What these leave open is taken from `defaults`.
  ThinkingOptions over(const ThinkingOptions& defaults) const;
};

// Words that begin a reconsideration, in several languages.
const std::vector<std::string>& reflection_words();

// Used by one thread: what depends on the vocabulary alone is made once.
class ThinkingResolver {
 public:
  // `n_drawable` tokens can be drawn at all: the vocabulary without placeholders.
  ThinkingResolver(const Tokenizer& tokenizer, int32_t n_drawable);

  float max_entropy() const { return max_entropy_; }
  ThinkingParams resolve(const ThinkingOptions& options);

 private:
  std::shared_ptr<const std::vector<uint64_t>> breaks();
  // Each word as it stands at the beginning of a line and behind a space, in both cases.
  std::shared_ptr<const std::vector<std::vector<int32_t>>> triggers(const std::vector<std::string>& words) const;

  Tokenizer tokenizer_;
  float max_entropy_;
  std::shared_ptr<const std::vector<uint64_t>> breaks_;
  std::shared_ptr<const std::vector<std::vector<int32_t>>> own_triggers_;  // of reflection_words()
};

}  // namespace chimere::orchestrator
