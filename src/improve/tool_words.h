// tool_words.h  What a person's words stand for when they ask for a tool: whoever corrects "film light" to the scene "nova"
// each time means it by that word.
//
// Found by counting in the calls that were accepted; told to the model behind the question, as in "(scene: nova)", where the
// word stands in it and the tool is offered. The artefact is {"words": [{"word", "tool", "argument", "value"}]}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "improve/examples.h"

namespace chimere::improve {

struct ToolWord {
  std::string word;  // in small letters
  std::string tool, argument, value;
  bool operator==(const ToolWord&) const = default;
};

inline constexpr size_t kMaxToolWords = 512;

// For each value that questions do not name themselves the word that goes with it, in at least three conversations and
// nearly never without it.
std::vector<ToolWord> tool_words_of(const std::vector<TaughtAnswer>& train);

std::string tool_words_bytes(const std::vector<ToolWord>& words);
Result<std::vector<ToolWord>> read_tool_words(std::string_view bytes);

// The question with what its words stand for, of tools that are offered; as it is where that is nothing, or where two of
// them stand for different values of one argument.
std::string with_tool_words(const std::string& question, const std::vector<chat::Tool>& tools,
                            const std::vector<ToolWord>& words);
// The same of the last message, if it is a user's.
void tell_tool_words(const std::vector<ToolWord>& words, const std::vector<chat::Tool>& tools,
                     std::vector<chat::Message>& messages);

}  // namespace chimere::improve
