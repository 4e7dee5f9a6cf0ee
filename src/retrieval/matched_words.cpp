#include "retrieval/matched_words.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "retrieval/search_terms.h"
#include "retrieval/words.h"

namespace chimere::retrieval {
namespace {

constexpr size_t kMaxMatchedTerms = 16, kMaxAskedWords = 64;
constexpr double kLeastRarity = 1e-6;
constexpr int kSpans[] = {6, 12, 24, 48};  // words within which those of the question are counted
constexpr int kNearStep = 4, kFarStep = 8;
constexpr size_t kRarest = 3;
constexpr size_t kMaxQuestionRead = 8 << 10;
constexpr std::string_view kQuestionWords[kQuestionKinds - 1] = {"what", "who", "why", "how", "where", "when", "which"};

struct Place {
  int at = 0;
  size_t term = 0;
};

// The most rarity of different terms within `span` words, and the root of the sum of squares of it at each place.
std::pair<double, double> close_together(const std::vector<Place>& places, const std::vector<double>& rarity,
                                         int span) {
  double best = 0, squares = 0, current = 0;
  size_t first = 0;
  std::vector<int> counts(rarity.size());
  for (const Place& place : places) {
    if (counts[place.term]++ == 0) current += rarity[place.term];
    for (; places[first].at < place.at - span; ++first) {
      const size_t gone = places[first].term;
      if (--counts[gone] == 0) current -= rarity[gone];
    }
    best = std::max(best, current);
    squares += current * current;
  }
  return {best, std::sqrt(std::max(squares, 0.0))};
}

// The rarity of all runs of n words of the question that stand in the text so.
double in_a_row(const MatchQuestion& question, std::span<const MatchedWord> text, size_t n) {
  std::vector<uint64_t> runs;
  for (size_t i = 0; i + n <= text.size(); ++i) {
    uint64_t run = 0;
    bool is_asked = true;
    for (size_t j = 0; j < n && is_asked; ++j) {
      is_asked = text[i + j].asked >= 0;
      run = run << 16 | static_cast<uint16_t>(text[i + j].asked);
    }
    if (is_asked) runs.push_back(run);
  }
  std::sort(runs.begin(), runs.end());
  double sum = 0;
  for (size_t i = 0; i + n <= question.asked.size(); ++i) {
    uint64_t run = 0;
    for (size_t j = 0; j < n; ++j) run = run << 16 | static_cast<uint16_t>(question.asked[i + j]);
    if (!std::binary_search(runs.begin(), runs.end(), run)) continue;
    for (size_t j = 0; j < n; ++j) sum += question.rarity_of[static_cast<size_t>(question.asked[i + j])];
  }
  return sum;
}

// From the rarest on; equals as they stand.
std::vector<size_t> by_rarity(const std::vector<double>& rarity) {
  std::vector<size_t> order(rarity.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rarity[a] > rarity[b]; });
  return order;
}

}  // namespace

double rarity_of_word(double n_texts, double n_with) {
  const double ratio = (n_texts - n_with + 0.5) / (n_with + 0.5);
  return ratio > 1 ? std::max(std::log(ratio), kLeastRarity) : kLeastRarity;
}

Result<MatchQuestion> MatchQuestion::of(std::string_view question, const std::vector<std::string>& terms,
                                        const std::vector<double>& rarity, store::Stemmer& stemmer) {
  CHECK(terms.size() == rarity.size());
  if (question.size() > kMaxQuestionRead) question.remove_prefix(question.size() - kMaxQuestionRead);
  MatchQuestion made;
  const auto number_of = [&made](std::string_view stem) {
    return made.numbers.try_emplace(std::string(stem), static_cast<int32_t>(made.numbers.size())).first->second;
  };
  TRY(stemmer.each(terms_text(question), [&](std::string_view stem) {
    if (made.asked.size() < kMaxAskedWords) made.asked.push_back(number_of(stem));
  }));
  std::vector<size_t> kept = by_rarity(rarity);
  kept.resize(std::min(kept.size(), kMaxMatchedTerms));
  std::sort(kept.begin(), kept.end());
  for (const size_t i : kept) {
    made.terms.push_back(number_of(terms[i]));
    made.rarity.push_back(rarity[i]);
  }
  made.rarity_of.resize(made.numbers.size());
  for (size_t i = 0; i < made.terms.size(); ++i) made.rarity_of[static_cast<size_t>(made.terms[i])] = made.rarity[i];
  made.kind = std::size(kQuestionWords);
  for (const Word& word : words_of(question)) {
    std::string small(word.text);
    for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const auto* found = std::find(std::begin(kQuestionWords), std::end(kQuestionWords), small);
    if (found == std::end(kQuestionWords)) continue;
    made.kind = static_cast<size_t>(found - std::begin(kQuestionWords));
    break;
  }
  return Result<MatchQuestion>{std::move(made)};
}

std::array<float, kWordFeatures> word_features(const MatchQuestion& question, std::span<const MatchedWord> text,
                                               double points) {
  const std::vector<double>& rarity = question.rarity;
  const size_t n_terms = question.terms.size();
  std::vector<std::vector<int>> found(n_terms);
  std::vector<Place> places;
  std::vector<size_t> term_of(question.numbers.size(), n_terms);
  for (size_t i = 0; i < n_terms; ++i) term_of[static_cast<size_t>(question.terms[i])] = i;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t term = text[at].asked < 0 ? n_terms : term_of[static_cast<size_t>(text[at].asked)];
    if (term == n_terms) continue;
    found[term].push_back(static_cast<int>(at));
    places.push_back({static_cast<int>(at), term});
  }
  std::array<float, kWordFeatures> row{};
  size_t n = 0;
  const auto add = [&](double value) { row[n++] = static_cast<float>(value); };
  double all = kLeastRarity, covered = 0, repeated = 0, n_found = 0;
  for (size_t i = 0; i < n_terms; ++i) {
    all += rarity[i];
    if (found[i].empty()) continue;
    covered += rarity[i];
    ++n_found;
    repeated += rarity[i] * std::log1p(static_cast<double>(found[i].size()));
  }
  add(points);
  add(covered);
  add(covered / all);
  add(n_found / static_cast<double>(std::max<size_t>(n_terms, 1)));
  add(std::log(static_cast<double>(text.size()) + 1));
  for (const int span : kSpans) {
    const auto [best, squares] = close_together(places, rarity, span);
    add(best);
    add(best / all);
    add(squares);
  }
  add(in_a_row(question, text, 2));
  add(in_a_row(question, text, 3));
  double near = 0, far = 0;
  for (size_t i = 0; i + 1 < n_terms; ++i) {
    bool is_near = false, is_far = false;
    for (const int a : found[i]) {
      for (const int b : found[i + 1]) {
        is_near = is_near || (b > a && b - a <= kNearStep);
        is_far = is_far || std::abs(b - a) <= kFarStep;
      }
    }
    near += is_near ? rarity[i] + rarity[i + 1] : 0;
    far += is_far ? rarity[i] + rarity[i + 1] : 0;
  }
  add(near);
  add(far);
  const double length = static_cast<double>(std::max<size_t>(text.size(), 1));
  double sum = 0;
  for (const Place& place : places) sum += place.at;
  add(places.empty() ? 1.0 : places[0].at / length);
  add(places.empty() ? 0.5 : sum / static_cast<double>(places.size()) / length);
  const std::vector<size_t> order = by_rarity(rarity);
  for (size_t i = 0; i < kRarest; ++i) add(i < order.size() && !found[order[i]].empty() ? 1 : 0);
  add(repeated);
  return row;
}

}  // namespace chimere::retrieval
