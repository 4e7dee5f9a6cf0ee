// text_for_test.h  Grammars over a small vocabulary with many overlapping tokens, for tests and fuzzing.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "grammar/constraint.h"
#include "grammar/expression.h"
#include "grammar/token_grammar.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab_for_test.h"

namespace chimere::grammar {

// All bytes, and pieces that begin, end and cross every border of JSON and of words.
inline Tokenizer tokenizer_for_test() {
  tokenizer::TestVocab v = tokenizer::TestVocab::bpe();
  for (const char* piece :
       {"{\"",        "\":",        "\": ", "\": \"",   "\",",    "\", \"",   "\"}",      "\"}}",
        "\"]",        "[]",         "{}",   "[[",       "]]",     "}]",       "},",       "],",
        ", ",         "name",       "age",  "na",       "me\"",   "true",     "false",    "null",
        "tr",         "ue",         "12",   "123",      "0.",     ".5",       "e1",       "-1",
        "\n  ",       "\n",         "  ",   "\\n",      "\\\"",   "\\u",      "\\u00",    "00e9",
        "ab",         "abc",        "abcd", "abc\"",    "abc\",", "x\":1",    "1}",       "1,",
        "1]",         "2024",       "-01",  "T12",      ":00",    "Z\"",      "\"a\"",    "hello world",
        "he said \"", "\"hello\"}", "a\"b", "\xE2\x82", "\xAC",   "\xF0\x9F", "\x98\x80", "\xC3\xA9t\xC3\xA9",
        "<",          "</",         ">\n",  "<tool",    "yes",    "no",       "maybe"}) {
    std::string written;
    for (const char* c = piece; *c; ++c) written += tokenizer::written_byte(static_cast<unsigned char>(*c));
    if (std::find(v.tokens.begin(), v.tokens.end(), written) == v.tokens.end()) v.add(written);
  }
  auto made = Tokenizer::from_metadata(v.metadata());
  CHECK(made);
  return *made;
}

inline std::shared_ptr<const Vocabulary> vocabulary_for_test() {
  static const Tokenizer kTokenizer = tokenizer_for_test();
  // Two rows more than there are tokens, as files have it.
  static const auto kVocabulary = std::make_shared<const Vocabulary>(kTokenizer, kTokenizer.n_vocab() + 2);
  return kVocabulary;
}

inline bool is_set(std::span<const std::uint64_t> mask, std::int32_t id) {
  return (mask[static_cast<size_t>(id) / 64] >> (id % 64)) & 1;
}

// What a drunk model writes: any allowed token, and after a while preferably one that closes something, be it with
// `mark`. Nothing when it does not come to an end.
inline std::optional<std::string> drawn_text(TokenConstraint& constraint, std::mt19937& random,
                                             std::string_view mark = "") {
  const Vocabulary& vocabulary = *vocabulary_for_test();
  std::string text;
  for (int n = 0; n < 400; ++n) {
    size_t n_marked = std::min(mark.size(), text.size());
    while (n_marked > 0 && !text.ends_with(mark.substr(0, n_marked))) --n_marked;
    const auto mask = constraint.mask();
    std::vector<std::int32_t> allowed, closing;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(mask.size() * 64); ++id) {
      if (!is_set(mask, id)) continue;
      allowed.push_back(id);
      const std::string_view bytes = vocabulary.reading(id).text;
      const bool goes_on = n_marked < mark.size() && bytes == mark.substr(n_marked, 1);
      if (bytes == "\"" || bytes == "}" || bytes == "]" || goes_on || vocabulary.is_end(id)) closing.push_back(id);
      if (goes_on && n > 40) {
        closing = {id};
        break;
      }
    }
    CHECK(!allowed.empty());
    const std::vector<std::int32_t>& from = n > 40 && !closing.empty() ? closing : allowed;
    const std::int32_t id = from[random() % from.size()];
    std::vector<std::int32_t> ids{id};
    if (vocabulary.is_end(id)) {
      if (constraint.may_end()) return text;
      ids = constraint.completion(TokenConstraint::Part::inner);
      CHECK(!ids.empty());
    }
    for (const std::int32_t part : ids) {
      text += vocabulary.reading(part).text;
      constraint.accept(part);
    }
    if (constraint.is_finished()) return text;
  }
  return std::nullopt;
}

}  // namespace chimere::grammar
