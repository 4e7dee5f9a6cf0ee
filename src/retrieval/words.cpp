#include "retrieval/words.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "base/hash.h"
#include "tokenizer/unicode.h"

namespace chimere::retrieval {
namespace {

using tokenizer::Char;
using tokenizer::char_at;

constexpr size_t kMaxLetters = 6;
constexpr size_t kShortestPlural = 4;

// Sorted.
constexpr std::string_view kSmallWords[] = {
    "a",     "about", "all",    "am",   "an",    "and",  "any",   "are",    "as",    "at",   "be",    "been",
    "but",   "by",    "called", "can",  "could", "did",  "do",    "does",   "for",   "from", "get",   "give",
    "had",   "has",   "have",   "he",   "her",   "him",  "his",   "how",    "i",     "if",   "in",    "into",
    "is",    "it",    "its",    "know", "many",  "may",  "me",    "much",   "must",  "my",   "name",  "named",
    "no",    "not",   "of",     "on",   "or",    "our",  "out",   "please", "s",     "say",  "she",   "should",
    "so",    "some",  "such",   "t",    "tell",  "than", "that",  "the",    "their", "them", "then",  "there",
    "these", "they",  "this",   "to",   "us",    "was",  "we",    "were",   "what",  "when", "where", "which",
    "who",   "whom",  "whose",  "why",  "will",  "with", "would", "you",    "your",  "yours"};

bool is_unspaced(char32_t code) {
  return (code >= 0x3040 && code <= 0x30FF) || (code >= 0x3400 && code <= 0x9FFF) ||
         (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x20000 && code <= 0x3FFFF);
}

std::string folded(std::string_view text) {
  std::string small;
  for (size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if (c.code == kInvalidChar) {
      small += text[at];
    } else {
      append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code))), small);
    }
    at += c.len;
  }
  return small;
}

uint64_t term_of(std::string_view text) {
  std::string small = folded(text);
  const bool is_ascii = std::all_of(small.begin(), small.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
  if (!is_ascii) small = tokenizer::to_nfd(small);
  std::string term;
  size_t letters = 0;
  for (size_t at = 0; at < small.size();) {
    const Char c = char_at(small, at);
    if (!(c.classes & tokenizer::kMark)) {
      term.append(small, at, c.len);
      ++letters;
    }
    at += c.len;
  }
  const bool is_plural = letters >= kShortestPlural && term.ends_with('s') && !term.ends_with("ss");
  if (is_plural) term.pop_back();
  // A number is compared whole: 1874 and 18741 have nothing to do with each other.
  if (std::any_of(term.begin(), term.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return hash64(std::string_view(term));
  }
  size_t end = 0;
  for (letters = 0; end < term.size() && letters < kMaxLetters; ++letters) end += char_at(term, end).len;
  return hash64(std::string_view(term).substr(0, end));
}

}  // namespace

std::vector<Word> words_of(std::string_view text) {
  constexpr uint16_t kInWord = tokenizer::kLetter | tokenizer::kNumber | tokenizer::kMark;
  std::vector<Word> words;
  bool starts_sentence = true;
  for (size_t at = 0; at < text.size();) {
    const Char first = char_at(text, at);
    if (!(first.classes & kInWord)) {
      if (std::string_view(".!?:\n").find(text[at]) != std::string_view::npos) starts_sentence = true;
      at += first.len;
      continue;
    }
    if (is_unspaced(first.code)) {
      const size_t next = at + first.len;
      const bool is_pair = next < text.size() && is_unspaced(char_at(text, next).code);
      const std::string_view pair = text.substr(at, first.len + (is_pair ? char_at(text, next).len : 0));
      words.push_back({pair, term_of(pair), false});
      at = next;
      continue;
    }
    size_t end = at;
    uint16_t classes = 0;
    while (end < text.size()) {
      const Char c = char_at(text, end);
      if (!(c.classes & kInWord) || is_unspaced(c.code)) break;
      classes |= c.classes;
      end += c.len;
    }
    const std::string_view word = text.substr(at, end - at);
    const bool is_name = (classes & tokenizer::kNumber) || ((first.classes & tokenizer::kUpper) && !starts_sentence);
    words.push_back({word, term_of(word), is_name});
    starts_sentence = false;
    at = end;
  }
  return words;
}

bool is_small_word(std::string_view text) {
  return std::binary_search(std::begin(kSmallWords), std::end(kSmallWords), std::string_view(folded(text)));
}

}  // namespace chimere::retrieval
