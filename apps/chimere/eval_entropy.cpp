// eval_entropy.cpp  Whether the model's doubt at the beginning of an answer says when to think: every task is answered
// directly and with a thought, and for every threshold it is counted what the choice between the two would have given.
// The threshold is fitted on tasks of one seed and judged on those of another.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "eval_house.h"
#include "eval_stages.h"

namespace chimere::apps {
namespace {

constexpr uint32_t kFitSeed = 41, kTestSeed = 42;
constexpr std::array kKinds = {TaskKind::short_sums, TaskKind::sums, TaskKind::problems, TaskKind::facts,
                               TaskKind::greetings};
constexpr std::array<size_t, 4> kProbes = {1, 2, 4, 8};  // tokens that the doubt is the mean entropy of
// In nats; above the last one nothing is thought about.
constexpr std::array<double, 15> kThresholds = {0,   0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3,
                                                0.4, 0.5,  0.7,  1,    1.5, 2,    100};
// Of two thresholds within this of each other the one that needs fewer tokens is better.
constexpr double kAlike = 0.005;
// A longer probe keeps the reader waiting: it must need this much less.
constexpr double kWorthWaiting = 0.98;

struct Answered {
  TaskKind kind = TaskKind::sums;
  std::vector<float> entropies;  // of the direct answer's tokens
  bool direct_right = false, thought_right = false;
  int64_t direct_tokens = 0, thought_tokens = 0;
  double direct_ms = 0, thought_ms = 0;

  double doubt(size_t probe) const {
    const size_t n = std::min(probe, entropies.size());
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += static_cast<double>(entropies[i]);
    return n == 0 ? 0 : sum / static_cast<double>(n);
  }
};

Result<std::vector<Answered>> answer_all(EvalHouse& house, uint32_t seed, int n) {
  std::vector<Answered> all;
  for (const TaskKind kind : kKinds) {
    for (const EvalTask& task : made_tasks(kind, seed, n)) {
      orchestrator::ChatRequest probed = asked(house, task.text, false);
      probed.token_stats = true;
      TRY_ASSIGN(const EvalAnswer direct, answer_of(house, std::move(probed), std::nullopt));
      TRY_ASSIGN(const EvalAnswer thought, answer_of(house, asked(house, task.text, true), std::nullopt));
      Answered answered;
      answered.kind = kind;
      for (const orchestrator::TokenInfo& token : direct.tokens) answered.entropies.push_back(token.entropy);
      answered.direct_right = is_right(direct.content, task);
      answered.thought_right = is_right(thought.content, task);
      answered.direct_tokens = direct.last.usage.completion_tokens;
      answered.thought_tokens = thought.last.usage.completion_tokens;
      answered.direct_ms = direct.ms;
      answered.thought_ms = thought.ms;
      all.push_back(std::move(answered));
    }
  }
  return Result<std::vector<Answered>>{std::move(all)};
}

// What the choice would have given. A probe that leads to a thought is paid for; one that does not is the answer's
// beginning.
EvalTally chosen(const std::vector<Answered>& all, size_t probe, double threshold) {
  EvalTally tally;
  for (const Answered& a : all) {
    const bool thinks = a.doubt(probe) >= threshold;
    // A threshold of 0 needs no probe.
    const auto paid = static_cast<int64_t>(threshold > 0 ? std::min(probe, a.entropies.size()) : 0);
    const double share = a.direct_tokens > 0 ? static_cast<double>(paid) / static_cast<double>(a.direct_tokens) : 0;
    tally.add(thinks ? a.thought_right : a.direct_right, thinks ? a.thought_tokens + paid : a.direct_tokens,
              thinks ? a.thought_ms + share * a.direct_ms : a.direct_ms);
  }
  return tally;
}

struct Rule {
  size_t probe = kProbes[0];
  double threshold = 0;
};

double accuracy_of(const EvalTally& tally) {
  const auto n_right =
      std::count_if(tally.answers.begin(), tally.answers.end(), [](const auto& a) { return a.chosen == 1; });
  return static_cast<double>(n_right) / static_cast<double>(tally.answers.size());
}

Rule fitted(const std::vector<Answered>& all) {
  Rule best;
  double best_accuracy = -1;
  int64_t best_tokens = 0;
  for (const size_t probe : kProbes) {
    for (const double threshold : kThresholds) {
      const EvalTally tally = chosen(all, probe, threshold);
      const double accuracy = accuracy_of(tally);
      const double enough = probe > best.probe ? kWorthWaiting : 1;
      const bool is_alike = accuracy > best_accuracy - kAlike &&
                            static_cast<double>(tally.n_tokens) < enough * static_cast<double>(best_tokens);
      if (accuracy <= best_accuracy + kAlike && !is_alike) continue;
      best = {probe, threshold};
      best_accuracy = accuracy;
      best_tokens = tally.n_tokens;
    }
  }
  return best;
}

std::vector<Answered> of_kind(const std::vector<Answered>& all, TaskKind kind) {
  std::vector<Answered> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), [&](const Answered& a) { return a.kind == kind; });
  return some;
}

