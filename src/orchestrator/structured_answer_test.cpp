// structured_answer_test.cpp  Forms of answers end to end: whatever the model would like to write, the form holds.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "orchestrator/chat_service.h"
#include "orchestrator/models_for_test.h"

namespace chimere::orchestrator {
namespace {

struct Whole {
  std::string reasoning, content, name, arguments;
  int n_calls = 0;
  ChatChunk last;
};

class StructuredAnswerTest : public testing::Test {
 protected:
  void SetUp() override {
    LoadOptions options;
    options.max_rows = 64;
    options.n_threads = 1;
    auto model = models::Model::load(kModelInTheBox, models::BackendKind::cpu, options);
    ASSERT_TRUE(model) << model.error().message;
    auto chat_model = ChatModel::from_model(std::move(*model));
    ASSERT_TRUE(chat_model) << chat_model.error().message;
    engine::EngineConfig config;
    config.max_running = 2;
    config.context_length = 1024;
    service_ = std::make_unique<ChatService>(std::move(*chat_model), config);
  }

  static ChatRequest question(uint64_t seed) {
    ChatRequest request;
    chat::Message message;
    message.role = "user";
    message.content = "Hello";
    request.messages = {message};
    request.max_tokens = 250;
    request.sampling.temperature = 1.0f;
    request.seed = seed;
    request.thinking_budget = 4;
    return request;
  }
  static Whole read(ChatStream& stream) {
    Whole whole;
    while (auto chunk = stream.wait(std::chrono::minutes(2))) {
      whole.reasoning += chunk->reasoning;
      whole.content += chunk->content;
      for (const ToolCallDelta& delta : chunk->tool_calls) {
        whole.n_calls = std::max(whole.n_calls, delta.index + 1);
        whole.name += delta.name;
        whole.arguments += delta.arguments;
      }
      whole.last = std::move(*chunk);
    }
    return whole;
  }

  std::unique_ptr<ChatService> service_;
};

// Every value has a greatest length, so that the answer ends before max_tokens whatever the model likes.
constexpr const char* kBounded =
    R"({"type":"object","properties":{"ok":{"type":"boolean"},"n":{"type":"integer","minimum":0,
    "maximum":99},"tag":{"enum":["red","green"]}},"required":["ok","n","tag"],"additionalProperties":false})";

TEST_F(StructuredAnswerTest, AJsonSchemaHoldsBehindAThoughtAndWithout) {
  for (const bool thinks : {true, false}) {
    ChatRequest request = question(1);
    request.enable_thinking = thinks;
    request.form.json_schema = kBounded;
    auto stream = service_->start(request);
    const Whole whole = read(*stream);
    ASSERT_EQ(whole.last.kind, ChatChunk::Kind::finished) << whole.last.error->message;
    EXPECT_EQ(whole.last.finish, Finish::stop);
    EXPECT_TRUE(thinks || whole.last.usage.reasoning_tokens == 0);
    const auto value = nlohmann::json::parse(whole.content, nullptr, false);
    ASSERT_TRUE(value.is_object()) << whole.content;
    EXPECT_TRUE(value["ok"].is_boolean() && value["n"].is_number_integer() && value["tag"].is_string());
  }
}

TEST_F(StructuredAnswerTest, SeveralAnswersEachKeepTheForm) {
  ChatRequest request = question(5);
  request.form.grammar = "root ::= (\"a\" | \"b\"){6} \"!\"";
  for (auto& stream : service_->start(request, 3, {})) {
    const Whole whole = read(*stream);
    EXPECT_EQ(whole.content.size(), 7u) << whole.content;
    EXPECT_EQ(whole.content.find_first_not_of("ab!"), std::string::npos) << whole.content;
    EXPECT_EQ(whole.last.finish, Finish::stop);
  }
}

TEST_F(StructuredAnswerTest, ADemandedToolIsCalled) {
  ChatRequest request = question(1);
  const std::string declaration =
      std::string(R"({"type":"function","function":{"name":"paint","parameters":)") + kBounded + "}}";
  request.tools = {{declaration}};
  request.tool_choice = ToolChoice::named;
  request.tool_name = "paint";
  request.parallel_tool_calls = false;
  auto stream = service_->start(request);
  const Whole whole = read(*stream);
  ASSERT_EQ(whole.last.kind, ChatChunk::Kind::finished) << whole.last.error->message;
  EXPECT_EQ(whole.last.finish, Finish::tool_calls) << whole.content;
  EXPECT_EQ(whole.n_calls, 1);
  EXPECT_EQ(whole.name, "paint");
  const auto arguments = nlohmann::json::parse(whole.arguments, nullptr, false);
  ASSERT_TRUE(arguments.is_object()) << whole.arguments;
  EXPECT_TRUE(arguments.contains("ok") && arguments.contains("n") && arguments.contains("tag")) << whole.arguments;
}

TEST_F(StructuredAnswerTest, CompletionsToo) {
  CompletionRequest request;
  request.prompt = "Hello";
  request.seed = 3;
  request.sampling.temperature = 1.0f;
  request.form.regex = "[0-9]{3}-(yes|no)";
  auto stream = service_->complete(request);
  const Whole whole = read(*stream);
  ASSERT_EQ(whole.last.kind, ChatChunk::Kind::finished);
  EXPECT_TRUE(whole.content.size() == 6 || whole.content.size() == 7) << whole.content;
  EXPECT_EQ(whole.content[3], '-') << whole.content;
}

TEST_F(StructuredAnswerTest, ABadFormIsAnErrorOfTheRequest) {
  ChatRequest request = question(1);
  request.form.json_schema = R"({"type":"object","properties":{"a":{"not":{}}}})";
  auto stream = service_->start(request);
  const Whole whole = read(*stream);
  ASSERT_EQ(whole.last.kind, ChatChunk::Kind::failed);
  EXPECT_NE(whole.last.error->message.find("#/properties/a: `not`"), std::string::npos) << whole.last.error->message;
}

}  // namespace
}  // namespace chimere::orchestrator
