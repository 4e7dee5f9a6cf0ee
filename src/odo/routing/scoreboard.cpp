#include "odo/routing/scoreboard.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/hash.h"

namespace chimere::odo {
namespace {

using Confusion = std::vector<std::vector<int>>;

std::vector<double> f1_of(const Confusion& confusion, std::vector<bool>& counts) {
  const size_t n = confusion.size();
  std::vector<double> f1(n, 0.0);
  counts.assign(n, false);
  for (size_t route = 0; route < n; ++route) {
    int expected = 0, chosen = 0;
    for (size_t other = 0; other < n; ++other) {
      expected += confusion[route][other];
      chosen += confusion[other][route];
    }
    counts[route] = expected + chosen > 0;
    if (counts[route]) f1[route] = 2.0 * confusion[route][route] / (expected + chosen);
  }
  return f1;
}

std::pair<double, double> accuracy_and_macro(const Confusion& confusion) {
  int right = 0, all = 0, n_counted = 0;
  double sum = 0;
  std::vector<bool> counts;
  const std::vector<double> f1 = f1_of(confusion, counts);
  for (size_t route = 0; route < confusion.size(); ++route) {
    right += confusion[route][route];
    for (const int n : confusion[route]) all += n;
    n_counted += counts[route];
    sum += f1[route];
  }
  return {static_cast<double>(right) / all, sum / n_counted};
}

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
}

double calibration_error_of(const std::vector<JudgedChoice>& choices) {
  struct Tenth {
    int n = 0, right = 0;
    double confidence = 0;
  };
  std::array<Tenth, 10> tenths;
  for (const JudgedChoice& c : choices) {
    Tenth& tenth = tenths[static_cast<size_t>(std::clamp(c.confidence * 10, 0.0, 9.0))];
    ++tenth.n;
    tenth.right += c.chosen == c.expected;
    tenth.confidence += c.confidence;
  }
  double sum = 0;
  for (const Tenth& t : tenths) sum += std::abs(t.confidence - t.right);
  return sum / static_cast<double>(choices.size());
}

}  // namespace

Scoreboard score_choices(const std::vector<JudgedChoice>& choices, size_t n_routes, int n_samples) {
  Scoreboard board;
  const Confusion none(n_routes, std::vector<int>(n_routes, 0));
  board.confusion = none;
  std::vector<double> ms;
  for (const JudgedChoice& c : choices) {
    ++board.confusion[c.expected][c.chosen];
    ms.push_back(c.ms);
  }
  std::vector<bool> counts;
  board.f1 = f1_of(board.confusion, counts);
  std::tie(board.accuracy.value, board.macro_f1.value) = accuracy_and_macro(board.confusion);
  std::vector<double> accuracies, macros;
  for (int sample = 0; sample < n_samples; ++sample) {
    Confusion drawn = none;
    for (size_t i = 0; i < choices.size(); ++i) {
      const uint64_t number = hash_mix((static_cast<uint64_t>(sample) << 32) + i + 1);
      const JudgedChoice& c = choices[number % choices.size()];
      ++drawn[c.expected][c.chosen];
    }
    const auto [accuracy, macro] = accuracy_and_macro(drawn);
    accuracies.push_back(accuracy);
    macros.push_back(macro);
  }
  board.accuracy.low = quantile(accuracies, 0.025);
  board.accuracy.high = quantile(accuracies, 0.975);
  board.macro_f1.low = quantile(macros, 0.025);
  board.macro_f1.high = quantile(macros, 0.975);
  board.calibration_error = calibration_error_of(choices);
  board.median_ms = quantile(ms, 0.5);
  board.p99_ms = quantile(ms, 0.99);
  return board;
}

}  // namespace chimere::odo
