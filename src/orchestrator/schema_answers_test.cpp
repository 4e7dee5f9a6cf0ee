// schema_answers_test.cpp  Answers bound to schemas that bound nothing themselves: they all come to an end, below the
// limit that is announced, and what they end with is JSON that fits.
//
// CHIMERE_SCHEMAS, CHIMERE_SEEDS and CHIMERE_CONTEXT run more of the same; the figures are printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "grammar/schema_validator_for_test.h"
#include "orchestrator/chat_service.h"
#include "orchestrator/constraints.h"
#include "orchestrator/models_for_test.h"

namespace chimere::orchestrator {
namespace {

using Json = nlohmann::ordered_json;

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

// Strings, numbers, lists and objects without any greatest length, as people write schemas.
class SchemaGenerator {
 public:
  explicit SchemaGenerator(uint32_t seed) : random_(seed) {}

  Json object(int depth = 0) {
    static const char* kNames[] = {"name", "age", "city", "summary", "tags", "price", "items", "reason", "ok", "notes"};
    Json properties = Json::object(), required = Json::array();
    const int n = 2 + below(3);
    while (static_cast<int>(properties.size()) < n) {
      const std::string name = kNames[below(std::size(kNames))];
      if (properties.contains(name)) continue;
      properties[name] = value(depth + 1);
      if (below(5) > 0) required.push_back(name);
    }
    Json schema = {{"type", "object"}, {"properties", properties}, {"required", required}};
    if (below(2) == 0) schema["additionalProperties"] = false;
    return schema;
  }

 private:
  int below(size_t n) { return static_cast<int>(random_() % n); }

  Json value(int depth) {
    switch (below(depth < 3 ? 8 : 5)) {
      case 0:
      case 1: return {{"type", "string"}};
      case 2: return {{"type", below(2) ? "integer" : "number"}};
      case 3: return {{"type", "boolean"}};
      case 4: return {{"enum", {"red", "green", "a longer one"}}};
      case 5: return {{"type", "array"}, {"items", value(depth + 1)}};
      case 6: return {{"anyOf", {value(depth + 1), {{"type", "null"}}}}};
      default: return object(depth + 1);
    }
  }

  std::mt19937 random_;
};

struct Asked {
  std::string schema;
  std::unique_ptr<ChatStream> stream;
  std::string content;
  int32_t limit = -1;
};

TEST(SchemaAnswersTest, EveryOneComesToItsEnd) {
  const int n_schemas = from_environment("CHIMERE_SCHEMAS", 20), n_seeds = from_environment("CHIMERE_SEEDS", 2);
  LoadOptions options;
  options.max_rows = 64;
  options.n_threads = from_environment("CHIMERE_THREADS", 1);
  auto model = models::Model::load(kModelInTheBox, models::BackendKind::cpu, options);
  ASSERT_TRUE(model) << model.error().message;
  auto chat_model = ChatModel::from_model(std::move(*model));
  ASSERT_TRUE(chat_model) << chat_model.error().message;
  engine::EngineConfig config;
  config.max_running = 8;
  // Smaller than the limit of such answers, so that few tokens are enough to see that it holds.
  config.context_length = from_environment("CHIMERE_CONTEXT", 640);
  ChatService service(std::move(*chat_model), config);

  const auto began = std::chrono::steady_clock::now();
  std::map<Finish, int> finishes;
  std::vector<int32_t> lengths;
  const auto end = [&](Asked& asked) {
    ChatChunk last;
    while (auto chunk = asked.stream->wait(kLong)) {
      if (chunk->kind == ChatChunk::Kind::started) asked.limit = chunk->answer_limit;
      asked.content += chunk->content;
      last = std::move(*chunk);
    }
    ASSERT_EQ(last.kind, ChatChunk::Kind::finished) << (last.error ? last.error->message : "") << asked.schema;
    ASSERT_GT(asked.limit, 0);
    EXPECT_LE(asked.limit, Constraints::kMaxAnswerTokens);
    EXPECT_LE(last.usage.completion_tokens, asked.limit) << asked.schema;
    const auto value = nlohmann::json::parse(asked.content, nullptr, false);
    EXPECT_FALSE(value.is_discarded()) << asked.schema << "\n" << asked.content;
    const grammar::SchemaValidator validator(nlohmann::json::parse(asked.schema));
    if (!value.is_discarded()) {
      EXPECT_TRUE(validator.fits(value)) << asked.schema << "\n" << asked.content;
    }
    ++finishes[last.finish];
    lengths.push_back(last.usage.completion_tokens);
  };

  static const char* kQuestions[] = {"Tell me about Paris.", "Hello", "What is 12 + 30?",
                                     "Describe a friend of yours."};
  std::deque<Asked> running;
  for (int i = 0; i < n_schemas; ++i) {
    SchemaGenerator generator(static_cast<uint32_t>(i));
    const std::string schema = generator.object().dump();
    for (int seed = 0; seed < n_seeds; ++seed) {
      ChatRequest request;
      chat::Message message;
      message.role = "user";
      message.content = kQuestions[i % 4];
      request.messages = {message};
      request.sampling.temperature = 1.0f;
      request.seed = static_cast<uint64_t>(seed);
      request.enable_thinking = false;
      request.form.json_schema = schema;
      running.push_back({schema, service.start(request), "", -1});
      if (running.size() < 8) continue;
      end(running.front());
      running.pop_front();
    }
  }
  for (; !running.empty(); running.pop_front()) end(running.front());
  EXPECT_EQ(lengths.size(), static_cast<size_t>(n_schemas * n_seeds));
  EXPECT_GT(finishes[Finish::stop], finishes[Finish::length]) << "most end by themselves";

  std::sort(lengths.begin(), lengths.end());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const auto at = [&](double part) {
    return lengths[static_cast<size_t>(part * static_cast<double>(lengths.size() - 1))];
  };
  std::printf("%zu answers in %.0f s: stop %d, length %d, loop %d; tokens median %d, 90 %% %d, 99 %% %d, most %d\n",
              lengths.size(), seconds, finishes[Finish::stop], finishes[Finish::length], finishes[Finish::loop],
              at(0.5), at(0.9), at(0.99), lengths.back());
}

}  // namespace
}  // namespace chimere::orchestrator
