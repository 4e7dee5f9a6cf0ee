// search_terms.h  Texts and questions in the words that FTS5 compares.
//
// Its tokenizer takes a line of Chinese for one word, and getUserName too. So texts are given to it word by word, as
// words.h tells them apart, with the parts of names of code behind the whole. A change of terms_text() is a change of the
// schema's version: to remove a text, FTS5 has to be told the same words again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chimere::retrieval {

// The words of a text, separated by spaces.
std::string terms_text(std::string_view text);

// The distinct words of a question that tell something, in small letters; where none does, all of them. At most 64, each
// of letters and digits alone.
std::vector<std::string> asked_terms(std::string_view question);

// "a" OR "b": what FTS5's MATCH understands.
std::string match_any(const std::vector<std::string>& terms);

}  // namespace chimere::retrieval
