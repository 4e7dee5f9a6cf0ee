#include "retrieval/word_index.h"

#include <algorithm>
#include <cmath>

#include "retrieval/words.h"

namespace chimere::retrieval {
namespace {

// The usual constants of BM25, with less regard to length: a note is short or it is a piece of a long one.
constexpr float kSaturation = 1.2f;
constexpr float kLengthShare = 0.5f;
// As many other texts that have none of the words: with few notes their own counts say nothing about how rare a word
// is.
constexpr float kOtherTexts = 100;

float rarity(size_t n_texts, size_t n_with) {
  const auto with = static_cast<float>(n_with) + 0.5f;
  return std::log(1 + (static_cast<float>(n_texts) + kOtherTexts) / with);
}

}  // namespace

void WordIndex::add(const std::vector<std::string_view>& texts) {
  const auto old = static_cast<std::ptrdiff_t>(postings_.size());
  for (const std::string_view text : texts) {
    const auto number = static_cast<uint32_t>(lengths_.size());
    std::vector<uint64_t> terms;
    for (const Word& word : words_of(text)) terms.push_back(word.term);
    std::sort(terms.begin(), terms.end());
    for (size_t i = 0; i < terms.size(); ++i) {
      if (i > 0 && terms[i] == terms[i - 1]) {
        ++postings_.back().count;
      } else {
        postings_.push_back({terms[i], number, 1});
      }
    }
    lengths_.push_back(static_cast<uint32_t>(terms.size()));
    n_words_ += terms.size();
  }
  const auto before = [](const Posting& a, const Posting& b) {
    return a.term != b.term ? a.term < b.term : a.text < b.text;
  };
  std::sort(postings_.begin() + old, postings_.end(), before);
  std::inplace_merge(postings_.begin(), postings_.begin() + old, postings_.end(), before);
}

std::vector<WordIndex::Match> WordIndex::best(const std::vector<Asked>& question, float least, size_t k) const {
  std::vector<Match> all(size());
  const float mean = std::max(1.0f, static_cast<float>(n_words_) / static_cast<float>(std::max<size_t>(1, size())));
  float asked = 0;
  for (const Asked& word : question) {
    const auto [first, last] = std::equal_range(postings_.begin(), postings_.end(), Posting{word.term, 0, 0},
                                                [](const Posting& a, const Posting& b) { return a.term < b.term; });
    const float weight = word.weight * rarity(size(), static_cast<size_t>(last - first));
    asked += weight;
    for (auto posting = first; posting != last; ++posting) {
      const auto count = static_cast<float>(posting->count);
      const float length = static_cast<float>(lengths_[posting->text]) / mean;
      Match& match = all[posting->text];
      match.covered += weight;
      match.rank +=
          weight * count * (kSaturation + 1) / (count + kSaturation * (1 - kLengthShare + kLengthShare * length));
    }
  }
  std::vector<Match> found;
  for (uint32_t i = 0; i < all.size(); ++i) {
    if (all[i].covered <= 0 || all[i].covered < least * asked) continue;
    found.push_back({i, all[i].covered / asked, all[i].rank});
  }
  const size_t n = std::min(k, found.size());
  // The newest of equals: it was taught last.
  std::partial_sort(
      found.begin(), found.begin() + static_cast<std::ptrdiff_t>(n), found.end(),
      [](const Match& a, const Match& b) { return a.rank != b.rank ? a.rank > b.rank : a.text > b.text; });
  found.resize(n);
  return found;
}

}  // namespace chimere::retrieval
