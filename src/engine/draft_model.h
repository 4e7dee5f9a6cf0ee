// draft_model.h  A small model of the same vocabulary that guesses for a large one, for several texts at once.
//
// It reads each text on its own, in a sequence of its own: what was taken is read with the next guesses, and of the rows
// of guesses those that turned out right stay. So a chain of k guesses costs k steps of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/sequence.h"
#include "engine/best_tokens.h"
#include "engine/step_timing.h"
#include "engine/work_clock.h"
#include "models/model.h"
#include "speculative/step_costs.h"

namespace chimere::engine {

// What a draft model has of one text.
struct Companion {
  bool is_on = false;
  std::optional<Sequence> sequence;  // of the draft model; none before it read anything
  std::vector<int32_t> guesses;      // of its last chain
  int n_run = 0;                     // of these: they are the last tokens of the sequence

  int32_t length() const { return sequence ? sequence->length() : 0; }
  // Whether the last chain guesses what follows a text of so many tokens: nothing was taken since.
  bool has_guessed_behind(size_t n_tokens) const {
    return !guesses.empty() && static_cast<size_t>(length() - n_run) == n_tokens;
  }
  uint64_t size_bytes() const { return sequence ? sequence->size_bytes() : 0; }
};

class DraftModel {
 public:
  // The next tokens of a text. REQUIRES: they stand behind what the companion's sequence has, and it is settled.
  struct Part {
    Companion* companion;
    std::span<const int32_t> tokens;
    int n_guesses = 0;
  };

  explicit DraftModel(models::Model& model) : model_(model), work_clock_(model), best_(model) {}

  models::Model& model() const { return model_; }
  // Both on the thread that runs it: what it draws where, and then what its steps cost. Without costs nothing can be planned.
  void prepare(const std::vector<int32_t>& suppressed_ids);
  void time(const InAHurry& in_a_hurry);
  const speculative::StepCosts* costs() const { return costs_ ? &*costs_ : nullptr; }

  Status begin(Companion& companion);
  // Takes back the guesses that the text did not go on with; the last token of the text is left to be read.
  // REQUIRES: the text went on since they were made.
  Status settle(Companion& companion, std::span<const int32_t> text);
  // What run() and run_chains() would allocate. REQUIRES: begun.
  static uint64_t bytes_to_run(const Companion& companion, int n_tokens, int n_guesses);

  // Both REQUIRE: batches of the model hold all rows; begun. After an error nothing is known of their companions.
  // One batch. Guesses are of what follows each of the last n_guesses tokens of a part.
  Status run(std::span<const Part> parts);
  // Guesses are a chain of n_guesses, at least one: what follows the last token, then what follows that guess.
  Status run_chains(std::span<const Part> parts);

  // Of the last run(): guess i of a part. Chains are in the companions.
  int32_t guess(size_t part, int i) const { return guesses_[part][static_cast<size_t>(i)]; }
  uint64_t n_rows() const { return n_rows_; }  // of all batches since the start

 private:
  Status run_batch(const Batch& batch);

  models::Model& model_;
  const WorkClock work_clock_;  // as its steps were timed
  BestTokens best_;
  bool draws_ = false;
  std::optional<speculative::StepCosts> costs_;
  std::vector<std::vector<int32_t>> guesses_;  // [parts]
  uint64_t n_rows_ = 0;
};

}  // namespace chimere::engine
