#include "retrieval/question.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <set>

#include "retrieval/words.h"

namespace chimere::retrieval {
namespace {

// What is asked stands at the end of a message; before it there may be a whole file.
constexpr size_t kMaxQuestionBytes = 1000;
constexpr float kNameWeight = 2;
constexpr size_t kMaxTitleBytes = 3;  // "Mr", "Mrs", "Dr", "St", an initial
// What an earlier sentence of the same text names, the later ones are about as well ("It was built in 1874."), a little
// less surely: so the name decides between texts, and within one the word that is asked about it.
constexpr float kSaidBefore = 0.95f;
constexpr const char* kSpace = " \t\r\n";

bool ends_in_title(std::string_view text) {
  const size_t space = text.find_last_of(kSpace);
  const std::string_view word = space == std::string_view::npos ? text : text.substr(space + 1);
  return !word.empty() && word.size() <= kMaxTitleBytes && std::isupper(static_cast<unsigned char>(word[0])) != 0;
}

// Bytes of the mark of an end at `at`, 0: there is none.
size_t end_mark(std::string_view text, size_t at) {
  if (text[at] == '\n') return 1;
  if (text[at] == '.' || text[at] == '!' || text[at] == '?') {
    const bool is_last = at + 1 == text.size() || std::isspace(static_cast<unsigned char>(text[at + 1])) != 0;
    return is_last && (text[at] != '.' || !ends_in_title(text.substr(0, at))) ? 1 : 0;
  }
  for (const std::string_view mark : {"\u3002", "\uff01", "\uff1f"}) {
    if (text.substr(at, mark.size()) == mark) return mark.size();
  }
  return 0;
}

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

std::vector<std::string_view> sentences_of(std::string_view text) {
  std::vector<std::string_view> sentences;
  const auto add = [&](std::string_view part) {
    const size_t first = part.find_first_not_of(kSpace);
    if (first == std::string_view::npos) return;
    sentences.push_back(part.substr(first, part.find_last_not_of(kSpace) - first + 1));
  };
  size_t start = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t mark = end_mark(text, at);
    if (mark == 0) continue;
    add(text.substr(start, at + mark - start));
    start = at + mark;
    at = start - 1;
  }
  add(text.substr(start));
  return sentences;
}

std::string_view nearest_sentence(std::string_view question, const std::vector<std::string>& texts,
                                  const Rarity& rarity) {
  const std::vector<WordIndex::Asked> asked = asked_words(question, rarity);
  std::string_view nearest;
  float most = 0;
  for (const std::string& text : texts) {
    std::set<uint64_t> before;
    for (const std::string_view sentence : sentences_of(text)) {
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
