// text_for_test.h  Grammars over a small vocabulary with many overlapping tokens, for tests and fuzzing.
#pragma once

#include <algorithm>
#include <memory>
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

}  // namespace chimere::grammar
