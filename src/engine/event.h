// event.h  What comes out of the engine, through one channel a request (base/channel.h): written by the engine thread,
// read by one consumer, and as long as the answer at most.
//
// Every admitted request ends with exactly one terminal event: finished or failed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/channel.h"
#include "base/result.h"
#include "cache/cache_miss.h"
#include "sampling/sampler.h"
#include "speculative/draft_times.h"

namespace chimere::engine {

enum class FinishReason { stop, length, cancelled, deadline, loop };  // loop: the answer went round in circles
inline constexpr int kFinishReasons = 5;

struct Usage {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;               // of the prompt, not computed again
  CacheMiss cache_miss = CacheMiss::none;  // why these are not more
  int32_t cache_differs_at = 0;            // the first token of the prompt that no kept text has
  int32_t completion_tokens = 0;
  int32_t reasoning_tokens = 0;       // of these, inside the thought; what ends it is not counted
  int32_t drafts = 0;                 // steps with guesses
  int32_t draft_tokens = 0;           // guesses that were computed
  int32_t draft_tokens_accepted = 0;  // of these, tokens of the answer
  speculative::DraftTimes draft_times;
  double queue_seconds = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
};

struct Event {
  enum class Kind { token, progress, finished, failed };
  Kind kind = Kind::token;
  Sampled token;                             // kind token
  bool was_guessed = false;                  // kind token: it was in a step before it was drawn (draft.h)
  FinishReason reason = FinishReason::stop;  // kind finished
  Usage usage;                               // finished and failed; of `progress` the tokens of the prompt
  int32_t n_read = 0;                        // kind progress: of these, those that are read, the cached ones among them
  std::optional<Error> error;                // kind failed

  bool is_terminal() const { return kind == Kind::finished || kind == Kind::failed; }
};

}  // namespace chimere::engine
