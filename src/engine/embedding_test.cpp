// Embeddings through the engine: against the fixture, alone and together, beside generation, and their ends.
#include "engine/embedding.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <span>

#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "models/fixture_for_test.h"

namespace chimere::engine {
namespace {

std::unique_ptr<models::Model> load(const char* name, bool exact = false) {
  return fixture::load(fixture::kept(name), models::BackendKind::cpu, exact, {DType::F16, DType::F16, false});
}

std::vector<int32_t> ids_of_text(int seed, int n) {
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back((seed * 7919 + i * 104729) % 1000);
  return ids;
}

Vectors embed(Engine& engine, std::vector<std::vector<int32_t>> texts, Pooling pooling = Pooling::mean) {
  auto submitted = engine.embed({.texts = std::move(texts), .pooling = pooling});
  EXPECT_TRUE(submitted) << submitted.error().message;
  if (!submitted) return {};
  auto vectors = submitted->result->wait();
  EXPECT_TRUE(vectors) << vectors.error().message;
  return vectors ? std::move(*vectors) : Vectors{};
}

TEST(Embeddings, OfAnEncoderMatchTheReferenceImplementation) {
  const auto folder = fixture::kept("bert-mean");
  auto arrays = fixture::read_arrays(folder);
  auto model = fixture::load(folder, models::BackendKind::cpu, true);
  ASSERT_TRUE(model);
  Engine engine(*model, {});
  std::vector<std::vector<int32_t>> texts;
  for (const char* name : {"tokens_48", "tokens_150"}) {
    const auto ids = arrays[name].ints();
    texts.emplace_back(ids.begin(), ids.end());
  }
  const Vectors vectors = embed(engine, texts);
  ASSERT_EQ(vectors.size(), 2u);
  int i = 0;
  for (const char* name : {"pooled_norm_48", "pooled_norm_150"}) {
    const auto expected = arrays[name].floats();
    ASSERT_EQ(vectors[i].size(), expected.size());
    for (size_t j = 0; j < expected.size(); ++j) EXPECT_NEAR(vectors[i][j], expected[j], 1e-5) << name << " " << j;
    ++i;
  }
}

TEST(Embeddings, LongAndShortTextsAreTheSameTogetherAsAlone) {
  for (const char* name : {"bert-mean", "qwen3_5-A"}) {
    for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
      auto model = load(name);
      ASSERT_TRUE(model);
      EngineConfig config;
      config.prefill_tokens = 32;
      Engine engine(*model, config);
      std::vector<std::vector<int32_t>> texts;
      for (const int n : {3, 150, 1, 40, 16, 17, 100, 2})
        texts.push_back(ids_of_text(static_cast<int>(texts.size()), n));
      const Vectors together = embed(engine, texts, pooling);
      ASSERT_EQ(together.size(), texts.size());
      for (size_t i = 0; i < texts.size(); ++i) {
        EXPECT_TRUE(embed(engine, {texts[i]}, pooling)[0] == together[i]) << name << ", text " << i;
        double squares = 0;
        for (const float x : together[i]) squares += static_cast<double>(x) * x;
        EXPECT_NEAR(squares, 1.0, 1e-5);
      }
    }
  }
}

// The pairs of the fixture of a reranker, and what its definition gives.
struct RankedPairs {
  EmbedRequest request;
  std::span<const float> scores;
  std::map<std::string, fixture::Array> arrays = fixture::read_arrays(fixture::kept("bert-rank"));

