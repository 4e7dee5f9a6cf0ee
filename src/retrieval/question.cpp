#include "retrieval/question.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "documents/sentences.h"
#include "retrieval/words.h"

namespace chimere::retrieval {
namespace {

// What is asked stands at the end of a message; before it there may be a whole file.
constexpr size_t kMaxQuestionBytes = 1000;
constexpr float kNameWeight = 2;
// What an earlier sentence of the same text names, the later ones are about as well ("It was built in 1874."), a little
// less surely: so the name decides between texts, and within one the word that is asked about it.
constexpr float kSaidBefore = 0.95f;

}  // namespace

std::vector<WordIndex::Asked> asked_words(std::string_view question, const Rarity& rarity) {
  if (question.size() > kMaxQuestionBytes) question.remove_prefix(question.size() - kMaxQuestionBytes);
  std::vector<WordIndex::Asked> asked;
  for (const Word& word : words_of(question)) {
    if (is_small_word(word.text)) continue;
    const float weight = rarity(word.text) * (word.is_name ? kNameWeight : 1);
    const auto known = std::find_if(asked.begin(), asked.end(), [&](const auto& a) { return a.term == word.term; });
    if (known == asked.end()) {
      asked.push_back({word.term, weight});
    } else {
      known->weight = std::max(known->weight, weight);
    }
  }
  return asked;
}

std::string_view nearest_sentence(std::string_view question, const std::vector<std::string>& texts,
                                  const Rarity& rarity) {
  const std::vector<WordIndex::Asked> asked = asked_words(question, rarity);
  std::string_view nearest;
  float most = 0;
  for (const std::string& text : texts) {
    std::set<uint64_t> before;
    for (const std::string_view sentence : documents::sentences_of(text)) {
      std::set<uint64_t> own;
      for (const Word& word : words_of(sentence)) own.insert(word.term);
      float covered = 0;
      bool has_own = false;
      for (const WordIndex::Asked& word : asked) {
        const bool is_own = own.count(word.term) > 0;
        has_own |= is_own;
        covered += is_own ? word.weight : before.count(word.term) > 0 ? kSaidBefore * word.weight : 0;
      }
      // The first of equals, whatever order their sums were taken in.
      if (has_own && covered > 1.001f * most) {
        most = covered;
        nearest = sentence;
      }
      before.merge(own);
    }
  }
  return nearest;
}

}  // namespace chimere::retrieval
