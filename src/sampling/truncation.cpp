// truncation.cpp  Selection without sorting the vocabulary.
#include "sampling/truncation.h"

#include <algorithm>
#include <cmath>

#include "sampling/weight.h"

namespace chimere {
namespace {

// Sums of weights are exact, so the result does not depend on the order in which this adds them.
struct Weigh {
  float max;
  float scale;

  double operator()(const Candidate& candidate) const { return weight((candidate.score - max) * scale); }
  double sum(const std::vector<Candidate>& candidates, std::size_t begin, std::size_t end) const {
    double total = 0;
    for (std::size_t i = begin; i < end; ++i) total += (*this)(candidates[i]);
    return total;
  }
};

// Keeps the fewest best candidates that weigh at least `target`: finds the slice of scores where the cut lies by one
// histogram, halves that slice as quickselect does, and sorts only the last few.
void keep_nucleus(std::vector<Candidate>& candidates, double target, const Weigh& weigh) {
  const auto at = [&](std::size_t i) { return candidates.begin() + static_cast<std::ptrdiff_t>(i); };
  std::size_t low = 0, high = candidates.size();
  double before = 0;  // the weight of [0, low), all of it in the nucleus
  if (high > 256) {
    // Four slices to one unit of t; the last takes all that weigh nothing.
    constexpr int n_slices = 100;
    const auto slice = [&](const Candidate& c) {
      return static_cast<int>(std::min(-4.0f * (c.score - weigh.max) * weigh.scale, n_slices - 1.0f));
    };
    double sums[n_slices] = {};
    for (const Candidate& candidate : candidates) sums[slice(candidate)] += weigh(candidate);
    int cut = 0;
    while (cut < n_slices - 1 && before + sums[cut] < target) before += sums[cut++];
    const auto above = std::partition(at(low), at(high), [&](const Candidate& c) { return slice(c) < cut; });
    const auto inside = std::partition(above, at(high), [&](const Candidate& c) { return slice(c) == cut; });
    low = static_cast<std::size_t>(above - candidates.begin());
    high = static_cast<std::size_t>(inside - candidates.begin());
  }
  while (high - low > 32) {
    const std::size_t middle = low + (high - low) / 2;
    std::nth_element(at(low), at(middle), at(high), better);
    const double half = weigh.sum(candidates, low, middle);
    if (before + half >= target) {
      high = middle;
    } else {
      before += half;
      low = middle;
    }
  }
  std::sort(at(low), at(high), better);
  std::size_t keep = low;
  while (keep < high && (keep == 0 || before < target)) before += weigh(candidates[keep++]);
  candidates.resize(keep);
}

// top-p over the whole row: looks at the tokens near the best one first, further down only while they weigh too little.
void nucleus_of_row(const ScoreRow& row, float top_p, const Weigh& weigh, std::vector<Candidate>& out) {
  const double target = static_cast<double>(top_p) * row.mass(weigh.scale).total;
  for (const float depth : {5.0f, 10.0f, -kWeightlessBelow}) {
    row.collect(row.max() - depth / weigh.scale * 1.0001f, out);
    if (depth == -kWeightlessBelow || weigh.sum(out, 0, out.size()) >= target) break;
  }
  keep_nucleus(out, target, weigh);
}

}  // namespace

bool truncates(const SamplingParams& params, const ScoreRow& row) {
  return (params.top_k > 0 && params.top_k < row.n_vocab()) || params.top_p < 1.0f || params.min_p > 0.0f;
}

void truncate(const ScoreRow& row, const SamplingParams& params, float scale, std::vector<Candidate>& out) {
  const Weigh weigh{row.max(), scale};
  if (params.top_k > 0 && params.top_k < row.n_vocab()) {
    row.top_k(params.top_k, out);
    if (params.top_p < 1.0f) {
      keep_nucleus(out, static_cast<double>(params.top_p) * weigh.sum(out, 0, out.size()), weigh);
    }
  } else if (params.top_p < 1.0f) {
    nucleus_of_row(row, params.top_p, weigh, out);
  } else {
    // A little deeper than min-p reaches, because the logarithm and the division round; the filter below is exact.
    row.collect(row.max() + (std::log(params.min_p) - 1e-3f) / scale * 1.0001f, out);
  }
  if (params.min_p > 0.0f) {
    const auto unlikely = [&](const Candidate& c) {
      return exp_nonpositive((c.score - row.max()) * scale) < params.min_p;
    };
    out.erase(std::remove_if(out.begin(), out.end(), unlikely), out.end());
  }
}

}  // namespace chimere
