#include "retrieval/search_terms.h"

#include <algorithm>
#include <cctype>

#include "retrieval/words.h"

namespace chimere::retrieval {
namespace {

constexpr size_t kMaxTerms = 64;
constexpr size_t kMaxTermBytes = 80;
constexpr size_t kMaxAskedBytes = 8 << 10;

bool is_upper_ascii(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower_ascii(char c) { return c >= 'a' && c <= 'z'; }

// "getUserName" as "get", "User", "Name"; none where there is no such border.
std::vector<std::string_view> parts_of_name(std::string_view word) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  for (size_t i = 1; i < word.size(); ++i) {
    if (!is_lower_ascii(word[i - 1]) || !is_upper_ascii(word[i])) continue;
    parts.push_back(word.substr(start, i - start));
    start = i;
  }
  if (start > 0) parts.push_back(word.substr(start));
  return parts;
}

std::string small_ascii(std::string_view word) {
  std::string small(word);
  for (char& c : small) c = is_upper_ascii(c) ? static_cast<char>(c - 'A' + 'a') : c;
  return small;
}

}  // namespace

std::string terms_text(std::string_view text) {
  std::string terms;
  terms.reserve(text.size() + text.size() / 8);
  const auto add = [&](std::string_view term) {
    if (term.size() <= kMaxTermBytes) terms.append(term) += ' ';
  };
  for (const Word& word : words_of(text)) {
    add(word.text);
    for (const std::string_view part : parts_of_name(word.text)) add(part);
  }
  return terms;
}

std::vector<std::string> asked_terms(std::string_view question) {
  // What is asked stands at the end of a long message.
  if (question.size() > kMaxAskedBytes) question.remove_prefix(question.size() - kMaxAskedBytes);
  std::vector<std::string> telling, all;
  const auto add = [](std::vector<std::string>& terms, std::string_view word) {
    std::string term = small_ascii(word);
    const bool is_known = std::find(terms.begin(), terms.end(), term) != terms.end();
    if (word.size() <= kMaxTermBytes && terms.size() < kMaxTerms && !is_known) terms.push_back(std::move(term));
  };
  for (const Word& word : words_of(question)) {
    add(all, word.text);
    if (is_small_word(word.text)) continue;
    add(telling, word.text);
    for (const std::string_view part : parts_of_name(word.text)) add(telling, part);
  }
  return telling.empty() ? all : telling;
}

std::string match_any(const std::vector<std::string>& terms) {
  std::string match;
  for (const std::string& term : terms) match += (match.empty() ? "\"" : " OR \"") + term + '"';
  return match;
}

}  // namespace chimere::retrieval
