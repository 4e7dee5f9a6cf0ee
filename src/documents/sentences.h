// sentences.h  A text in sentences.
#pragma once

#include <string_view>
#include <vector>

namespace chimere::documents {

// Cut behind marks of the end and at ends of lines, in order, without the space around. "Mrs. Hall" stays together; so
// may two sentences, of which the first ends in a short name.
std::vector<std::string_view> sentences_of(std::string_view text);

}  // namespace chimere::documents
