// example_file.h  Examples as lines of JSON, and a conversation as the tokens that the model would read and write.
//
//   {"prompt": "What is ...?", "answer": "It is ..."}
//   {"messages": [{"role": "user", "content": "..."}, ..., {"role": "assistant", "content": "..."}], "tools": [...]}
//   {"text": "any text, of which all counts"}
// A line may have "weight" (above 0) and "keep": true, which makes it an example of what shall stay as it is. The last
// message is the answer; it may have "reasoning_content" and "tool_calls", with arguments as an object.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/chat_template.h"
#include "improve/mezo/trainer.h"
#include "tokenizer/tokenizer.h"

namespace chimere::improve {

inline constexpr size_t kMaxExampleLine = size_t{1} << 20;
inline constexpr uint64_t kMaxExampleFile = uint64_t{256} << 20;

// One line, before it is read by a model: a conversation, or a text.
struct ExampleLine {
  chat::ChatInput conversation;  // without messages: `text` is all
  std::string text;
  float weight = 1;
  bool is_kept = false;
};

// Errors say what is wrong with the line, not which it is.
Result<ExampleLine> parse_example(std::string_view line);

// The loss counts what the model writes itself: the last message and the token that ends it. An answer without a thought
// is one after an empty thought, where the template knows how to say that.
Result<Example> tokens_of(const ExampleLine& line, const Tokenizer& tokenizer, const chat::ChatTemplate& chat_template);

// The template of a model's file.
Result<chat::ChatTemplate> template_of(const models::Model& model, const Tokenizer& tokenizer);

// Empty lines are passed over. Errors name the file and the line.
Result<std::vector<Example>> read_examples_file(const std::string& path, const models::Model& model);

}  // namespace chimere::improve
