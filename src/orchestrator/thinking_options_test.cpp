// thinking_options_test.cpp  What words and modes become, and a steered thought of the model in the box.
#include "orchestrator/thinking_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "orchestrator/chat_service.h"
#include "orchestrator/models_for_test.h"

namespace chimere::orchestrator {
namespace {

class ThinkingOptionsTest : public testing::Test {
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
    config.max_running = 8;
    config.context_length = 1024;
    service_ = std::make_unique<ChatService>(std::move(*chat_model), config);
  }
  static ChatRequest question(const std::string& text) {
    ChatRequest request;
    chat::Message message;
    message.role = "user";
    message.content = text;
    request.messages = {message};
    request.max_tokens = 300;
    request.sampling.temperature = 0;
    request.seed = 1;
    request.token_stats = true;
    return request;
  }
  // All chunks joined.
  static ChatChunk read(ChatStream& stream) {
    ChatChunk sum;
    while (auto chunk = stream.wait(std::chrono::minutes(2))) {
      sum.reasoning += chunk->reasoning;
      sum.content += chunk->content;
      for (TokenInfo& token : chunk->tokens) sum.tokens.push_back(std::move(token));
      if (chunk->is_terminal()) {
        sum.kind = chunk->kind;
        sum.finish = chunk->finish;
        sum.usage = chunk->usage;
      }
    }
    return sum;
  }
  ChatChunk ask(ChatRequest request) { return read(*service_->start(std::move(request))); }

  std::unique_ptr<ChatService> service_;
};

TEST_F(ThinkingOptionsTest, NothingSaidIsNothingDone) {
  ThinkingResolver resolver(service_->tokenizer(), 8000);
  for (const ThinkingOptions& o : {ThinkingOptions{}, ThinkingOptions{.mode = ThinkingMode::off}}) {
    const ThinkingParams p = resolver.resolve(o);
    EXPECT_FALSE(p.needs_stats());
    EXPECT_TRUE(p.loop.is_on);
    EXPECT_EQ(p.loop.penalty, 0) << "it changes no draw";
    EXPECT_EQ(p.warn_before, 0);
    EXPECT_EQ(p.answer_tokens, 0);
  }
}

TEST_F(ThinkingOptionsTest, AModeIsASetOfValuesAndWhatIsSaidWins) {
  ThinkingResolver resolver(service_->tokenizer(), 8000);
  ThinkingOptions o{.mode = ThinkingMode::fast};
  EXPECT_LE(resolver.resolve(o).close_above, 1);
  EXPECT_FLOAT_EQ(resolver.resolve(o).max_entropy, std::log(8000.0f));
  o.close_above = 0.42f;
  EXPECT_EQ(resolver.resolve(o).close_above, 0.42f);
  EXPECT_GT(resolver.resolve({.mode = ThinkingMode::ultra}).close_above, 1);
  EXPECT_FALSE(resolver.resolve({.mode = ThinkingMode::ultra}).extension.empty());
  // A request that names a mode leaves nothing of the server's settings; one that does not, fills in.
  const ThinkingOptions server{.mode = ThinkingMode::quality, .window = 5};
  EXPECT_EQ(ThinkingOptions{}.over(server).window, 5);
  EXPECT_EQ((ThinkingOptions{.mode = ThinkingMode::off}.over(server)).window, std::nullopt);
  EXPECT_EQ((ThinkingOptions{.window = 7}.over(server)).mode, ThinkingMode::quality);
}

TEST_F(ThinkingOptionsTest, TriggersAndBreaksComeFromTheVocabulary) {
  const Tokenizer& tokenizer = service_->tokenizer();
  ThinkingResolver resolver(tokenizer, 8000);
  ThinkingOptions o{.close_above = 0.9f, .suppress_above = 0.9f};
  o.triggers = {"wait"};
  const ThinkingParams p = resolver.resolve(o);
  ASSERT_TRUE(p.triggers && p.breaks);
  for (const char* form : {"wait", "Wait", " wait", " Wait"}) {
    const auto ids = tokenizer.encode(form, EncodeMode::plain, false);
    EXPECT_NE(std::find(p.triggers->begin(), p.triggers->end(), ids), p.triggers->end()) << form;
  }
  const auto is_break = [&](const char* text) {
    const auto ids = tokenizer.encode(text, EncodeMode::plain, false);
    return ids.size() == 1 && p.is_break(ids[0]);
  };
  EXPECT_TRUE(is_break("."));
  EXPECT_TRUE(is_break("\n"));
  EXPECT_FALSE(is_break(" the"));
  o.triggers.reset();
  EXPECT_GT(resolver.resolve(o).triggers->size(), reflection_words().size());
}

TEST_F(ThinkingOptionsTest, EveryTokenHasItsFigures) {
  const ChatChunk answer = ask(question("What is 47 + 38?"));
  EXPECT_EQ(answer.tokens.size(), static_cast<size_t>(answer.usage.completion_tokens));
  for (const TokenInfo& token : answer.tokens) {
    EXPECT_GE(token.entropy, 0);
    EXPECT_GE(token.certainty, 0);
    EXPECT_LE(token.certainty, 1);
  }
  ChatRequest plain = question("What is 47 + 38?");
  plain.token_stats = false;
  const ChatChunk same = ask(plain);
  EXPECT_TRUE(same.tokens.empty());
  EXPECT_EQ(same.content, answer.content);
  EXPECT_EQ(same.reasoning, answer.reasoning);
}

TEST_F(ThinkingOptionsTest, CertaintyEndsAThoughtBehindASentence) {
  const ChatChunk free = ask(question("What is 47 + 38?"));
  ChatRequest request = question("What is 47 + 38?");
  request.thinking.window = 4;
  request.thinking.close_above = 0;
  const ChatChunk early = ask(request);
  EXPECT_LT(early.usage.reasoning_tokens, free.usage.reasoning_tokens);
  EXPECT_EQ(free.reasoning.rfind(early.reasoning, 0), 0U) << early.reasoning;
  ASSERT_FALSE(early.reasoning.empty());
  EXPECT_NE(std::string(".!?\n").find(early.reasoning.back()), std::string::npos) << early.reasoning;
  EXPECT_FALSE(early.content.empty());
  // Where the threshold is above every certainty nothing happens.
  request.thinking.close_above = 1.5f;
  EXPECT_EQ(ask(request).reasoning, free.reasoning);
}

TEST_F(ThinkingOptionsTest, TheBudgetIsExactAloneAndTogether) {
  std::vector<ChatChunk> alone;
  std::vector<std::unique_ptr<ChatStream>> together;
  const auto request = [](int i) {
    ChatRequest r = question("What is " + std::to_string(31 + 7 * i) + " + " + std::to_string(58 - 5 * i) + "?");
    r.thinking_budget = 3 + 2 * i;
    r.thinking.mode = ThinkingMode::quality;
    r.thinking.warn_before = 2;
    r.thinking.warning = "So:";
    return r;
  };
  for (int i = 0; i < 8; ++i) alone.push_back(ask(request(i)));
  for (int i = 0; i < 8; ++i) together.push_back(service_->start(request(i)));
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(alone[i].usage.reasoning_tokens, 3 + 2 * i) << alone[i].reasoning;
    const ChatChunk other = read(*together[i]);
    EXPECT_EQ(other.usage.reasoning_tokens, 3 + 2 * i);
    EXPECT_EQ(other.reasoning, alone[i].reasoning);
    EXPECT_EQ(other.content, alone[i].content);
  }
}

