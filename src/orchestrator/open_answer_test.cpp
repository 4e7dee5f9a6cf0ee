// open_answer_test.cpp  Answers that begin or end in the middle: arguments of a tool that are cut off, and a text that
// the request began.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "orchestrator/chat_service.h"
#include "orchestrator/models_for_test.h"

namespace chimere::orchestrator {
namespace {

std::unique_ptr<ChatService> nano_service(const std::string& chat_template = {}) {
  LoadOptions options;
  options.max_rows = 64;
  options.n_threads = 1;
  auto model = models::Model::load(kModelInTheBox, models::BackendKind::cpu, options);
  EXPECT_TRUE(model) << model.error().message;
  auto chat_model = ChatModel::from_model(std::move(*model), chat_template);
  EXPECT_TRUE(chat_model) << chat_model.error().message;
  engine::EngineConfig config;
  config.context_length = 1024;
  return std::make_unique<ChatService>(std::move(*chat_model), config);
}

ChatRequest silent_question(const char* text) {
  ChatRequest request;
  chat::Message message;
  message.role = "user";
  message.content = text;
  request.messages = {message};
  request.sampling.temperature = 0;
  request.seed = 1;
  request.enable_thinking = false;
  return request;
}

struct Heard {
  std::string content, reasoning, name, arguments;
  int n_argument_deltas = 0;
  ChatChunk last;
};

Heard hear(ChatService& service, ChatRequest request) {
  auto stream = service.start(std::move(request));
  Heard heard;
  while (auto chunk = stream->wait(kLong)) {
    heard.content += chunk->content;
    heard.reasoning += chunk->reasoning;
    for (const ToolCallDelta& delta : chunk->tool_calls) {
      heard.name += delta.name;
      heard.arguments += delta.arguments;
      if (!delta.arguments.empty()) ++heard.n_argument_deltas;
    }
    heard.last = std::move(*chunk);
  }
  EXPECT_EQ(heard.last.kind, ChatChunk::Kind::finished) << (heard.last.error ? heard.last.error->message : "");
  return heard;
}

TEST(OpenAnswer, ArgumentsStreamAndStayWhenTheyAreCutOff) {
  std::ifstream file(CHIMERE_TESTS_DIR "/golden/templates/Qwen-Qwen2.5-7B-Instruct.jinja");
  std::stringstream hermes;
  hermes << file.rdbuf();
  for (const std::string& chat_template : {std::string(), hermes.str()}) {
    const auto service = nano_service(chat_template);
    ChatRequest request = silent_question("Write a long story about the sea");
    request.tools = {{R"({"type":"function","function":{"name":"write","parameters":{"type":"object","properties":
        {"content":{"type":"string","minLength":2000}},"required":["content"]}}})"}};
    request.tool_choice = ToolChoice::named;
    request.tool_name = "write";
    request.max_tokens = 150;
    const Heard heard = hear(*service, request);
    EXPECT_EQ(heard.last.finish, Finish::length);
    EXPECT_EQ(heard.name, "write");
    EXPECT_EQ(heard.content, "");
    const std::string opening = chat_template.empty() ? R"({"content": ")" : R"({"content":")";
    EXPECT_EQ(heard.arguments.rfind(opening, 0), 0u) << heard.arguments;
    // A token is a byte at least, and the call's frame takes fewer than 40 of the 150.
    EXPECT_GT(heard.arguments.size(), 110u) << heard.arguments;
    EXPECT_GT(heard.n_argument_deltas, 5) << heard.arguments;
  }
}

TEST(OpenAnswer, GoesOnWithWhatTheRequestBegan) {
  const auto service = nano_service();
  ChatRequest request = silent_question("Tell me about cats");
  request.max_tokens = 24;
  const Heard whole = hear(*service, request);
  const size_t cut = whole.content.find(' ', 8);
  ASSERT_NE(cut, std::string::npos) << whole.content;
  chat::Message begun;
  begun.role = "assistant";
  begun.content = whole.content.substr(0, cut);
  request.messages.push_back(begun);
  request.goes_on = true;
  for (const auto thinks : {std::optional<bool>(), std::optional<bool>(true), std::optional<bool>(false)}) {
    request.enable_thinking = thinks;
    const Heard rest = hear(*service, request);
    EXPECT_EQ(rest.reasoning, "");
    EXPECT_EQ(rest.last.usage.reasoning_tokens, 0);
    const size_t n = std::min(rest.content.size(), whole.content.size() - cut);
    EXPECT_GT(n, 8u);
    EXPECT_EQ(rest.content.substr(0, n), whole.content.substr(cut, n));
  }
  // A call may follow a text that was begun.
  request.tools = {{R"({"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}})"}};
  request.tool_choice = ToolChoice::required;
  request.parallel_tool_calls = false;
  const Heard called = hear(*service, request);
  EXPECT_EQ(called.name, "now");
  EXPECT_EQ(called.arguments, "{}");
  EXPECT_EQ(called.last.finish, Finish::tool_calls);
}

TEST(OpenAnswer, GoesOnWithAThoughtThatBrokeOff) {
  const auto service = nano_service();
  ChatRequest request = silent_question("Tom has 3 apples and buys 4 more. How many apples does he have?");
  request.enable_thinking = true;
  request.max_tokens = 80;
  const Heard whole = hear(*service, request);
  const size_t cut = whole.reasoning.find(' ', whole.reasoning.size() / 2);
  ASSERT_NE(cut, std::string::npos) << whole.reasoning;
  chat::Message begun;
  begun.role = "assistant";
  begun.content = "";
  begun.reasoning_content = whole.reasoning.substr(0, cut);
  request.messages.push_back(begun);
  request.goes_on = true;
  for (const auto thinks : {std::optional<bool>(), std::optional<bool>(true), std::optional<bool>(false)}) {
    request.enable_thinking = thinks;
    const Heard rest = hear(*service, request);
    EXPECT_EQ(rest.reasoning, whole.reasoning.substr(cut));
    EXPECT_EQ(rest.content, whole.content);
    EXPECT_GT(rest.last.usage.reasoning_tokens, 0);
  }
  // Where the template opens no thought by itself, it is opened: the model is still inside it.
  const auto plain = nano_service(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
  request.max_tokens = 12;
  EXPECT_NE(hear(*plain, request).reasoning, "");
}

TEST(OpenAnswer, PartsOfAMessageStandOnTheirOwnLines) {
  const auto service = nano_service();
  const auto n_tokens = [&](const chat::Message& message) {
    ChatRequest request = silent_question("");
    request.messages = {message};
    auto job = service->tokenize(request, {});
    std::optional<Result<std::vector<int32_t>>> ids;
    while (!(ids = job->poll())) std::this_thread::yield();
    EXPECT_TRUE(*ids) << ids->error().message;
    return **ids;
  };
  chat::Message parts, lines;
  parts.role = lines.role = "user";
  parts.content_parts_json = R"([{"type":"text","text":"one"},{"type":"text","text":"two"}])";
  lines.content = "one\ntwo";
  EXPECT_EQ(n_tokens(parts), n_tokens(lines));
}

}  // namespace
}  // namespace chimere::orchestrator
