#include "retrieval/shared_ngrams.h"

#include <algorithm>
#include <map>

namespace chimere::retrieval {

std::vector<SharedNgram> shared_ngrams(std::span<const int32_t> query, std::span<const int32_t> passage, int max_order,
                                       size_t at_most) {
  std::multimap<int32_t, size_t> places;  // of the query's tokens
  for (size_t i = 0; i < query.size(); ++i) places.emplace(query[i], i);
  std::vector<SharedNgram> found;
  size_t covered = 0;  // passage positions before it belong to an n-gram already
  for (size_t at = 0; at + 1 < passage.size(); ++at) {
    int longest = 0;
    const auto [begin, end] = places.equal_range(passage[at]);
    for (auto place = begin; place != end; ++place) {
      int n = 0;
      while (n < max_order && at + static_cast<size_t>(n) < passage.size() &&
             place->second + static_cast<size_t>(n) < query.size() &&
             passage[at + static_cast<size_t>(n)] == query[place->second + static_cast<size_t>(n)]) {
        ++n;
      }
      longest = std::max(longest, n);
    }
    const size_t after = at + static_cast<size_t>(longest);
    if (longest < 2 || after <= covered) continue;
    covered = after;
    found.push_back({static_cast<int>(at), longest, after < passage.size() ? passage[after] : -1});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.order > b.order; });
  if (found.size() > at_most) found.resize(at_most);
  return found;
}

}  // namespace chimere::retrieval
