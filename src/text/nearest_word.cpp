#include "text/nearest_word.h"

#include <algorithm>

namespace chimere {

int letters_between(std::string_view a, std::string_view b) {
  // rows[i][j]: between the first i letters of a and the first j of b; only the last two rows are looked at again.
  std::vector<std::vector<int>> rows(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) rows[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const int change = a[i - 1] == b[j - 1] ? 0 : 1;
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // nobody misspells more than that
  std::string best;
  int least = 0;
  if (word.size() > kLongest) return best;
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongest) continue;
    const int distance = letters_between(word, candidate);
    const int allowed = std::max<int>(1, static_cast<int>(std::max(word.size(), candidate.size())) / 3);
    if (distance <= allowed && (best.empty() || distance < least)) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

}  // namespace chimere