TEST_F(ThinkingOptionsTest, AnAnswerThatRepeatsItselfEnds) {
  ChatRequest request = question("Hello");
  request.enable_thinking = false;
  const auto ids = service_->tokenizer().encode(" the", EncodeMode::plain, false);
  ASSERT_EQ(ids.size(), 1U);
  request.sampling.logit_bias = {{ids[0], 1000}};
  request.max_tokens = 200;
  request.thinking.loop_guard = true;
  request.thinking.loop_penalty = 1;
  const ChatChunk answer = ask(request);
  EXPECT_EQ(answer.finish, Finish::loop);
  EXPECT_EQ(answer.usage.completion_tokens, 64);
}

// Nobody asked for it, and nobody wants a text without end: the guard waits until it can not be wanted, and says so in
// a word that every client knows.
TEST_F(ThinkingOptionsTest, AnAnswerThatRepeatsItselfForLongEndsByDefault) {
  LoadOptions options;
  options.max_rows = 64;
  options.n_threads = 1;
  auto model = models::Model::load(kModelInTheBox, models::BackendKind::cpu, options);
  ASSERT_TRUE(model);
  auto chat_model = ChatModel::from_model(std::move(*model));
  ASSERT_TRUE(chat_model);
  engine::EngineConfig config;
  config.context_length = 4096;
  service_ = std::make_unique<ChatService>(std::move(*chat_model), config);
  ChatRequest request = question("Hello");
  request.enable_thinking = false;
  request.max_tokens = -1;
  const auto ids = service_->tokenizer().encode(" the", EncodeMode::plain, false);
  request.sampling.logit_bias = {{ids[0], 1000}};
  const ChatChunk answer = ask(request);
  EXPECT_EQ(answer.finish, Finish::length);
  EXPECT_EQ(answer.usage.completion_tokens, 2048);
  ThinkingResolver resolver(service_->tokenizer(), 8000);
  EXPECT_FALSE(resolver.resolve({.loop_guard = false}).loop.is_on);
}

