// benchmark.h  Times prefill and decode of a loaded model, on random tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "models/model.h"
#include "speculative/mode.h"

namespace chimere::engine {

struct BenchmarkPlan {
  int n_prompt = 512;
  int n_decode = 128;
  int repeats = 5;
  int depth = 0;                   // tokens already in the context
  std::vector<int> streams = {1};  // sequences that decode together
  bool profile = false;            // time the launches of a step by family
  bool sleep = false;              // time how long it takes to give the card away and to take it again
  // Random tokens are never guessed, so a share of guesses that are right is imposed: each is, with this chance, if
  // those before it are. automatic: as many guesses as then pay; mtp and draft: the same, made by the model's draft
  // pass or by the draft model, which costs time; always: as many as draft_max.
  speculative::Mode speculate = speculative::Mode::off;
  std::vector<double> acceptance = {0.6, 0.75, 0.9};
  int draft_max = kDecodeTokens - 1;
  models::Model* draft_model = nullptr;  // of Mode::draft; of as many tokens
  std::vector<int> draft_depths = {};    // guesses in a step, one measurement each; empty: as many as speculate says
};

struct Timing {
  double median = 0;
  double spread = 0;  // half the distance between the largest and the smallest, over the median
};

struct StreamTiming {
  int streams = 1;
  Timing tok_s;  // of all streams together
};

struct DraftTiming {
  double acceptance = 0;
  int depth = 0;  // guesses in a step; 0: none pays
  double tokens_per_step = 1;
  std::vector<double> accepted;  // [depth]: of the guesses at this place, those that were taken
  Timing tok_s;                  // of one stream
};

struct SleepTiming {
  uint64_t bytes = 0;  // that were given away
  double sleep_s = 0;
  double wake_s = 0;
  double first_step_s = 0;  // the step that comes then
};

struct BenchmarkReport {
  Timing prefill_tok_s;
  std::vector<StreamTiming> decode;
  std::vector<DraftTiming> drafts;
  double draft_pass_s = 0;                           // a guess of the draft pass or draft model; 0: not measured
  std::vector<std::pair<int, double>> draft_step_s;  // rows of a draft, of which one stays, and what it takes
  double bytes_per_token = 0;                        // that one decoded token moves
  std::optional<DeviceReport> device;
  // Where some experts are on disk: how often one that was used was in RAM, and the bytes read for a token, while the
  // first number of streams decoded.
  struct ExpertFigures {
    double hit_share = 0, bytes_per_token = 0;
  };
  std::optional<ExpertFigures> experts;
  std::optional<ExpertFigures>
      card_experts;  // the same where a card reads experts from RAM: in its slots, over the bus
  std::optional<SleepTiming> sleep;
  // Of a decode step of the first number of streams, and of a prompt: empty without a card.
  std::vector<FamilyTime> decode_profile, prefill_profile;
  // What such a decode step takes beside the launches of the profile: drawing, submission and the host's work.
  std::optional<double> between_steps_s;
};

Result<BenchmarkReport> run_benchmark(models::Model& model, const BenchmarkPlan& plan);

// What all threads together can read from memory, in bytes a second: the sum of a buffer of about `bytes`, within 64
// and 256 MiB, so larger than most caches. Best of three.
double measure_bandwidth(int n_threads, uint64_t bytes);

}  // namespace chimere::engine
