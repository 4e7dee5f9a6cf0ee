// memory_service_test.cpp  Notes are taught, listed and taken back without a model in sight.
#include "orchestrator/memory_service.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/scratch_for_test.h"
#include "engram/library.h"
#include "gguf/gguf.h"
#include "orchestrator/models_for_test.h"
#include "tokenizer/fingerprint.h"

namespace chimere::orchestrator {
namespace {

class MemoryServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto file = gguf::File::open(kTinyModel);
    ASSERT_TRUE(file) << file.error().message;
    auto tokenizer = Tokenizer::from_metadata(file->metadata());
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    tokenizer_.emplace(std::move(*tokenizer));
  }

  MemoryFiles files() const {
    const std::string folder = fixture::scratch_folder().string();
    const engram::Vocabulary vocabulary{vocabulary_fingerprint(*tokenizer_),
                                        static_cast<uint32_t>(tokenizer_->n_vocab())};
    return {std::make_shared<engram::Library>(folder, vocabulary, ""),
            std::make_shared<retrieval::NoteLibrary>(folder, retrieval::NoteLimits{}), nullptr};
  }

  template <class T>
  static Result<T> result_of(const std::unique_ptr<ServiceJob<T>>& job) {
    for (;;) {
      if (auto result = job->poll()) return std::move(*result);
      std::this_thread::yield();
    }
  }

  std::optional<Tokenizer> tokenizer_;
};

LessonCall lesson(const std::string& owner, float score = 5) {
  return {owner, "The capital of Zubrovia is Lutzhaven.", "accepted", score};
}

// Something of this owner's is mixed into the answer.
bool takes_part(const MemoryService& memory, const std::string& owner) {
  MemoryUse use;
  use.owner = owner;
  const auto sources = memory.sources_for(use, {});
  EXPECT_TRUE(!sources || (sources->memory != nullptr) == (sources->drafts != nullptr));
  return sources && sources->memory;
}

TEST_F(MemoryServiceTest, ANoteIsItsOwnersUntilItIsTakenBack) {
  MemoryService memory(*tokenizer_, files());
  const auto learned = result_of(memory.learn(lesson("ann"), {}));
  ASSERT_TRUE(learned) << learned.error().message;
  EXPECT_TRUE(learned->learned);
  EXPECT_GT(learned->n_tokens, 0);
  EXPECT_EQ(result_of(memory.list_notes("ann", {}))->size(), 1u);
  EXPECT_TRUE(result_of(memory.list_notes("bob", {}))->empty());
  EXPECT_EQ(result_of(memory.list("ann", {}))->n_notes, 1u);
  EXPECT_EQ(memory.usage()->files, 1u);
  EXPECT_TRUE(takes_part(memory, "ann"));
  EXPECT_FALSE(takes_part(memory, "bob"));
  const ForgetCall one{"ann", "", learned->note};
  EXPECT_EQ(result_of(memory.forget(one, {}))->notes, 1u);
  EXPECT_EQ(result_of(memory.forget(one, {})).error().code, Code::not_found);
  EXPECT_FALSE(memory.notebook_of("ann") && memory.notebook_of("ann")->size() > 0);
}

TEST_F(MemoryServiceTest, AnAnswerThatWasNotGoodIsNotKept) {
  MemoryService memory(*tokenizer_, files());
  EXPECT_FALSE(result_of(memory.learn(lesson("ann", 2), {}))->learned);
  EXPECT_TRUE(result_of(memory.list_notes("ann", {}))->empty());
}

TEST_F(MemoryServiceTest, WithoutAFolderNothingIsLearnedAndNothingTakesPart) {
  MemoryService memory(*tokenizer_, {});
  EXPECT_EQ(result_of(memory.learn(lesson("ann"), {})).error().code, Code::invalid_argument);
  EXPECT_FALSE(result_of(memory.list("ann", {}))->limits);
  EXPECT_FALSE(memory.usage());
  EXPECT_FALSE(takes_part(memory, "ann"));
  MemoryUse use;
  use.tables = {{"geography", 1}};
  EXPECT_FALSE(memory.sources_for(use, {}));
}

}  // namespace
}  // namespace chimere::orchestrator
