// answer_text_test.cpp  Tokens of a made-up answer, read back as its parts.
#include "orchestrator/answer_text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace chimere::orchestrator {
namespace {

const Tokenizer& tokenizer() {
  static const Tokenizer loaded = [] {
    auto file = gguf::File::open(CHIMERE_TESTS_DIR "/golden/tokenizer/qwen35/vocab.gguf");
    EXPECT_TRUE(file) << file.error().message;
    auto made = Tokenizer::from_metadata(file->metadata());
    EXPECT_TRUE(made) << made.error().message;
    return *made;
  }();
  return loaded;
}

struct Read {
  ChatChunk sum;
  int n_tokens = 0;
  bool stopped = false;
  bool has_tool_calls = false;
};

void add(ChatChunk& sum, const ChatChunk& delta) {
  sum.reasoning += delta.reasoning;
  sum.content += delta.content;
  for (const ToolCallDelta& call : delta.tool_calls) {
    if (!call.id.empty()) {
      sum.tool_calls.push_back(call);
    } else {
      sum.tool_calls.back().arguments += call.arguments;
    }
  }
  sum.tokens.insert(sum.tokens.end(), delta.tokens.begin(), delta.tokens.end());
}

Read read(const std::string& answer, const chat::OutputOptions& output, AnswerText::Options options) {
  Read result;
  AnswerText text(tokenizer(), chat::OutputParser(output), options);
  for (const int32_t id : tokenizer().encode(answer, EncodeMode::special, false)) {
    Sampled token;
    token.id = id;
    token.logprob = -1;
    token.top = {{id, -1}, {0, -2}};
    ChatChunk delta;
    text.push(token, delta);
    // No half characters, whatever the tokens are.
    for (const std::string& part : {delta.reasoning, delta.content}) {
      EXPECT_TRUE(part.empty() || (part[0] & 0xC0) != 0x80) << answer;
    }
    add(result.sum, delta);
  }
  ChatChunk delta;
  text.finish(delta, true);
  add(result.sum, delta);
  result.n_tokens = text.n_tokens();
  result.stopped = text.is_stopped();
  result.has_tool_calls = text.has_tool_calls();
  return result;
}

TEST(AnswerText, KeepsEveryCharacterFromTheFirstToken) {
  const std::string answer = "Héllo, 世界 👩‍🚀! ñandú\n\n```c\nint x;\n```";
  EXPECT_EQ(read(answer, {}, {}).sum.content, answer);
}

TEST(AnswerText, TakesReasoningApart) {
  chat::OutputOptions output;
  output.starts_in_reasoning = true;
  const Read result = read("Let me see.\n</think>\n\nForty-two.", output, {});
  EXPECT_EQ(result.sum.reasoning, "Let me see.");
  EXPECT_EQ(result.sum.content, "Forty-two.");
}

TEST(AnswerText, TurnsToolCallsIntoDeltasWithIds) {
  chat::OutputOptions output;
  output.tools = {{R"({"type":"function","function":{"name":"add","parameters":{"type":"object","properties":
      {"a":{"type":"integer"},"b":{"type":"string"}}}}})"}};
  const std::string call =
      "<tool_call>\n<function=add>\n<parameter=a>\n3\n</parameter>\n<parameter=b>\nx\n</parameter>\n</function>\n"
      "</tool_call>";
  const Read result = read("Sure." + call + "\n" + call, output, {});
  EXPECT_TRUE(result.has_tool_calls);
  EXPECT_EQ(result.sum.content, "Sure.");
  ASSERT_EQ(result.sum.tool_calls.size(), 2u);
  EXPECT_EQ(result.sum.tool_calls[0].name, "add");
  EXPECT_EQ(result.sum.tool_calls[0].arguments, R"({"a": 3, "b": "x"})");
  EXPECT_EQ(result.sum.tool_calls[1].index, 1);
  EXPECT_EQ(result.sum.tool_calls[0].id.rfind("call_", 0), 0u);
  EXPECT_NE(result.sum.tool_calls[0].id, result.sum.tool_calls[1].id);
}

// Frames of gpt-oss: no grammar forces them, so a second call is not kept from being written.
TEST(AnswerText, EndsBehindTheFirstCallWhereOneIsWanted) {
  chat::OutputOptions output;
  output.dialect = &chat::dialect_named("harmony");
  output.tools = {{R"({"type":"function","function":{"name":"add","parameters":{"type":"object"}}})"}};
  const std::string thought = "<|channel|>analysis<|message|>Two sums.<|end|>";
  const std::string call =
      "<|start|>assistant to=functions.add<|channel|>commentary <|constrain|>json<|message|>{\"a\": 3}<|end|>";
  const Read both = read(thought + call + call, output, {});
  EXPECT_EQ(both.sum.tool_calls.size(), 2u);
  EXPECT_FALSE(both.stopped);
  AnswerText::Options options;
  options.one_call = true;
  const Read one = read(thought + call + call, output, options);
  ASSERT_EQ(one.sum.tool_calls.size(), 1u);
  EXPECT_EQ(one.sum.tool_calls[0].arguments, "{\"a\":3}");
  EXPECT_EQ(one.sum.reasoning, "Two sums.");
  EXPECT_EQ(one.sum.content, "");
  EXPECT_TRUE(one.stopped);
  EXPECT_TRUE(one.has_tool_calls);
  EXPECT_LT(one.n_tokens, both.n_tokens);
  EXPECT_FALSE(read(thought + call.substr(0, call.size() - 10), output, options).stopped) << "cut off";
}

TEST(AnswerText, StopsBeforeAStopStringAndCountsWhatItRead) {
  const std::string answer = "one two three four five six";
  const Read all = read(answer, {}, {});
  const Read cut = read(answer, {}, {{"ee f"}, false});
  EXPECT_EQ(cut.sum.content, "one two thr");
  EXPECT_TRUE(cut.stopped);
  EXPECT_FALSE(all.stopped);
  EXPECT_LT(cut.n_tokens, all.n_tokens);
}

TEST(AnswerText, TokensOfAStopStringAreNotReported) {
  const Read cut = read("alpha beta END", {}, {{"END"}, true});
  std::string bytes;
  for (const TokenInfo& info : cut.sum.tokens) bytes += info.token.bytes;
  EXPECT_EQ(bytes.find("END"), std::string::npos) << bytes;
  EXPECT_EQ(bytes.rfind("alpha beta", 0), 0u) << bytes;
}

TEST(AnswerText, ReportsEveryTokenOnceInOrder) {
  const std::string answer = "Héllo 世界, text";
  const Read result = read(answer, {}, {{"never"}, true});
  std::string bytes;
  for (const TokenInfo& info : result.sum.tokens) {
    bytes += info.token.bytes;
    ASSERT_EQ(info.top.size(), 2u);
    EXPECT_FLOAT_EQ(info.top[1].logprob, -2);
  }
  EXPECT_EQ(bytes, answer);
  EXPECT_EQ(result.sum.tokens.size(), static_cast<size_t>(result.n_tokens));
}

TEST(AnswerText, ACutCharacterIsReplacedAtTheEnd) {
  std::vector<int32_t> ids = tokenizer().encode("👩", EncodeMode::special, false);
  AnswerText text(tokenizer(), std::nullopt, {});
  ChatChunk out;
  Sampled token;
  token.id = ids.front();
  text.push(token, out);
  if (ids.size() == 1) GTEST_SKIP() << "one token holds the character";
  EXPECT_EQ(out.content, "");
  text.finish(out, true);
  EXPECT_EQ(out.content, "\xef\xbf\xbd");
}

}  // namespace
}  // namespace chimere::orchestrator
