// conversation_reuse_test.cpp  A conversation with an agent on the shipped model reads only what is new: turn by turn,
// after a restart, and when its last turn is written anew.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>

#include "orchestrator/chat_service.h"
#include "orchestrator/models_for_test.h"

namespace chimere::orchestrator {
namespace {

namespace fs = std::filesystem;

chat::Message message(const char* role, std::string content) {
  chat::Message m;
  m.role = role;
  m.content = std::move(content);
  return m;
}

// Some 2,000 tokens that repeat nothing.
std::string instructions() {
  std::string text = "You are a careful assistant who looks after a workshop.";
  for (int i = 0; i < 110; ++i) {
    text += " Rule " + std::to_string(i) + ": put part " + std::to_string(i * 37 % 1009) + " on shelf " +
            std::to_string(i * 53 % 211) + " and tell who asked for it.";
  }
  return text;
}

class ConversationReuse : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("chimere-conversation-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    start();
  }
  void TearDown() override {
    service_.reset();
    fs::remove_all(folder_);
  }

  void start() {
    service_.reset();
    LoadOptions options;
    options.n_threads = 1;
    auto model =
        models::Model::load(CHIMERE_TESTS_DIR "/../assets/chimere-nano.gguf", models::BackendKind::cpu, options);
    ASSERT_TRUE(model) << model.error().message;
    auto chat_model = ChatModel::from_model(std::move(*model));
    ASSERT_TRUE(chat_model) << chat_model.error().message;
    engine::EngineConfig config;
    config.context_length = 16384;
    config.cache.disk.folder = folder_.string();
    config.cache.disk.quota_bytes = uint64_t{1} << 30;
    config.cache.disk.log = [](const std::string& line) { ADD_FAILURE() << line; };
    service_ = std::make_unique<ChatService>(std::move(*chat_model), config);
  }

  std::vector<int32_t> ids(const ChatRequest& request) {
    std::promise<void> done;
    auto job = service_->tokenize(request, [&] { done.set_value(); });
    done.get_future().wait();
    auto result = job->poll();
    EXPECT_TRUE(result && *result);
    return result && *result ? **result : std::vector<int32_t>{};
  }

  // Sends the conversation and checks that what was read before is not read again; returns the answer.
  chat::Message ask(const ChatRequest& request, const char* when) {
    const std::vector<int32_t> prompt = ids(request);
    size_t known = 0;
    for (const auto& [read, n_answer] : read_before_) {
      const size_t n = std::min(read.size(), prompt.size());
      const auto common =
          static_cast<size_t>(std::mismatch(read.begin(), read.begin() + n, prompt.begin()).first - read.begin());
      // The answer may have come back as it was: then it was read before as well.
      known = std::max(known, common == read.size() ? std::min(common + n_answer, prompt.size()) : common);
    }
    auto stream = service_->start(request);
    chat::Message answer = message("assistant", "");
    answer.reasoning_content = "";
    ChatChunk last;
    while (auto chunk = stream->wait(kLong)) {
      *answer.content += chunk->content;
      *answer.reasoning_content += chunk->reasoning;
      last = std::move(*chunk);
    }
    EXPECT_EQ(last.kind, ChatChunk::Kind::finished);
    EXPECT_EQ(last.usage.prompt_tokens, static_cast<int32_t>(prompt.size()));
    EXPECT_GE(last.usage.cached_tokens, 0.95 * static_cast<double>(known))
        << when << ": of " << known << " tokens that were read before, in a prompt of " << prompt.size();
    read_before_.push_back({prompt, static_cast<size_t>(last.usage.completion_tokens)});
    return answer;
  }

  fs::path folder_;
  std::unique_ptr<ChatService> service_;
  std::vector<std::pair<std::vector<int32_t>, size_t>> read_before_;  // prompt, tokens of its answer
};

TEST_F(ConversationReuse, OnlyWhatIsNewIsRead) {
  ChatRequest request;
  request.messages = {message("system", instructions())};
  request.sampling.temperature = 0;
  request.max_tokens = 24;
  request.thinking_budget = 8;
  for (int turn = 1; turn <= 10; ++turn) {
    const std::string n = std::to_string(turn);
    if (turn % 3 == 0) {
      request.messages.push_back(message("tool", "{\"shelf\": " + n + ", \"parts\": [1, 2, " + n + "]}"));
    } else {
      request.messages.push_back(message("user", "Question " + n + ": which part lies on shelf " + n + " now?"));
    }
    EXPECT_GE(ids(request).size(), 2000u);
    const chat::Message answer = ask(request, ("turn " + n).c_str());
    if (turn < 10) request.messages.push_back(answer);
  }
  start();
  ask(request, "after a restart");
  request.messages.back().content = "And who has been asking for it this morning?";
  ask(request, "the last turn written anew");
  start();
  request.messages.back().content = "Thank you. What else is missing?";
  ask(request, "the last turn written anew after a restart");
}

}  // namespace
}  // namespace chimere::orchestrator
