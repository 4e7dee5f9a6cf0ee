// matched_words.h  What the words of a text say of how well it answers a question: how rare those are that it has, how close
// together they stand, and in what order. training/embed/matching.py has the same, and learns what they weigh.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "store/stemmer.h"

namespace chimere::retrieval {

inline constexpr size_t kWordFeatures = 27;
inline constexpr size_t kQuestionKinds = 8;  // by its first question word: "what", "who", ..., none

// A word of a text.
struct MatchedWord {
  int32_t asked = -1;   // which of the question's stems it is
  int32_t vector = -1;  // its row in a table of vectors
};

// A question as it is compared. Stems are numbered as they come.
struct MatchQuestion {
  std::unordered_map<std::string, int32_t> numbers;  // of its stems
  std::vector<int32_t> asked;                        // all of its words, at most 64
  std::vector<int32_t> terms;                        // those that tell something, once each, at most 16: the rarest
  std::vector<double> rarity;                        // of the terms
  std::vector<double> rarity_of;                     // by number; of words that are no terms 0
  size_t kind = 0;

  // REQUIRES: rarity has a value for each of `terms`, stems that are given once each.
  static Result<MatchQuestion> of(std::string_view question, const std::vector<std::string>& terms,
                                  const std::vector<double>& rarity, store::Stemmer& stemmer);
};

// What BM25 takes a word for that `n_with` of `n_texts` have.
double rarity_of_word(double n_texts, double n_with);

// `points`: what BM25 gives the text.
std::array<float, kWordFeatures> word_features(const MatchQuestion& question, std::span<const MatchedWord> text,
                                               double points);

}  // namespace chimere::retrieval
