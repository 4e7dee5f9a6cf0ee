// shown_examples.h  Answers that their owner accepted, shown in the text of a question that is like theirs.
//
//   near      by the model's own states behind two short texts about the question (probes): what its words are about, and
//             what it asks for; centred and scaled by what all known questions have
//   whether   of the nearest known questions enough are ones whose answers are shown; the others only vote
//   which     the nearest of those, the very nearest last
//
// A value: what is shown follows from the question and the entries alone.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "tokenizer/tokenizer.h"

namespace chimere::orchestrator {

class ShownExamples {
 public:
  struct Entry {
    std::string question;
    std::string answer;         // empty: it only votes
    std::vector<float> vector;  // [kProbes * d_model], as embed() gives it
  };
  static constexpr size_t kProbes = 2;
  static constexpr size_t kVoters = 5;                  // nearest questions that say whether
  static constexpr size_t kShown = 8;                   // examples at most
  static constexpr size_t kMaxQuestionBytes = 2 << 10;  // of a question that examples are looked for

  // The texts whose last states are a question's vector.
  static std::vector<std::string> probes(const std::string& question);

  // `least`: of kVoters, for examples to be shown. REQUIRES: entries with vectors of one size.
  ShownExamples(std::vector<Entry> entries, size_t least);

  // Of the nearest to each entry but itself: how many are shown. For whoever chooses `least`.
  std::vector<size_t> votes() const;
  // The question with its examples before it, in at most `room` bytes of them; nullopt: it goes as it is.
  std::optional<std::string> with_examples(const std::string& question, std::span<const float> vector,
                                           size_t room) const;

 private:
  struct Near {
    double likeness;
    size_t entry;
  };
  std::vector<float> scaled(std::span<const float> vector) const;
  std::vector<Near> nearest(std::span<const float> scaled, size_t n_values, std::optional<size_t> but) const;
  size_t vote(const std::vector<Near>& near) const;

  std::vector<Entry> entries_;  // vectors are scaled
  const size_t least_;
  std::vector<float> mean_, scale_;  // of each value of the vectors
};

// The unit vector of the last state of each text.
using EmbedTexts = std::function<Result<std::vector<std::vector<float>>>(std::vector<std::vector<int32_t>> texts)>;

// The vector of a question.
Result<std::vector<float>> question_vector(const Tokenizer& tokenizer, const EmbedTexts& embed,
                                           const std::string& question);

// Puts examples into the last message, where it is a user's and like theirs. `room`: bytes of them.
Status show_examples(const ShownExamples& examples, const Tokenizer& tokenizer, const EmbedTexts& embed, size_t room,
                     std::vector<chat::Message>& messages);

}  // namespace chimere::orchestrator
