// matcher.h  Tells, with the question at hand, which of a few texts answers it.
//
// What a search finds it finds by numbers that were made before the question was known. The matcher reads the best of it
// again: what the words of each text say (matched_words.h), how near they are to the question's by a small table of vectors, a
// window at a time, and what each text has before the others; a small net weighs that. Trained by training/train_matcher.py.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"
#include "retrieval/matched_words.h"

namespace chimere::retrieval {

// Used from any thread.
class Matcher {
 public:
  static Result<Matcher> open(const std::string& path);
  static Result<Matcher> of(const gguf::File& file);

  // The row of a stem's vector; -1: it has none.
  int32_t vector_of(std::string_view stem) const;
  // What a cosine by the encoder counts beside a score.
  double cosine_weight() const { return cosine_weight_; }

  struct Text {
    std::vector<MatchedWord> words;
    double points = 0;  // BM25
  };
  // One a text, larger is better: to be compared with those of the same call alone.
  std::vector<float> scores(const MatchQuestion& question, std::span<const Text> texts) const;

 private:
  static constexpr size_t kScales = 4;
  static constexpr size_t kSteps = 5;
  static constexpr size_t kVectorFeatures = 3 * kScales;
  static constexpr size_t kInputs = 3 * kWordFeatures + 2 * kVectorFeatures;

  std::array<float, kVectorFeatures> vector_features(const MatchQuestion& question,
                                                     std::span<const MatchedWord> text) const;
  std::span<const float> vector(int32_t row) const;

  std::unordered_map<std::string, int32_t> rows_;
  std::vector<float> vectors_;  // by row
  std::vector<float> steps_;    // [kScales][kSteps]
  std::vector<float> answers_;  // [kQuestionKinds][width]
  std::vector<float> direct_;   // [kInputs]
  std::vector<float> hidden_;   // [n][kInputs]
  std::vector<float> by_kind_;  // [kQuestionKinds][n]
  std::vector<float> output_;   // [n]
  double power_ = 0.5;
  double cosine_weight_ = 0;
};

}  // namespace chimere::retrieval
