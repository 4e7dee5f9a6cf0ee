// chat_service_test.cpp  Requests against a tiny model: every one ends exactly once, however it ends.
#include "orchestrator/chat_service.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "orchestrator/models_for_test.h"

namespace chimere::orchestrator {
namespace {

ChatRequest hello(int max_tokens, uint64_t seed = 1) {
  ChatRequest request;
  chat::Message message;
  message.role = "user";
  message.content = "Hello";
  request.messages = {message};
  request.max_tokens = max_tokens;
  request.seed = seed;
  return request;
}

struct Seen {
  int started = 0;
  int terminal = 0;
  std::string text;
  ChatChunk last;
};

Seen read_all(ChatStream& stream) {
  Seen seen;
  while (auto chunk = stream.wait(kLong)) {
    seen.started += chunk->kind == ChatChunk::Kind::started;
    seen.terminal += chunk->is_terminal();
    seen.text += chunk->reasoning + chunk->content;
    seen.last = std::move(*chunk);
  }
  EXPECT_FALSE(stream.poll());
  return seen;
}

class ChatServiceTest : public testing::Test {
 protected:
  void SetUp() override { start({}); }

  // With another template than the file's, if one is given.
  void start(const std::string& template_path) {
    LoadOptions options;
    options.max_rows = 64;
    auto model = models::Model::load(kTinyModel, models::BackendKind::reference, options);
    ASSERT_TRUE(model) << model.error().message;
    auto chat_model = ChatModel::from_model(std::move(*model));
    ASSERT_TRUE(chat_model) << chat_model.error().message;
    if (!template_path.empty()) {
      std::ifstream file(template_path);
      const std::string source((std::istreambuf_iterator<char>(file)), {});
      auto other = chat::ChatTemplate::create(source, "", "<|im_end|>");
      ASSERT_TRUE(other) << other.error().message;
      chat_model->chat_template = std::move(*other);
    }
    engine::EngineConfig config;
    config.max_running = 2;
    config.max_queued = 3;
    config.prefill_tokens = 32;
    config.context_length = 256;
    service_ = std::make_unique<ChatService>(std::move(*chat_model), config);
  }

