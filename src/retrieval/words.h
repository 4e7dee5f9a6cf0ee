// words.h  The words of a text in the form in which they are compared: small letters without accents, no plural, six
// letters at most. So "allergic" meets "allergy" and "keys" meets "Key", without rules of any one language.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chimere::retrieval {

struct Word {
  std::string_view text;  // as written
  uint64_t term = 0;      // equal for words that are compared as equal
  bool is_name = false;   // a capital letter inside a sentence, or a digit: it tells more than other words
};

// A run of letters and digits is a word; of Chinese and Japanese, which write no spaces, every two characters are one.
std::vector<Word> words_of(std::string_view text);

// Words that questions are made of in English ("which", "does", "the"): they tell nothing about what is asked.
bool is_small_word(std::string_view text);

}  // namespace chimere::retrieval
