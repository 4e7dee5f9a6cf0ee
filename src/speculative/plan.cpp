#include "speculative/plan.h"

#include <algorithm>

namespace chimere::speculative {
namespace {

// A gain below this is within what the estimates are off by: what a draft costs beside its step, such as caches that its
// copy of the state takes, is not timed.
constexpr double kWorthwhile = 1.1;

// What the passes for so many answers with at least `depth` guesses cost, of those that make this guess.
double pass_seconds(const StepCosts& costs, size_t depth, int n_answers) {
  if (n_answers == 0) return 0;
  return costs.step(depth == 1 ? 2 * n_answers : n_answers);
}

}  // namespace

std::vector<int> plan_depths(const StepCosts& costs, int n_rows, int most_rows, std::span<const Chances> chances,
                             const DraftPasses* passes, double* gain) {
  std::vector<int> depths(chances.size(), 0), best = depths;
  // The chance that the next row of each answer counts: that all guesses before it are taken.
  std::vector<double> next(chances.size(), 0.0), last(chances.size(), 1.0);
  for (size_t i = 0; i < chances.size(); ++i) next[i] = chances[i].empty() ? 0.0 : chances[i][0];
  double tokens = static_cast<double>(std::max<size_t>(chances.size(), 1));
  double drafts = 0;                // opening them, going back, and passes that make their guesses
  std::vector<int> n_passing = {};  // [depth - 1]: answers of which the pass makes this guess
  const double speed_without = tokens / costs.step(n_rows);
  double most = kWorthwhile * speed_without;
  if (gain) *gain = 1;
  // Along one answer chances only fall, so the rows with the best chances are always the first of their answers.
  for (int rows = n_rows + 1; rows <= most_rows; ++rows) {
    const auto at = static_cast<size_t>(std::max_element(next.begin(), next.end()) - next.begin());
    if (at >= next.size() || next[at] <= 0) break;
    if (depths[at] == 0) drafts += costs.open();
    tokens += next[at];
    drafts += (last[at] - next[at]) * costs.back();  // it is a failure that ends it here
    last[at] = next[at];
    ++depths[at];
    const auto depth = static_cast<size_t>(depths[at]);
    if (passes && passes->makes_them[at]) {
      if (n_passing.size() < depth) n_passing.push_back(0);
      int& n = n_passing[depth - 1];
      drafts += pass_seconds(passes->costs, depth, n + 1) - pass_seconds(passes->costs, depth, n);
      ++n;
    }
    next[at] = depth < chances[at].size() ? next[at] * chances[at][depth] : 0.0;
    const double speed = tokens / (costs.step(rows) + drafts);
    if (speed <= most) continue;
    most = speed;
    best = depths;
    if (gain) *gain = speed / speed_without;
  }
  return best;
}

}  // namespace chimere::speculative
