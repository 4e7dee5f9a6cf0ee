// rank_fusion.h  Several rankings of the same things as one.
//
//   fuse()         sum over rankings of  weight / (kFusionRank + rank of x)      ranks from 1; absent: nothing
//   fuse_scores()  sum over rankings of  weight * score of x                     absent: nothing
//
// Reciprocal ranks where scores have nothing to do with each other. Where the weight was fitted for them, scores tell more:
// how far the first is before the second. Points of BM25 and the cosines of an encoder that was trained beside them add up
// (training/embed/rank.py, which measures what fuse_scores() does).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
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

struct ScoredRanking {
  std::vector<std::pair<int64_t, double>> found;  // id and score, best first
  std::unordered_map<int64_t, double> others;     // of what was found elsewhere, and has a score here all the same
  double weight = 1;
};

// What any of them found; best first, equals in the order in which the rankings name them.
std::vector<Fused> fuse_scores(const std::vector<ScoredRanking>& rankings);

}  // namespace chimere::retrieval
