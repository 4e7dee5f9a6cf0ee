// question.h  What a question asks for, in words: their weights, and the sentence among found texts that has most of
// them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "retrieval/word_index.h"

namespace chimere::retrieval {

// How much a word tells, whatever the texts are: 0 for the commonest, above 1 for names.
using Rarity = std::function<float(std::string_view)>;

// Of a long message its end: what is asked stands there.
std::vector<WordIndex::Asked> asked_words(std::string_view question, const Rarity& rarity);

// Of all sentences of `texts` the one that has most of what is asked. Empty: none has a word of it.
std::string_view nearest_sentence(std::string_view question, const std::vector<std::string>& texts,
                                  const Rarity& rarity);

}  // namespace chimere::retrieval
