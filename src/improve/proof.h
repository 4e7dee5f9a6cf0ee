// proof.h  Whether a candidate is better than what is in use: on examples it was not made from, with a bound and not a
// mean, and after the number of tries was counted.
//
//   split      a conversation is held out by its hash: nothing is ever made from it
//   gain       differences of pairs (candidate - in use), one a conversation, without those that are as they were;
//              interval by the studentised bootstrap
//   attempts   the k-th try of one kind for one owner has alpha * 6 / (pi^2 k^2): all tries together err as often as
//              one would, however many there are
//   guards     general ability: the lower bound of each difference must lie above -margin
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chimere::improve {

struct ProofRules {
  double alpha = 0.05;  // of all tries of one kind for one owner together
  int resamples = 10'000;
  uint64_t seed = 1;
  size_t min_examples = 8;       // conversations; with fewer nothing is proven
  double guard_margin = 0.0099;  // nats a token: 1 % of perplexity
  double ending_margin = 0.1;    // of the answers that come to an end by themselves
  double telling_margin = 0.1;   // of what answers are to tell
};

// Whether examples of this conversation are kept to prove with.
bool is_held_out(std::string_view owner, std::string_view conversation);
inline constexpr uint64_t kHeldOutPercent = 30;

struct Gain {
  size_t n = 0;
  double mean = 0;
  double low = 0, high = 0;  // of the mean; both 0 where there are too few
};

// The two-sided interval that holds the mean with 1 - alpha. Of fewer than two differences there is none.
Gain paired_gain(std::span<const double> differences, double alpha, int resamples, uint64_t seed);

// What the `attempt`-th try (from 1) may spend of `alpha`.
double alpha_of_attempt(double alpha, int attempt);

// Differences of one group (a conversation, say) become their mean: they are not independent of each other.
struct Difference {
  std::string group;
  double value = 0;
};
std::vector<double> grouped(std::span<const Difference> differences);
// Those that are not exactly zero, where there are `fewest` of them; else all.
std::vector<double> changed(std::vector<double> values, size_t fewest);

struct Guard {
  std::string name;
  double margin = 0;
  Gain gain;  // negative: worse
  bool holds = false;
};

// What a guard looks at: differences of pairs, and how far they may fall.
struct GuardFigures {
  std::string name;
  std::vector<double> differences;
  double margin = 0.0099;  // nats a token: 1 % of perplexity
};

struct Verdict {
  Gain gain;
  double alpha = 0;  // spent on it
  int attempt = 1;
  std::vector<Guard> guards;
  bool is_proven = false;
  std::string reason;  // for people: why, or why not
};

Verdict judge(std::span<const Difference> differences, const std::vector<GuardFigures>& guards, int attempt,
              const ProofRules& rules);

}  // namespace chimere::improve
