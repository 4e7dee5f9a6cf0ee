// stats.h  What the engine tells about itself: totals since the start, what runs now, where memory went.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/expert_traffic.h"
#include "engine/event.h"
#include "engine/request.h"
#include "speculative/tally.h"

namespace chimere::engine {

// Lookups of prompts in the prefix cache. A lookup that did not find all it could have used counts one reason.
struct CacheStats {
  uint64_t lookups = 0;
  uint64_t hits = 0;                                     // found something
  std::vector<std::pair<std::string, uint64_t>> misses;  // by reason, every reason that exists
  uint64_t ram_bytes = 0;                                // pages and snapshots, shared ones once
  uint64_t disk_bytes = 0;
  uint64_t others_disk_bytes = 0;  // of other models, in the same folder
  uint64_t disk_limit_bytes = 0;   // of these two together; 0: nothing goes to the disk
  uint64_t cleared_bytes = 0;      // because somebody asked for it, since the start
  uint64_t entries = 0;            // kept positions in memory and on the disk
  uint64_t budget_bytes = 0;       // of memory; 0: there is no cache
};

// Memory for the state of requests: what there is, and how often there was too little (shortage.cpp).
struct Shortage {
  uint64_t wanted_bytes = 0;  // for the states of all requests and of the cache: EngineConfig::state_bytes
  uint64_t limit_bytes = 0;   // of these, what the device lately had
  int waiting = 0;            // requests that wait for memory now
  uint64_t waits = 0;         // times that one had to
  uint64_t refusals = 0;      // times that the device had less than the limit
  uint64_t given_back = 0;    // times that a request gave its state back, to be computed again
};

// Steps are counted by the rows of their batch: those of at most 1, 2, 4, 8, ... rows.
inline constexpr int kBatchSizes = 12;

// Since the start. Small: copied whenever an answer ends, so that who hears of the end finds it here.
struct EngineTotals {
  uint64_t steps = 0;
  uint64_t rows = 0;                                  // of all steps together
  std::array<uint64_t, kBatchSizes> steps_by_rows{};  // [i]: of at most 2^i rows and more than half of that
  uint64_t prompt_tokens = 0;                         // of prompts, computed
  uint64_t prompt_tokens_reused = 0;
  uint64_t generated_tokens = 0;
  uint64_t drafts = 0;        // times that guesses of an answer went into a step
  uint64_t draft_tokens = 0;  // of these guesses
  uint64_t draft_tokens_accepted = 0;
  speculative::DraftTimes draft_times;
  speculative::Tally guesses;      // the same, by source and place
  uint64_t draft_passes = 0;       // batches of the model's draft pass
  uint64_t draft_pass_rows = 0;    // of all of them together
  uint64_t draft_pass_tokens = 0;  // of draft_tokens, those that it guessed
  uint64_t draft_pass_tokens_accepted = 0;
  uint64_t draft_model_rows = 0;  // of all batches of the draft model
  uint64_t drafter_rows = 0;      // of all blocks of the DFlash drafter
  uint64_t requests_finished = 0;
  std::array<uint64_t, kFinishReasons> finished_by_reason{};  // [FinishReason]
  uint64_t requests_failed = 0;
};

// What decides how many guesses are tried, as it stands (speculative/plan.h, acceptance.h).
struct DraftControl {
  // How sure guesses of a source are, by their kinds in order (speculative/draft_source.h), in all requests lately.
  struct Chances {
    speculative::Source source;
    std::vector<float> chances, tried;
  };

  bool may_pay = true;  // beside as many answers as were in the last step; else nothing is looked for
  int n_answers = 0;    // of the last step, with guesses
  int depth = 0;        // guesses of the one that had most
  double open_seconds = 0, back_seconds = 0;              // to begin a draft, and to take its end back
  std::vector<std::pair<int, double>> step_seconds = {};  // (rows, seconds), as expected now
  std::vector<Chances> chances = {};                      // of sources that guessed
};

// Of a DFlash drafter.
struct DrafterStats {
  int block_rows = 0;        // 0: there is none
  double block_seconds = 0;  // of a pass over one block with a guess, as timed at load; 0: not timed
  double guess_seconds = 0;  // of each guess behind it
};

struct EngineStats : EngineTotals {
  int running = 0;
  int queued = 0;
  int max_running = 0;
  int max_queued = 0;
  int batch_rows = 0;         // of the last step
  uint64_t asleep_bytes = 0;  // of the card, given away until somebody needs the model; 0: it is awake
  const char* place = "";     // what the engine's thread does at this moment; a text that lives forever
  CacheStats cache = {};
  Shortage shortage = {};
  speculative::Mode speculate = speculative::Mode::off;   // of requests that do not say
  bool has_draft_pass = false;                            // the model was loaded with its draft block
  double pass_seconds = 0;                                // of a guess of it, as timed at load; 0: not timed
  std::string draft_model = {};                           // its name; empty: there is none
  double draft_model_seconds = 0;                         // of a guess of it, as timed at load; 0: not timed
  std::vector<std::pair<int, double>> step_seconds = {};  // (rows, seconds), as timed at load; empty: not timed
  DraftControl draft_control = {};
  DrafterStats drafter = {};
  uint64_t state_bytes = 0;                                   // of sequences and cache together
  std::vector<std::pair<std::string, uint64_t>> memory = {};  // (purpose, bytes)
  std::optional<ExpertTraffic> experts = {};                  // where some are on disk
  std::optional<CardTraffic> card_experts = {};               // where a card reads some from RAM
};

enum class RequestState { queued, prefill, decode };

struct RequestInfo {
  RequestId id = 0;
  RequestState state = RequestState::queued;
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;
  int32_t completion_tokens = 0;
  bool is_thinking = false;
  bool may_draft = false;  // guesses are tried for it where they pay
  std::chrono::steady_clock::time_point submitted, started;
};

}  // namespace chimere::engine
