// examples.h  What one owner's journal teaches: questions with the answers that are to be given.
//
// Learned is what a person accepted: a rating of 4 or 5, a thumb up, or the text of a correction. An exact check (a sum
// that is right) stands for a person where nothing foreign took part; a model's own judgement never does, so that it
// does not teach itself its mistakes. A correction of an answer to which tools were offered may be a call:
// {"tool_calls": [{"name", "arguments"}]}. Texts of tools, documents and the web are learned only where a person accepted
// the answer. Near-duplicates count once, and a conversation teaches at most kMaxPerConversation answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "store/journal.h"

namespace chimere::improve {

// A question as it was asked.
struct Asked {
  std::vector<chat::Message> messages;  // up to the question
  std::vector<chat::Tool> tools;        // that can be called
};

// What a good answer is: a text, or calls of tools.
struct Wanted {
  std::string text;
  std::vector<chat::ToolCall> calls;  // not empty: instead of the text
  bool with_end = true;               // the end behind it is part of it

  bool is_empty() const { return text.empty() && calls.empty(); }
  // Both as one text, for comparisons and for people.
  std::string shown() const;
};

struct TaughtAnswer {
  int64_t id = 0;  // of the answer in the journal
  std::string conversation;
  std::string route;
  int64_t created = 0;
  Asked asked;
  Wanted wanted;             // the answer that is to be given
  std::string given;         // the text of the one that was
  int64_t given_tokens = 0;  // that the model wrote for it, its thought among them
  int score = 0;
  bool is_correction = false;
  bool is_held_out = false;
};

struct Examples {
  std::vector<TaughtAnswer> train, held_out;       // each by id
  size_t duplicates = 0;                           // left out: near another one
  size_t foreign = 0;                              // left out: nobody accepted what came from outside
  size_t crowded = 0;                              // left out: too many of one conversation
  std::vector<std::string> conversations() const;  // of `train`, sorted
};

inline constexpr size_t kMaxPerConversation = 16;
inline constexpr size_t kMaxTaught = 2'000;  // the newest
inline constexpr size_t kMaxWantedBytes = 8 << 10;

Result<std::vector<store::KeptAnswer>> all_answers(store::Journal& journal, const std::string& owner, size_t most);
Result<Examples> examples_of(store::Journal& journal, const std::string& owner);
// The same from answers that were read already.
Examples examples_from(const std::string& owner, const std::vector<store::KeptAnswer>& answers);

// The conversation of a kept answer; empty where it can not be read.
std::vector<chat::Message> messages_of(const store::KeptAnswer& kept);
// The tools that were offered, and the calls of an answer.
std::vector<chat::Tool> tools_of(const store::KeptAnswer& kept);
std::vector<chat::ToolCall> calls_of(const store::KeptAnswer& kept);
// Whether texts that nobody here wrote took part.
bool has_foreign(const store::KeptAnswer& kept);
// The last text of the user.
std::string question_in(const std::vector<chat::Message>& messages);

}  // namespace chimere::improve
