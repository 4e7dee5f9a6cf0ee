#include "improve/proof.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numbers>
#include <utility>

#include "base/hash.h"
#include "base/philox.h"

namespace chimere::improve {
namespace {

struct Moments {
  double mean = 0;
  double error = 0;  // standard error of the mean
};

Moments moments_of(std::span<const double> values) {
  Moments m;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) m.mean += value / n;
  double squares = 0;
  for (const double value : values) squares += (value - m.mean) * (value - m.mean);
  m.error = std::sqrt(squares / (n - 1) / n);
  return m;
}

double quantile(const std::vector<double>& sorted, double at) {
  const double place = at * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

std::string figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.4f", value);
  return text;
}

}  // namespace

bool is_held_out(std::string_view owner, std::string_view conversation) {
  return hash64(conversation, hash64(owner, 0x70726f6f66)) % 100 < kHeldOutPercent;
}

double alpha_of_attempt(double alpha, int attempt) {
  const double k = std::max(1, attempt);
  return alpha * 6 / (std::numbers::pi * std::numbers::pi * k * k);
}

// t* = (mean* - mean) / error*: its quantiles, and not those of the mean itself, make an interval that holds with few
// and with skewed differences. A resample without spread says nothing about t and is drawn as an infinite one, so that
// few different values widen the interval.
Gain paired_gain(std::span<const double> differences, double alpha, int resamples, uint64_t seed) {
  Gain gain;
  gain.n = differences.size();
  if (gain.n < 2) return gain;
  const Moments all = moments_of(differences);
  gain.mean = gain.low = gain.high = all.mean;
  if (!(all.error > 0)) return gain;
  std::vector<double> ts, drawn(gain.n);
  ts.reserve(static_cast<size_t>(resamples));
  for (int r = 0; r < resamples; ++r) {
    for (size_t i = 0; i < gain.n; i += 4) {
      const PhiloxWords words = philox(seed, static_cast<uint64_t>(r), i / 4);
      for (size_t j = 0; j < 4 && i + j < gain.n; ++j) {
        drawn[i + j] = differences[(uint64_t{words[j]} * gain.n) >> 32];
      }
    }
    const Moments m = moments_of(drawn);
    const double away = m.mean - all.mean;
    constexpr double kFar = 1e6;
    ts.push_back(m.error > 0 ? away / m.error : away == 0 ? 0 : std::copysign(kFar, away));
  }
  std::sort(ts.begin(), ts.end());
  gain.low = all.mean - quantile(ts, 1 - alpha / 2) * all.error;
  gain.high = all.mean - quantile(ts, alpha / 2) * all.error;
  return gain;
}

std::vector<double> grouped(std::span<const Difference> differences) {
  std::map<std::string, std::pair<double, size_t>> groups;
  for (const Difference& difference : differences) {
    auto& [sum, n] = groups[difference.group];
    sum += difference.value;
    ++n;
  }
  std::vector<double> means;
  for (const auto& [name, group] : groups) means.push_back(group.first / static_cast<double>(group.second));
  return means;
}

// A conversation that is exactly as it was says nothing of whether the others are better; many of them leave the bootstrap
// without spread.
std::vector<double> changed(std::vector<double> values, size_t fewest) {
  const auto n =
      static_cast<size_t>(std::count_if(values.begin(), values.end(), [](double value) { return value != 0; }));
  if (n >= fewest) std::erase(values, 0.0);
  return values;
}

Verdict judge(std::span<const Difference> differences, const std::vector<GuardFigures>& guards, int attempt,
              const ProofRules& rules) {
  Verdict verdict;
  verdict.attempt = attempt;
  verdict.alpha = alpha_of_attempt(rules.alpha, attempt);
  const std::vector<double> values = changed(grouped(differences), rules.min_examples);
  verdict.gain = paired_gain(values, verdict.alpha, rules.resamples, rules.seed);
  const Guard* broken = nullptr;
  for (const GuardFigures& figures : guards) {
    Guard guard{figures.name, figures.margin,
                paired_gain(figures.differences, rules.alpha, rules.resamples, rules.seed), false};
    guard.holds = guard.gain.n >= 2 && guard.gain.low > -guard.margin;
    verdict.guards.push_back(std::move(guard));
  }
  for (const Guard& guard : verdict.guards) {
    if (!guard.holds && !broken) broken = &guard;
  }
  if (values.size() < rules.min_examples) {
    verdict.reason = "too little is held out to prove anything: expected " + std::to_string(rules.min_examples) +
                     " conversations, found " + std::to_string(values.size());
  } else if (!(verdict.gain.low > 0)) {
    verdict.reason = "the gain is not proven: its lower bound is " + figure(verdict.gain.low);
  } else if (verdict.guards.empty()) {
    verdict.reason = "nothing guards general ability";
  } else if (broken && broken->gain.n < 2) {
    verdict.reason = broken->name + ": expected questions that guard them, found " + std::to_string(broken->gain.n);
  } else if (broken) {
    verdict.reason =
        broken->name + " may fall by " + figure(-broken->gain.low) + ", more than " + figure(broken->margin);
  } else {
    verdict.is_proven = true;
    verdict.reason = "the lower bound of the gain is " + figure(verdict.gain.low) + ", and every guard holds";
  }
  return verdict;
}

}  // namespace chimere::improve