// In a form there is something to be closed, and it is closed sooner; what a schema demands is written all the same.
TEST_F(ThinkingOptionsTest, AStringThatRepeatsAWordIsClosedSoonAListIsNot) {
  LoadOptions options;
  options.max_rows = 64;
  options.n_threads = 1;
  auto model = models::Model::load(kModelInTheBox, models::BackendKind::cpu, options);
  ASSERT_TRUE(model);
  auto chat_model = ChatModel::from_model(std::move(*model));
  ASSERT_TRUE(chat_model);
  engine::EngineConfig config;
  config.context_length = 4096;
  service_ = std::make_unique<ChatService>(std::move(*chat_model), config);
  ChatRequest request = question("Hello");
  request.enable_thinking = false;
  request.max_tokens = -1;
  const auto likes = [&](const char* word) {
    const auto ids = service_->tokenizer().encode(word, EncodeMode::plain, false);
    request.sampling.logit_bias = {{ids.at(0), 1000}};
  };
  const auto count = [](const std::string& text, const std::string& part) {
    size_t n = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
    return n;
  };
  likes(" the");
  request.form.json_schema = R"({"type":"object","properties":{"a":{"type":"string"}},"required":["a"],
                                 "additionalProperties":false})";
  ChatChunk answer = ask(request);
  EXPECT_EQ(answer.finish, Finish::stop);
  EXPECT_EQ(count(answer.content, " the"), 256U) << answer.content;
  ASSERT_NE(answer.content.rfind(" the"), std::string::npos);
  std::string end = answer.content.substr(answer.content.rfind(" the"));
  // Blanks and line ends before the brace are the model's to choose.
  std::erase_if(end, [](char c) { return c == ' ' || c == '\n'; });
  EXPECT_EQ(end, "the\"}") << answer.content;
  request.thinking.loop_tokens = 40;
  EXPECT_EQ(count(ask(request).content, " the"), 80U) << "a number that was asked for stands";
  request.thinking = {};

  likes("0");
  request.form.json_schema = R"({"type":"array","items":{"type":"integer"},"minItems":400,"maxItems":400})";
  answer = ask(request);
  EXPECT_EQ(answer.finish, Finish::stop);
  EXPECT_EQ(count(answer.content, "0"), 400U) << answer.content;

  request.form.json_schema = R"({"type":"array","items":{"type":"integer","minimum":1},"minItems":1,"maxItems":1})";
  EXPECT_LE(ask(request).content.size(), 262U) << "one number";
  request.form.json_schema = R"({"type":"array","minItems":20,"maxItems":20,
      "items":{"type":"array","items":{"type":"integer"},"minItems":20,"maxItems":20}})";
  answer = ask(request);
  EXPECT_EQ(answer.finish, Finish::stop);
  EXPECT_EQ(count(answer.content, "0"), 400U) << answer.content;

  likes("a");
  request.form.json_schema =
      R"({"type":"array","items":{"type":"string","maxLength":1},"minItems":300,"maxItems":300})";
  answer = ask(request);
  EXPECT_EQ(answer.finish, Finish::stop);
  EXPECT_EQ(count(answer.content, "\"a\""), 300U) << answer.content;
}

// What people do want repeated, as this vocabulary cuts it.
TEST_F(ThinkingOptionsTest, WantedRepetitionIsNoLoopByDefault) {
  const auto times = [](const std::string& text, int n) {
    std::string all;
    for (int i = 0; i < n; ++i) all += text;
    return all;
  };
  std::string rows, squares, map, lines;
  for (int i = 0; i < 200; ++i) {
    rows += "| " + std::to_string(i) + " | 0.0 | 0.0 | open |\n";
    squares += std::to_string(i * i) + ", ";
    lines += "  values[" + std::to_string(i) + "] = 0;\n";
  }
  map = "[[1" + times(", 1", 19) + "],\n" + times(" [1" + times(", 0", 18) + ", 1],\n", 18) + " [1" + times(", 1", 19) +
        "]]";
  const std::pair<const char*, std::string> texts[] = {
      {"table", "| n | a | b | state |\n|---|---|---|---|\n" + rows},
      {"numbers", squares},
      {"code", lines},
      {"map", map},
      {"ruler", std::string(400, '-')},
      {"chorus", times("La la la, la la la,\nhey hey, goodbye!\n\n", 12)},
      {"lines to write", times("I will not talk in class.\n", 100)},
  };
  ThinkingResolver resolver(service_->tokenizer(), service_->tokenizer().n_vocab());
  const LoopGuardParams params = resolver.resolve({}).loop;
  EXPECT_TRUE(params.is_on);
  EXPECT_EQ(params.penalty, 0);
  for (const auto& [name, text] : texts) {
    const std::vector<int32_t> ids = service_->tokenizer().encode(text, EncodeMode::plain, false);
    LoopGuard guard(params);
    for (size_t n = 1; n <= ids.size(); ++n) {
      guard.accept(std::span(ids).first(n));
      ASSERT_NE(guard.state(), LoopGuard::State::stuck) << name << ", token " << n << " of " << ids.size();
    }
  }
}

}  // namespace
}  // namespace chimere::orchestrator
