// trainer.h  Learning inside the engine: a LoRA adapter for a model, from examples, with forward passes alone.
//
// Two methods share examples, options, checkpoints and reports:
//   head   the change is of the output head. Hidden states and logits of the examples are computed once; from then on the
//          loss is a softmax regression whose gradient is exact, and the network is not run again.
//   mezo   the change is of any matrices that adapters can change. Each step runs the same examples at theta + eps z and
//          at theta - eps z, both in one batch, and moves along z by the difference (SPSA; Malladi et al., "Fine-tuning
//          language models with just forward passes"). z is drawn from (seed, step): nothing but numbers is kept of it.
// The model is the one that serves, with its quantised weights, on whatever backend it was loaded for. What comes out is
// a file that `--lora` loads (docs/lora.md).
//
// A run that is stopped or killed goes on from its checkpoint, and the adapter is the same to the bit.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/model.h"

namespace chimere::improve {

struct Example {
  std::vector<int32_t> tokens;
  int32_t answer_from = 1;  // the loss counts tokens[answer_from..]; at least 1
  float weight = 1;
  // Not to be learned: what the model says of these tokens today shall stay (divergence from it is the loss).
  bool is_kept = false;
};

enum class TrainMethod { head, mezo };
enum class RateSchedule { constant, linear, cosine };  // of the learning rate, from its full value down to zero

struct TrainOptions {
  TrainMethod method = TrainMethod::head;
  int rank = 8;
  float alpha = 8;           // a change is alpha / rank B A
  std::string targets = {};  // regular expression over names of matrices; empty: the method's default. mezo only
  std::string start = {};    // an adapter to go on from; what is not trained of it stays as it is. Empty: none
  int steps = 0;             // 0: the method's default, and so for those below
  int batch = 0;             // examples of a step (head: answer tokens)
  float learning_rate = 0;
  float eps = 0;          // mezo: how far apart the two passes are
  int directions = 1;     // mezo: pairs of passes in a step
  float momentum = 0.9f;  // mezo: of the steps
  bool train_a = false;   // mezo: A, too; otherwise it stays as drawn, and B begins at zero (LoRA-FA)
  float decay = 0;        // head: of the weights, a step
  float keep = 4;         // weight of the mean divergence on what is kept, beside the mean loss on the examples
  int own_text = -1;      // tokens that the model writes itself, to be kept, too; 0: none; -1: the method's default
  RateSchedule schedule = RateSchedule::linear;
  uint64_t seed = 1;
  double seconds = 0;           // stop learning after so many, over all runs of a checkpoint; 0: no limit
  std::string checkpoint = {};  // file; empty: none, and a run that ends early is lost
};

struct TrainStep {
  int step = 0;  // 1 is the first
  int steps = 0;
  double loss = 0;      // of this step's examples, nats a token
  double seconds = 0;   // since the start, over all runs
  uint64_t tokens = 0;  // that went through the network until then
};

struct TrainReport {
  bool is_finished = false;  // false: stopped by the progress function; the checkpoint has the rest
  bool ran_out_of_time = false;
  int resumed_at = 0;  // steps that the checkpoint had
  std::vector<TrainStep> curve;
  double loss_before = 0, loss_after = 0;  // of all examples that are learned, nats a token
  double kept_divergence = 0;              // of those that are kept, after; nats a token
  int skipped = 0;                         // steps whose loss was no number
  uint64_t parameters = 0;                 // that were trained
  double seconds = 0;
  uint64_t tokens = 0;
};

// Called after each step; false stops.
using TrainProgress = std::function<bool(const TrainStep&)>;

// The most that a run takes.
inline constexpr size_t kMaxExamples = 100'000;
inline constexpr size_t kMaxExampleTokens = 32'768;
inline constexpr uint64_t kMaxCachedBytes = uint64_t{2} << 30;  // of logits that are kept in memory

// Learns and writes the adapter to `out`, whole or not at all. The model is used by nobody else meanwhile.
Result<TrainReport> train_adapter(models::Model& model, std::span<const Example> examples, const TrainOptions& options,
                                  const std::string& out, const TrainProgress& progress = {});

// How examples stand under an adapter file (empty: none).
struct ExampleScore {
  double loss = 0;      // nats a token
  double accuracy = 0;  // share of answer tokens that are the model's first choice
  double exact = 0;     // share of examples of which all are: what it would answer without sampling, to the letter
  uint64_t tokens = 0;
};
Result<ExampleScore> score_examples(models::Model& model, std::span<const Example> examples,
                                    const std::string& adapter);

}  // namespace chimere::improve
