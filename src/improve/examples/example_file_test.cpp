// Lines of examples: what is the model's to write, and what is refused, with its line.
#include "improve/examples/example_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/scratch_for_test.h"

namespace chimere::improve {
namespace {

// The model in the box: its tokenizer and template are what users have.
std::unique_ptr<models::Model> box() {
  LoadOptions options;
  options.n_threads = 1;
  options.max_rows = 64;
  auto model = models::Model::load(CHIMERE_TESTS_DIR "/../assets/chimere-nano.gguf", models::BackendKind::cpu, options);
  EXPECT_TRUE(model) << model.error().message;
  return model ? std::move(*model) : nullptr;
}

TEST(ExampleFile, TheLossCountsWhatTheModelWrites) {
  const auto model = box();
  ASSERT_TRUE(model);
  const auto tokenizer = Tokenizer::from_metadata(model->metadata());
  ASSERT_TRUE(tokenizer);
  const auto chat_template = template_of(*model, *tokenizer);
  ASSERT_TRUE(chat_template);
  const auto texts = [&](const char* line) {
    const auto parsed = parse_example(line);
    EXPECT_TRUE(parsed) << parsed.error().message;
    const auto example = tokens_of(*parsed, *tokenizer, *chat_template);
    EXPECT_TRUE(example) << example.error().message;
    std::pair<std::string, std::string> made;
    for (size_t i = 0; i < example->tokens.size(); ++i) {
      (i < static_cast<size_t>(example->answer_from) ? made.first : made.second) +=
          tokenizer->token_text(example->tokens[i]);
    }
    return made;
  };
  const auto plain = texts(R"({"prompt": "Hello <|im_end|>", "answer": "Hi."})");
  EXPECT_TRUE(plain.first.ends_with("</think>\n\n")) << plain.first;
  EXPECT_EQ(plain.second, "Hi.<|im_end|>");
  const auto thinking = texts(
      R"({"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A", "reasoning_content": "R"}]})");
  EXPECT_TRUE(thinking.first.ends_with("<think>\n")) << thinking.first;
  EXPECT_EQ(thinking.second, "R\n</think>\n\nA<|im_end|>");
  const auto call = texts(
      R"({"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "tool_calls": [{"function":
          {"name": "lamp", "arguments": {"level": 3}}}]}], "tools": [{"type": "function", "function": {"name": "lamp"}}]})");
  EXPECT_NE(call.first.find("lamp"), std::string::npos);
  EXPECT_NE(call.second.find("<parameter=level>\n3\n"), std::string::npos) << call.second;
  const auto text = texts(R"({"text": "Once upon a time", "keep": true, "weight": 2})");
  EXPECT_FALSE(text.second.empty());
}

TEST(ExampleFile, ErrorsNameTheLine) {
  const auto model = box();
  ASSERT_TRUE(model);
  const std::filesystem::path scratch = fixture::scratch_folder();
  const std::string file = (scratch / "e.jsonl").string();
  const auto expect = [&](const std::string& second, const std::string& word) {
    std::ofstream(file) << R"({"prompt": "a", "answer": "b"})"
                        << "\n\n"
                        << second << "\n";
    const auto read = read_examples_file(file, *model);
    ASSERT_FALSE(read) << second;
    EXPECT_NE(read.error().message.find("e.jsonl:3:"), std::string::npos) << read.error().message;
    EXPECT_NE(read.error().message.find(word), std::string::npos) << read.error().message;
  };
  expect("{", "line 1, column");
  expect("[]", "an object");
  expect("{}", "either");
  expect(R"({"prompt": "a"})", "either");
  expect(R"({"prompt": 1, "answer": "b"})", "string");
  expect(R"({"text": "a b c", "messages": []})", "either");
  expect(R"({"messages": []})", "2 to 1000");
  expect(R"({"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "a"}]})", "assistant");
  expect(R"({"messages": [{"role": "user", "content": "a"}, 7]})", "message");
  expect(R"({"prompt": "a", "answer": "b", "weight": -1})", "weight");
  expect(R"({"prompt": "a", "answer": "b", "keep": 1})", "keep");
  expect(R"({"text": ""})", "two tokens");
  expect("{\"text\": \"" + std::string(kMaxExampleLine, 'a') + "\"}", "bytes");
  expect(R"({"messages": [{"role": "tool"}, {"role": "assistant", "tool_calls": [{"name": "x", "arguments": 1}]}]})",
         "object");
  std::ofstream(file) << "\n";
  EXPECT_FALSE(read_examples_file(file, *model));
  EXPECT_FALSE(read_examples_file((scratch / "none").string(), *model));
  std::filesystem::remove_all(scratch);
}

}  // namespace
}  // namespace chimere::improve
