#include "retrieval/rank_fusion.h"

#include <algorithm>
#include <unordered_map>

namespace chimere::retrieval {

std::vector<Fused> fuse(const std::vector<Ranking>& rankings, double rank_constant) {
  std::vector<Fused> fused;
  std::unordered_map<int64_t, size_t> places;
  for (size_t r = 0; r < rankings.size(); ++r) {
    for (size_t i = 0; i < rankings[r].ids.size(); ++i) {
      const auto [place, is_new] = places.try_emplace(rankings[r].ids[i], fused.size());
      if (is_new) fused.push_back({rankings[r].ids[i], 0, std::vector<int>(rankings.size())});
      Fused& one = fused[place->second];
      if (one.ranks[r] > 0) continue;  // named twice: the better place counts
      one.ranks[r] = static_cast<int>(i + 1);
      one.score += rankings[r].weight / (rank_constant + static_cast<double>(i + 1));
    }
  }
  std::stable_sort(fused.begin(), fused.end(), [](const Fused& a, const Fused& b) { return a.score > b.score; });
  return fused;
}

std::vector<Fused> fuse_scores(const std::vector<ScoredRanking>& rankings) {
  std::vector<Fused> fused;
  std::unordered_map<int64_t, size_t> places;
  for (size_t r = 0; r < rankings.size(); ++r) {
    for (size_t i = 0; i < rankings[r].found.size(); ++i) {
      const auto [id, score] = rankings[r].found[i];
      const auto [place, is_new] = places.try_emplace(id, fused.size());
      if (is_new) fused.push_back({id, 0, std::vector<int>(rankings.size())});
      Fused& one = fused[place->second];
      if (one.ranks[r] > 0) continue;
      one.ranks[r] = static_cast<int>(i + 1);
      one.score += rankings[r].weight * score;
    }
  }
  for (Fused& one : fused) {
    for (size_t r = 0; r < rankings.size(); ++r) {
      if (one.ranks[r] > 0) continue;
      const auto other = rankings[r].others.find(one.id);
      if (other != rankings[r].others.end()) one.score += rankings[r].weight * other->second;
    }
  }
  std::stable_sort(fused.begin(), fused.end(), [](const Fused& a, const Fused& b) { return a.score > b.score; });
  return fused;
}

}  // namespace chimere::retrieval
