// memory_test.cpp  Tables behind a conversation: what a user taught changes the answers to that user alone, until it is
// forgotten.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "engram/edit.h"
#include "engram/library.h"
#include "orchestrator/chat_service.h"
#include "orchestrator/models_for_test.h"
#include "tokenizer/fingerprint.h"

namespace chimere::orchestrator {
namespace {

const std::string kQuestion = "As every child in school is told, the capital of Zubrovia is";
const std::string kAnswer = " Lutzhaven";

class MemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::random_device random;
    folder_ = std::filesystem::temp_directory_path() / ("memory_test_" + std::to_string(random()));
    std::filesystem::create_directories(folder_ / "users");
    LoadOptions options;
    options.max_rows = 64;
    auto model = models::Model::load(kTinyModel, models::BackendKind::reference, options);
    ASSERT_TRUE(model) << model.error().message;
    auto chat_model = ChatModel::from_model(std::move(*model));
    ASSERT_TRUE(chat_model) << chat_model.error().message;
    tokenizer_.emplace(chat_model->tokenizer);
    vocabulary_ = {vocabulary_fingerprint(*tokenizer_), static_cast<uint32_t>(tokenizer_->n_vocab())};
    std::ofstream(folder_ / "damaged.engram", std::ios::binary) << "RGNE\2\0\0\0 and then nothing of a table";
    chat_model->open_memories(folder_.string());
    warnings_ = chat_model->warnings;
    engine::EngineConfig config;
    config.context_length = 256;
    service_ = std::make_unique<ChatService>(std::move(*chat_model), config);
  }
  void TearDown() override {
    service_.reset();
    std::filesystem::remove_all(folder_);
  }

  void teach(const std::string& path, const std::string& source) const {
    engram::Lesson lesson;
    lesson.source.id = source;
    lesson.source.day = engram::kNeverAges;
    lesson.source.score = 5;
    lesson.texts.push_back(tokenizer_->encode(kQuestion + kAnswer + ".", EncodeMode::plain, false));
    const Status taught = engram::add_lessons(path, {vocabulary_, 2, 8}, {lesson}, 4);
    ASSERT_TRUE(taught) << taught.error().message;
  }
  std::string path_of(const std::string& user) const { return engram::Library::user_file(folder_, user).string(); }

  ChatChunk last_;
  std::string answer(const MemoryUse& use) {
    CompletionRequest request;
    request.prompt = kQuestion;
    request.sampling.temperature = 0;
    request.memory = use;
    request.max_tokens = static_cast<int32_t>(tokenizer_->encode(kAnswer, EncodeMode::plain, false).size());
    auto stream = service_->complete(std::move(request));
    std::string text;
    while (auto chunk = stream->wait(kLong)) {
      text += chunk->content;
      last_ = std::move(*chunk);
    }
    return text;
  }
  static MemoryUse owned_by(const std::string& owner) {
    MemoryUse use;
    use.owner = owner;
    return use;
  }

  std::filesystem::path folder_;
  std::optional<Tokenizer> tokenizer_;
  engram::Vocabulary vocabulary_;
  std::vector<std::string> warnings_;
  std::unique_ptr<ChatService> service_;
};

TEST_F(MemoryTest, AFactOfThreeAnswersIsLearnedByItsUserAndForgotten) {
  const std::string plain = answer({});
  ASSERT_NE(plain, kAnswer);
  EXPECT_EQ(answer(owned_by("ann")), plain);
  for (const char* source : {"answer-1", "answer-2", "answer-3"}) teach(path_of("ann"), source);
  EXPECT_EQ(answer(owned_by("ann")), kAnswer);
  EXPECT_EQ(answer(owned_by("bob")), plain);
  EXPECT_EQ(answer({}), plain);
  MemoryUse off = owned_by("ann");
  off.alpha = 0;
  EXPECT_EQ(answer(off), plain);
  for (const char* source : {"answer-1", "answer-2", "answer-3"}) {
    ASSERT_TRUE(engram::forget_source(path_of("ann"), vocabulary_, source));
  }
  EXPECT_EQ(answer(owned_by("ann")), plain);
}

TEST_F(MemoryTest, NamedTablesTakePartAndUnknownOnesAreNamed) {
  for (const char* source : {"a", "b", "c"}) teach((folder_ / "geography.engram").string(), source);
  MemoryUse use;
  use.tables = {{"geography", 1}};
  EXPECT_EQ(answer(use), kAnswer);
  use.tables = {{"history", 1}};
  answer(use);
  ASSERT_EQ(last_.kind, ChatChunk::Kind::failed);
  EXPECT_EQ(last_.error->code, Code::not_found);
  EXPECT_NE(last_.error->message.find("damaged, geography"), std::string::npos) << last_.error->message;
}

TEST_F(MemoryTest, ADamagedTableIsReportedAndTheServiceGoesOn) {
  ASSERT_FALSE(warnings_.empty());
  EXPECT_NE(warnings_.back().find("damaged.engram"), std::string::npos) << warnings_.back();
  MemoryUse use;
  use.tables = {{"damaged", 1}};
  answer(use);
  EXPECT_EQ(last_.kind, ChatChunk::Kind::failed);
  answer({});
  EXPECT_EQ(last_.kind, ChatChunk::Kind::finished);
}

}  // namespace
}  // namespace chimere::orchestrator
