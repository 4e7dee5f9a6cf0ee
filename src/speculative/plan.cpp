#include "speculative/plan.h"

#include <algorithm>

namespace chimere::speculative {
namespace {

// A gain below this is within what the estimates are off by: what a draft costs beside its step, such as caches that its
// copy of the state takes, is not timed.
constexpr double kWorthwhile = 1.1;
// The chance of a guess of a kind that was always right, as far as what a request tries can tell (Acceptance).
constexpr double kSurest = 0.99;

// The passes that answers with the same costs share.
class SharedPasses {
 public:
  explicit SharedPasses(const DraftPasses* passes) : passes_(passes) {}

  // What one answer more costs that makes guess `depth`, and so all before it.
  double add(const StepCosts* costs, size_t depth) {
    auto at = std::find_if(makers_.begin(), makers_.end(), [&](const Maker& m) { return m.costs == costs; });
    if (at == makers_.end()) at = makers_.insert(at, {costs, {}});
    if (at->n_answers.size() < depth) at->n_answers.push_back(0);
    int& n = at->n_answers[depth - 1];
    ++n;
    return seconds(*costs, depth, n) - seconds(*costs, depth, n - 1);
  }

 private:
  struct Maker {
    const StepCosts* costs;
    std::vector<int> n_answers;  // [depth - 1]: that make this guess
  };

  double seconds(const StepCosts& costs, size_t depth, int n_answers) const {
    if (n_answers == 0) return 0;
    if (&costs == passes_->of_blocks) return depth == 1 ? costs.step(n_answers) : n_answers * passes_->block_guess;
    const double back = depth == 2 ? n_answers * (costs.open() + costs.back()) : 0.0;
    return costs.step(depth == 1 ? 2 * n_answers : n_answers) + back;
  }

  const DraftPasses* passes_;
  std::vector<Maker> makers_;
};

}  // namespace

std::vector<int> plan_depths(const StepCosts& costs, int n_rows, int most_rows, std::span<const Chances> chances,
                             const DraftPasses* passes, double* gain) {
  std::vector<int> depths(chances.size(), 0), best = depths;
  // The chance that the next row of each answer counts: that all guesses before it are taken.
  std::vector<double> next(chances.size(), 0.0), last(chances.size(), 1.0);
  for (size_t i = 0; i < chances.size(); ++i) next[i] = chances[i].empty() ? 0.0 : chances[i][0];
  double tokens = static_cast<double>(std::max<size_t>(chances.size(), 1));
  double drafts = 0;  // opening them, going back, and passes that make their guesses
  SharedPasses shared(passes);
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
    if (passes && passes->costs[at]) drafts += shared.add(passes->costs[at], depth);
    next[at] = depth < chances[at].size() ? next[at] * chances[at][depth] : 0.0;
    const double speed = tokens / (costs.step(rows) + drafts);
    if (speed <= most) continue;
    most = speed;
    best = depths;
    if (gain) *gain = speed / speed_without;
  }
  return best;
}

bool could_pay(const StepCosts& costs, int n_answers, int n_rows, int most_rows, int most_each) {
  const int most = std::min(n_answers * most_each, most_rows - n_rows);
  if (most <= 0) return false;
  const auto speed = [&](int n_guesses) {
    // Shared out evenly they are the likeliest to count; few answers with many guesses have the fewest drafts to open.
    double tokens = n_answers, next = kSurest;
    int left = n_guesses;
    for (; left > n_answers; left -= n_answers, next *= kSurest) tokens += n_answers * next;
    tokens += left * next;
    const double n_drafts = std::max(1.0, static_cast<double>(n_guesses) / most_each);
    return tokens / (costs.step(n_rows + n_guesses) + n_drafts * costs.open());
  };
  // Between places where a row's cost or its chance changes the speed only rises or only falls.
  double best = std::max({speed(1), speed(std::min(most, most_each)), speed(most)});
  for (int n = n_answers; n < most; n += n_answers) best = std::max(best, speed(n));
  for (const StepCosts::Point& point : costs.points()) {
    if (point.rows > n_rows && point.rows - n_rows < most) best = std::max(best, speed(point.rows - n_rows));
  }
  return best > kWorthwhile * n_answers / costs.step(n_rows);
}

}  // namespace chimere::speculative
