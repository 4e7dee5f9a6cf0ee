// fusion.cpp  Reciprocal rank fusion by address.
#include "web/fusion.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace chimere::web {
namespace {

// Of the paper that introduced it (Cormack, Clarke, Büttcher 2009): large, so that no single first place decides.
constexpr double kRankOffset = 60;

struct Fused {
  Source source;
  std::map<std::pair<size_t, std::string>, int> best;  // of each list (query, engine) the best position
};

}  // namespace

std::vector<Source> fuse_hits(const std::vector<SearchHits>& answers, size_t max_sources) {
  std::vector<Fused> fused;
  std::unordered_map<std::string, size_t> index;
  for (size_t query = 0; query < answers.size(); ++query) {
    for (const SearchHit& hit : answers[query].hits) {
      const auto url = parse_url(hit.url);
      if (!url) continue;
      const auto [at, is_new] = index.emplace(url_key(*url), fused.size());
      if (is_new) fused.push_back({{hit.title, hit.url, hit.snippet, 0}, {}});
      Fused& page = fused[at->second];
      if (hit.snippet.as_data().size() > page.source.snippet.as_data().size()) page.source.snippet = hit.snippet;
      for (const EngineRank& rank : hit.ranks) {
        const auto [place, is_first] = page.best.emplace(std::make_pair(query, rank.engine), rank.position);
        if (!is_first) place->second = std::min(place->second, rank.position);
      }
    }
  }
  for (Fused& page : fused) {
    for (const auto& [list, position] : page.best) page.source.score += 1 / (kRankOffset + position);
  }
  std::stable_sort(fused.begin(), fused.end(),
                   [](const Fused& a, const Fused& b) { return a.source.score > b.source.score; });
  if (fused.size() > max_sources) fused.resize(max_sources);
  std::vector<Source> sources;
  const double best = fused.empty() ? 1 : fused[0].source.score;
  for (Fused& page : fused) {
    page.source.score /= best;
    sources.push_back(std::move(page.source));
  }
  return sources;
}

}  // namespace chimere::web