  std::unique_ptr<ChatService> service_;
};

TEST_F(ChatServiceTest, StartsAnswersAndFinishesOnce) {
  auto stream = service_->start(hello(10));
  const Seen seen = read_all(*stream);
  EXPECT_EQ(seen.started, 1);
  EXPECT_EQ(seen.terminal, 1);
  EXPECT_EQ(seen.last.kind, ChatChunk::Kind::finished);
  EXPECT_EQ(seen.last.finish, Finish::length);
  EXPECT_EQ(seen.last.usage.completion_tokens, 10);
  EXPECT_FALSE(seen.text.empty());
}

TEST_F(ChatServiceTest, ARequestThatCannotRunFailsAlone) {
  ChatRequest request = hello(10);
  for (int i = 0; i < 400; ++i) *request.messages[0].content += " word";
  const Seen long_prompt = read_all(*service_->start(request));
  EXPECT_EQ(long_prompt.started, 0);
  EXPECT_EQ(long_prompt.terminal, 1);
  ASSERT_TRUE(long_prompt.last.error);
  EXPECT_EQ(long_prompt.last.error->code, Code::invalid_argument);
  EXPECT_NE(long_prompt.last.error->message.find("256"), std::string::npos) << long_prompt.last.error->message;

  request = hello(10);
  request.sampling.temperature = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(read_all(*service_->start(request)).last.kind, ChatChunk::Kind::failed);
  request = hello(10);
  request.template_kwargs = "{";
  EXPECT_EQ(read_all(*service_->start(request)).last.error->code, Code::invalid_argument);
}

TEST_F(ChatServiceTest, CancelEndsTheStream) {
  auto stream = service_->start(hello(200));
  while (auto chunk = stream->wait(kLong)) {
    if (chunk->kind == ChatChunk::Kind::delta) break;
  }
  stream->cancel();
  const Seen seen = read_all(*stream);
  EXPECT_EQ(seen.terminal, 1);
  EXPECT_EQ(seen.last.kind, ChatChunk::Kind::finished);
  auto early = service_->start(hello(200));
  early->cancel();
  EXPECT_EQ(read_all(*early).terminal, 1);
}

TEST_F(ChatServiceTest, StreamsMayBeDroppedAtAnyTime) {
  for (int i = 0; i < 20; ++i) {
    auto stream = service_->start(hello(200, static_cast<uint64_t>(i)));
    for (int polls = 0; polls < i; ++polls) stream->wait(std::chrono::milliseconds(1));
  }
  while (service_->engine().stats().running + service_->engine().stats().queued > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(read_all(*service_->start(hello(3))).terminal, 1);
}

TEST_F(ChatServiceTest, WhatComesAfterTheReaderLeftIsLetGo) {
  auto admission = std::make_shared<Admission>(nullptr);
  auto events = std::make_shared<Channel<engine::Event>>([admission] { admission->ring(); });
  const std::weak_ptr<Channel<engine::Event>> held = events;
  EXPECT_TRUE(admission->close().empty());
  AnswerText text(service_->tokenizer(), std::nullopt, {});
  engine::Submitted late;
  late.id = 1;
  late.events = std::move(events);
  EXPECT_FALSE(admission->put(Admitted{std::move(late), std::move(text)}));
  EXPECT_TRUE(held.expired());
}

TEST_F(ChatServiceTest, AFullQueueRefusesAndTheRestEnds) {
  std::vector<std::unique_ptr<ChatStream>> streams;
  for (int i = 0; i < 30; ++i) streams.push_back(service_->start(hello(60, static_cast<uint64_t>(i))));
  int finished = 0, refused = 0;
  for (auto& stream : streams) {
    const Seen seen = read_all(*stream);
    EXPECT_EQ(seen.terminal, 1);
    finished += seen.last.kind == ChatChunk::Kind::finished;
    refused += seen.last.error && seen.last.error->code == Code::exhausted;
  }
  EXPECT_EQ(finished + refused, 30);
  EXPECT_GE(finished, 2);
}

TEST_F(ChatServiceTest, SameSeedSameText) {
  const std::string once = read_all(*service_->start(hello(20, 5))).text;
  EXPECT_EQ(read_all(*service_->start(hello(20, 5))).text, once);
  ChatRequest random = hello(20);
  random.seed.reset();
  EXPECT_NE(read_all(*service_->start(random)).text, once);
}

TEST_F(ChatServiceTest, ContinuesPlainText) {
  CompletionRequest request;
  request.prompt = "Once upon a time";
  request.max_tokens = 8;
  request.seed = 1;
  const Seen seen = read_all(*service_->complete(request));
  EXPECT_EQ(seen.last.finish, Finish::length);
  EXPECT_EQ(seen.last.usage.completion_tokens, 8);
}

TEST_F(ChatServiceTest, DryTurnsTextsIntoTokens) {
  ChatRequest request = hello(8);
  request.sampling.dry_multiplier = 0.8f;
  EXPECT_EQ(read_all(*service_->start(request)).last.kind, ChatChunk::Kind::finished);
  request.dry_sequence_breakers = {"e"};
  EXPECT_EQ(read_all(*service_->start(request)).last.kind, ChatChunk::Kind::finished);
}

TEST_F(ChatServiceTest, ThinkingStartsWhereTheTemplateOpensIt) {
  start(CHIMERE_TESTS_DIR "/golden/templates/Qwen3.5-4B.jinja");
  ChatRequest request = hello(6);
  ChatChunk thinking, silent;
  for (auto* sum : {&thinking, &silent}) {
    if (sum == &silent) request.enable_thinking = false;
    auto stream = service_->start(request);
    while (auto chunk = stream->wait(kLong)) {
      sum->reasoning += chunk->reasoning;
      sum->content += chunk->content;
      if (chunk->is_terminal()) sum->usage = chunk->usage;
    }
  }
  EXPECT_NE(thinking.reasoning, "");
  EXPECT_EQ(thinking.content, "");
  EXPECT_EQ(silent.reasoning, "");
  EXPECT_NE(silent.content, "");
  EXPECT_GT(silent.usage.prompt_tokens, thinking.usage.prompt_tokens);
}

TEST_F(ChatServiceTest, EveryTemplateShowsTheTools) {
  const ChatRequest plain = hello(6);
  ChatRequest request = plain;
  const std::string words(600, 'x');
  request.tools = {{R"({"type":"function","function":{"name":"f","description":")" + words + R"("}})"}};
  // The description of the tools is longer than this service's context: it reached the prompt, also where the template
  // knows nothing of tools.
  for (const char* path : {"", CHIMERE_TESTS_DIR "/golden/templates/Qwen3.5-4B.jinja"}) {
    start(path);
    EXPECT_FALSE(read_all(*service_->start(plain)).last.error) << path;
    const Seen with = read_all(*service_->start(request));
    ASSERT_TRUE(with.last.error) << path;
    EXPECT_TRUE(with.last.is_too_long) << with.last.error->message;
  }
}

TEST_F(ChatServiceTest, SeveralAnswersToOnePrompt) {
  ChatRequest request = hello(12, 5);
  request.sampling.temperature = 1;
  auto streams = service_->start(request, 3, {});
  ASSERT_EQ(streams.size(), 3u);
  std::set<std::string> texts;
  for (auto& stream : streams) {
    const Seen seen = read_all(*stream);
    EXPECT_EQ(seen.last.kind, ChatChunk::Kind::finished);
    texts.insert(seen.text);
  }
  EXPECT_EQ(texts.size(), 3u);
  EXPECT_EQ(texts.count(read_all(*service_->start(request)).text), 1u);  // the first one, asked for alone
  auto dropped = service_->start(request, 3, {});
  dropped.erase(dropped.begin());
  for (auto& stream : dropped) {
    const Seen seen = read_all(*stream);
    EXPECT_EQ(seen.terminal, 1);
    EXPECT_EQ(seen.last.kind, ChatChunk::Kind::finished) << "one that is gone does not take the others along";
    EXPECT_EQ(texts.count(seen.text), 1u);
  }
}

TEST_F(ChatServiceTest, TokenizesWithoutRunning) {
  const auto ids = [](std::unique_ptr<TokenJob> job) {
    for (;;) {
      if (auto result = job->poll()) return std::move(*result);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  const auto chat = ids(service_->tokenize(hello(1), {}));
  ASSERT_TRUE(chat);
  EXPECT_EQ(static_cast<int>(chat->size()), read_all(*service_->start(hello(1))).last.usage.prompt_tokens);
  const auto text = ids(service_->tokenize("Hello", false, {}));
  ASSERT_TRUE(text);
  EXPECT_EQ(service_->tokenizer().decode(*text, false), "Hello");
}

TEST(RecommendedSampling, ComesFromTheFile) {
  gguf::Metadata metadata;
  auto none = recommended_sampling(metadata);
  ASSERT_TRUE(none);
  EXPECT_FLOAT_EQ(none->temperature, 1);
  EXPECT_EQ(none->top_k, 0);
  metadata.set_float("general.sampling.temp", 0.6);
  metadata.set_int("general.sampling.top_k", gguf::ValueType::i32, 20);
  metadata.set_float("general.sampling.top_p", 0.95);
  metadata.set_float("general.sampling.min_p", 0.01);
  metadata.set_float("general.sampling.penalty_repeat", 1.05);
  metadata.set_int("general.sampling.penalty_last_n", gguf::ValueType::i32, 64);
  auto some = recommended_sampling(metadata);
  ASSERT_TRUE(some);
  EXPECT_FLOAT_EQ(some->temperature, 0.6f);
  EXPECT_EQ(some->top_k, 20);
  EXPECT_FLOAT_EQ(some->top_p, 0.95f);
  EXPECT_FLOAT_EQ(some->min_p, 0.01f);
  EXPECT_FLOAT_EQ(some->repetition_penalty, 1.05f);
  EXPECT_EQ(some->penalty_last_n, 64);
  metadata.set_float("general.sampling.top_p", 7);
  EXPECT_FALSE(recommended_sampling(metadata));
}

}  // namespace
}  // namespace chimere::orchestrator
