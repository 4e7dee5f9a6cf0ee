// rank_fusion.h  Several rankings of the same things as one: reciprocal rank fusion.
//
//   score(x) = sum over rankings of  weight / (kFusionRank + rank of x)      ranks from 1; absent: nothing
//
// Ranks are compared and scores are not, as those of words and those of vectors have nothing to do with each other.
#pragma once

#include <cstdint>
#include <vector>

namespace chimere::retrieval {

inline constexpr double kFusionRank = 60;  // how little the first places differ; the customary value

struct Ranking {
  std::vector<int64_t> ids;  // best first
  double weight = 1;
};

struct Fused {
  int64_t id = 0;
  double score = 0;
  std::vector<int> ranks;  // in each ranking, from 1; 0: it is not in it
};

// Best first; equals in the order in which the rankings name them.
std::vector<Fused> fuse(const std::vector<Ranking>& rankings, double rank_constant = kFusionRank);

}  // namespace chimere::retrieval
