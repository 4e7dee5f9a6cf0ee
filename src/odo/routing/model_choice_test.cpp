// model_choice_test.cpp  The chances of names against a pass over prompt and name, and what asking leaves behind.
#include "odo/routing/model_choice.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/score.h"
#include "odo/routing/service_hooks.h"
#include "odo/routing/vector_teacher.h"
#include "orchestrator/models_for_test.h"
#include "text/utf8.h"

namespace chimere::odo {
namespace {

using orchestrator::ChatModel;
using orchestrator::ChatRequest;
using orchestrator::ChatService;

std::unique_ptr<models::Model> tiny_model() {
  LoadOptions options;
  options.max_rows = 64;
  auto model = models::Model::load(orchestrator::kTinyModel, models::BackendKind::reference, options);
  EXPECT_TRUE(model) << model.error().message;
  return std::move(*model);
}

class ModelChoiceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto model = ChatModel::from_model(tiny_model());
    ASSERT_TRUE(model) << model.error().message;
    service_.emplace(std::move(*model), engine::EngineConfig{});
    // Names of one token, so that there is one way to write them.
    for (const char* name : {"a", "b", "7"}) {
      RouteRules rules;
      rules.describes = std::string("all about ") + name;
      routes_.emplace_back(name, rules);
    }
  }

  std::vector<int32_t> prompt_ids(const std::string& question) {
    const auto job = service_->tokenize(route_question(routes_, question), {});
    for (;;) {
      if (auto ids = job->poll()) {
        EXPECT_TRUE(*ids) << ids->error().message;
        return **ids;
      }
    }
  }
  std::string answer() {
    ChatRequest request;
    chat::Message message;
    message.role = "user";
    message.content = "Tell me about a";
    request.messages = {message};
    request.max_tokens = 12;
    request.seed = 1;
    const auto stream = service_->start(request);
    std::string text;
    while (auto chunk = stream->wait(orchestrator::kLong)) text += chunk->reasoning + chunk->content;
    return text;
  }

  std::optional<ChatService> service_;
  std::vector<NamedRules> routes_;
};

TEST_F(ModelChoiceTest, GivesTheModelsOwnChances) {
  const std::unique_ptr<models::Model> same = tiny_model();
  for (const char* question : {"What is a?", "a b 7", "Tell me about a"}) {
    const auto chances = ask_model(*service_, routes_, question, {});
    ASSERT_TRUE(chances) << chances.error().message;
    ASSERT_EQ(chances->size(), 3u);
    for (size_t i = 0; i < routes_.size(); ++i) {
      std::vector<int32_t> tokens = prompt_ids(question);
      const auto name = service_->tokenizer().encode(routes_[i].first, EncodeMode::plain, false);
      ASSERT_EQ(name.size(), 1u);
      tokens.push_back(name.front());
      const auto scored = engine::score_tokens(*same, tokens);
      ASSERT_TRUE(scored) << scored.error().message;
      EXPECT_NEAR((*chances)[i], scored->back(), 1e-3) << question << ", " << routes_[i].first;
    }
  }
}

TEST_F(ModelChoiceTest, ChangesNoAnswer) {
  const std::string before = answer();
  ASSERT_TRUE(ask_model(*service_, routes_, "Tell me about a", {}));
  EXPECT_EQ(answer(), before);
}

TEST_F(ModelChoiceTest, ALateOneIsAnError) {
  ModelCall call;
  call.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  EXPECT_FALSE(ask_model(*service_, routes_, "What is a?", call));
}

TEST_F(ModelChoiceTest, AServiceLendsVectorsAndModel) {
  routes_[0].second.examples = {"a fine a", "one more a"};
  routes_[1].second.examples = {"not so fine b"};
  const auto router = Router::create(routes_, "7");
  ASSERT_TRUE(router);
  RouteHooks hooks;
  lend_vectors(service_->embedder(), {}, hooks);
  lend_model(*service_, {}, hooks);
  const auto by_vectors = (*router)->by_vectors("a fine a", hooks);
  ASSERT_TRUE(by_vectors) << by_vectors.error().message;
  EXPECT_GT((*by_vectors)[0], (*by_vectors)[1]);
  EXPECT_EQ((*by_vectors)[2], 0);  // has no examples
  const auto by_model = (*router)->by_model("a fine a", hooks);
  ASSERT_TRUE(by_model) << by_model.error().message;
  EXPECT_NEAR((*by_model)[0] + (*by_model)[1] + (*by_model)[2], 1, 1e-9);
}

TEST_F(ModelChoiceTest, VectorsAreTaughtInTheBackground) {
  routes_[0].second.examples = std::vector<std::string>(40, "a fine a");
  routes_[1].second.examples = {"not so fine b"};
  const auto created = Router::create(routes_, "7");
  ASSERT_TRUE(created);
  const std::shared_ptr<const Router> router = *created;
  const uint64_t embedder = service_->embedder().model_fingerprint();
  VectorTeacher teacher(service_->embedder());
  EXPECT_FALSE(router->knows_vectors(embedder));
  EXPECT_FALSE(teacher.hooks_for(router).embed);  // not yet, and nobody waits
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!router->knows_vectors(embedder) && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  ASSERT_TRUE(router->knows_vectors(embedder));
  const RouteHooks hooks = teacher.hooks_for(router);
  ASSERT_TRUE(hooks.embed);
  const auto chances = router->by_vectors("a fine a", hooks);
  ASSERT_TRUE(chances) << chances.error().message;
  EXPECT_GT((*chances)[0], (*chances)[1]);
  // Those without an example can not be taught, which keeps nobody waiting either.
  const auto bare = Router::create({{"7", RouteRules{}}}, "7");
  ASSERT_TRUE(bare);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(teacher.hooks_for(*bare).embed);
}

TEST_F(ModelChoiceTest, NamesMayHaveSignsOfExpressions) {
  routes_.emplace_back("c++ (old)", RouteRules{});
  const auto chances = ask_model(*service_, routes_, "What is a?", {});
  ASSERT_TRUE(chances) << chances.error().message;
  EXPECT_EQ(chances->size(), 4u);
}

TEST_F(ModelChoiceTest, LongQuestionsAreCutBetweenCharacters) {
  std::string question;
  while (question.size() < 100'000) question += "\u00e9";
  for (const std::string& asked : {question, "x" + question}) {
    const std::string text = *route_question(routes_, asked).messages.back().content;
    EXPECT_LT(text.size(), 1600u);
    EXPECT_TRUE(is_valid_utf8(text));
  }
}

}  // namespace
}  // namespace chimere::odo