std::string written(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

void print_row(const EvalTally& tally, const std::string& name) {
  tally.print_row(name);
  std::printf("\n");
}

// Runs as they are by default, and with the weighing switched off.
Status print_runs(EvalHouse& house, int n) {
  std::printf("\n| `odo`, seed %u | right (95 %%) | tokens | ms |\n|---|---|---|---|\n", kTestSeed);
  std::array<EvalTally, 2> all;
  for (const TaskKind kind : kKinds) {
    for (const bool weighs : {false, true}) {
      EvalTally tally;
      for (const EvalTask& task : made_tasks(kind, kTestSeed, n)) {
        odo::Ask ask;
        ask.model = "odo";
        if (!weighs) ask.entropy = false;
        TRY_ASSIGN(const EvalAnswer answer, answer_of(house, asked(house, task.text, std::nullopt), std::move(ask)));
        const bool right = is_right(answer.content, task);
        tally.add(right, answer.last.usage.completion_tokens, answer.ms);
        all[weighs].add(right, answer.last.usage.completion_tokens, answer.ms);
      }
      print_row(tally, std::string(task_name(kind)) + (weighs ? ", thinks in doubt" : ", thinks always"));
    }
  }
  print_row(all[false], "all, thinks always");
  print_row(all[true], "all, thinks in doubt");
  return Ok{};
}

}  // namespace

Status eval_entropy(const EvalOptions& o) {
  TRY_ASSIGN(const auto house, open_house(o));
  TRY_ASSIGN(const std::vector<Answered> fit, answer_all(*house, kFitSeed, o.n));
  TRY_ASSIGN(const std::vector<Answered> test, answer_all(*house, kTestSeed, o.n));
  const Rule rule = fitted(fit);
  std::printf("fitted on seed %u: mean entropy of %zu tokens, threshold %g nats\n\n", kFitSeed, rule.probe,
              rule.threshold);
  std::printf("| %zu tasks of seed %u | right (95 %%) | tokens | ms |\n|---|---|---|---|\n", test.size(), kTestSeed);
  print_row(chosen(test, rule.probe, kThresholds.back()), "never thinks");
  print_row(chosen(test, rule.probe, 0), "always thinks");
  print_row(chosen(test, rule.probe, rule.threshold), "thinks in doubt, as fitted");
  for (const double threshold : kThresholds) {
    if (threshold == 0 || threshold == kThresholds.back()) continue;
    print_row(chosen(test, rule.probe, threshold), "thinks from " + written(threshold) + " nats on");
  }
  std::printf("\n| by kind | right (95 %%) | tokens | ms |\n|---|---|---|---|\n");
  for (const TaskKind kind : kKinds) {
    const std::vector<Answered> some = of_kind(test, kind);
    print_row(chosen(some, rule.probe, kThresholds.back()), std::string(task_name(kind)) + ", never");
    print_row(chosen(some, rule.probe, 0), std::string(task_name(kind)) + ", always");
    print_row(chosen(some, rule.probe, rule.threshold), std::string(task_name(kind)) + ", in doubt");
  }
  return print_runs(*house, o.n);
}

}  // namespace chimere::apps