  RankedPairs() {
    request.pooling = Pooling::score;
    scores = arrays["scores"].floats();
    size_t at = 0;
    for (const int32_t n : arrays["lengths"].ints()) {
      const auto ids = arrays["tokens"].ints().subspan(at, static_cast<size_t>(n));
      request.texts.emplace_back(ids.begin(), ids.end());
      at += ids.size();
    }
    const auto second_at = arrays["second_at"].ints();
    request.second_at.assign(second_at.begin(), second_at.end());
  }
};

Vectors run(Engine& engine, const EmbedRequest& request) {
  auto submitted = engine.embed(request);
  EXPECT_TRUE(submitted) << submitted.error().message;
  if (!submitted) return {};
  auto vectors = submitted->result->wait();
  EXPECT_TRUE(vectors) << vectors.error().message;
  return vectors ? std::move(*vectors) : Vectors{};
}

double product(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

TEST(Embeddings, OfWindowsAreMeansOfTheirStates) {
  for (const char* name : {"bert-mean", "qwen3_5-A"}) {
    auto model = load(name);
    ASSERT_TRUE(model);
    EngineConfig config;
    config.prefill_tokens = 32;
    Engine engine(*model, config);
    const auto windows = [&](int n_tokens, int hop) {
      return run(engine, {.texts = {ids_of_text(3, n_tokens)}, .hop_tokens = hop})[0];
    };
    const auto d = static_cast<size_t>(engine.d_model());
    for (const auto& [n_tokens, hop, n_windows] :
         {std::array{100, 32, 3}, std::array{96, 32, 2}, std::array{64, 32, 1}, std::array{20, 32, 1}}) {
      const std::vector<float> found = windows(n_tokens, hop);
      ASSERT_EQ(found.size(), static_cast<size_t>(n_windows) * d) << name << " " << n_tokens;
      for (int w = 0; w < n_windows; ++w) {
        const std::span<const float> window(found.data() + static_cast<size_t>(w) * d, d);
        EXPECT_NEAR(product(window, window), 1.0, 1e-5);
      }
    }
    const std::vector<float> whole = windows(40, 0);
    EXPECT_EQ(windows(40, 20), whole) << "two hops are the whole text";
    EXPECT_EQ(windows(40, 64), whole);
    // Both halves of a text add up to it: its vector has nothing that is not in one of theirs.
    const std::vector<float> quarters = windows(40, 10);
    const std::span<const float> first(quarters.data(), d), last(quarters.data() + 2 * d, d);
    const double both = product(first, last), a = product(whole, first), b = product(whole, last);
    EXPECT_NEAR((a * a + b * b - 2 * a * b * both) / (1 - both * both), 1.0, 1e-4) << name;
    EXPECT_LT(both, 0.999) << name;
  }
  auto model = load("bert-mean");
  ASSERT_TRUE(model);
  Engine engine(*model, {});
  EXPECT_EQ(engine.embed({.texts = {{1, 2}}, .pooling = Pooling::first, .hop_tokens = 8}).error().code,
            Code::invalid_argument);
  EXPECT_EQ(engine.embed({.texts = {{1, 2}}, .hop_tokens = -1}).error().code, Code::invalid_argument);
}

TEST(Scores, OfPairsMatchTheDefinition) {
  const RankedPairs pairs;
  ASSERT_EQ(pairs.scores.size(), 6u);
  for (const models::BackendKind backend : {models::BackendKind::reference, models::BackendKind::cpu}) {
    auto model = fixture::load(fixture::kept("bert-rank"), backend, true);
    ASSERT_TRUE(model);
    Engine engine(*model, {});
    const Vectors together = run(engine, pairs.request);
    ASSERT_EQ(together.size(), pairs.scores.size());
    for (size_t i = 0; i < together.size(); ++i) {
      ASSERT_EQ(together[i].size(), 1u);
      EXPECT_NEAR(together[i][0], pairs.scores[i], 1e-4) << i;
      const EmbedRequest alone = {
          .texts = {pairs.request.texts[i]}, .second_at = {pairs.request.second_at[i]}, .pooling = Pooling::score};
      EXPECT_EQ(run(engine, alone)[0], together[i]) << i;
      // A pair whose tokens are all of the first kind is another input.
      const EmbedRequest one_kind = {.texts = {pairs.request.texts[i]}, .pooling = Pooling::score};
      EXPECT_GT(std::abs(run(engine, one_kind)[0][0] - pairs.scores[i]), 0.01) << i;
    }
  }
}

TEST(Scores, NeedAHeadAndEveryBeginning) {
  RankedPairs pairs;
  auto encoder = load("bert-mean"), ranker = load("bert-rank");
  ASSERT_TRUE(encoder && ranker);
  Engine without(*encoder, {}), with(*ranker, {});
  const auto headless = without.embed(pairs.request);
  ASSERT_FALSE(headless);
  EXPECT_NE(headless.error().message.find("no head"), std::string::npos) << headless.error().message;
  pairs.request.second_at.pop_back();
  EXPECT_EQ(with.embed(pairs.request).error().code, Code::invalid_argument);
}

TEST(Embeddings, RunBesideGenerationAndChangeNothingOfIt) {
  auto model = load("qwen3_5-A");
  ASSERT_TRUE(model);
  Request request;
  request.prompt = ids_of_text(1, 20);
  request.sampling.temperature = 0;
  request.max_tokens = 12;
  std::vector<int32_t> alone;
  Vectors alone_vectors;
  {
    Engine engine(*model, {});
    alone = collect(*engine.submit(request)->events).ids;
    alone_vectors = embed(engine, {ids_of_text(2, 100), ids_of_text(3, 5)});
  }
  Engine engine(*model, {});
  Gate gate;
  auto answer = engine.submit(request, gate.hook());
  ASSERT_TRUE(answer);
  auto submitted = engine.embed({.texts = {ids_of_text(2, 100), ids_of_text(3, 5)}});
  ASSERT_TRUE(submitted);
  gate.open();
  EXPECT_EQ(collect(*answer->events).ids, alone);
  auto vectors = submitted->result->wait();
  ASSERT_TRUE(vectors);
  EXPECT_TRUE(*vectors == alone_vectors);
}

TEST(Embeddings, WaitForRoomInTheStateOfOthers) {
  auto model = load("qwen3_5-A");
  ASSERT_TRUE(model);
  EngineConfig config;
  const StateLayout& layout = model->executable().layout();
  // Two texts at a time.
  config.state_bytes = 2 * (layout.page_bytes() * 2 + layout.recurrent_floats() * sizeof(float));
  config.cache.ram_bytes = 0;
  config.context_length = 1 << 20;
  Engine engine(*model, config);
  std::vector<std::vector<int32_t>> texts;
  for (int i = 0; i < 12; ++i) texts.push_back(ids_of_text(i, 80));
  EXPECT_EQ(embed(engine, texts).size(), 12u);
  const auto n_pages = static_cast<int>(config.state_bytes / layout.page_bytes());
  const auto too_long = engine.embed({.texts = {ids_of_text(1, n_pages * kPageTokens)}});
  ASSERT_FALSE(too_long);
  EXPECT_NE(too_long.error().message.find("tokens needs"), std::string::npos) << too_long.error().message;
}

TEST(Embeddings, EndWhenTheyAreCancelledLateOrTheEngineStops) {
  auto model = load("qwen3_5-A");
  ASSERT_TRUE(model);
  std::shared_ptr<Channel<Result<Vectors>>> left_behind;
  {
    Engine engine(*model, {});
    Gate gate;
    Request request;
    request.prompt = ids_of_text(1, 4);
    request.max_tokens = 2;
    auto answer = engine.submit(request, gate.hook());
    ASSERT_TRUE(answer);
    answer->events->wait();  // the engine's thread is held from here on
    auto cancelled = engine.embed({.texts = {ids_of_text(2, 100)}});
    auto late = engine.embed({.texts = {ids_of_text(2, 100)}, .deadline = std::chrono::steady_clock::now()});
    auto kept = engine.embed({.texts = {ids_of_text(2, 100)}});
    ASSERT_TRUE(cancelled && late && kept);
    engine.cancel(cancelled->id);
    gate.open();
    EXPECT_EQ(cancelled->result->wait().error().code, Code::cancelled);
    EXPECT_FALSE(late->result->wait());
    EXPECT_TRUE(kept->result->wait());
    auto last = engine.embed({.texts = {ids_of_text(2, 100)}});
    ASSERT_TRUE(last);
    left_behind = last->result;
  }
  // Done or cancelled, but answered.
  EXPECT_TRUE(left_behind->take().has_value());
}

TEST(Embeddings, AreRefusedWithAReason) {
  auto model = load("bert-mean");
  ASSERT_TRUE(model);
  EngineConfig config;
  config.max_queued = 1;
  Engine engine(*model, config);
  EXPECT_EQ(engine.context_length(), 160);  // what the tests' batches hold
  EXPECT_EQ(engine.embed({}).error().code, Code::invalid_argument);
  const auto empty = engine.embed({.texts = {{1}, {}}});
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.error().message.find("text 1"), std::string::npos);
  EXPECT_FALSE(engine.embed({.texts = {ids_of_text(1, 161)}}));
  EXPECT_FALSE(engine.embed({.texts = {{-1}}}));
  Request request;
  request.prompt = {1, 2};
  const auto answer = engine.submit(request);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("is an encoder"), std::string::npos) << answer.error().message;
}

}  // namespace
}  // namespace chimere::engine
