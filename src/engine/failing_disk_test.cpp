// failing_disk_test.cpp  Experts on a disk that fails while requests are under way: those fail with its message, and who
// comes when it is back finds everything as it was.
#include <gtest/gtest.h>

#include "base/scratch_for_test.h"
#include "base/unplugged_for_test.h"
#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "models/fixture_for_test.h"

namespace chimere::engine {
namespace {

Request of_seed(int seed, int max_tokens) {
  Request r;
  for (int i = 0; i < 70; ++i) r.prompt.push_back(1 + (seed * 31 + i * 37) % 200);
  r.sampling.temperature = 0.8f;
  r.sampling.seed = static_cast<uint64_t>(seed);
  r.max_tokens = max_tokens;
  return r;
}

TEST(FailingDiskOfExperts, FailsWhatIsUnderWayAndNothingElse) {
  const auto folder = fixture::scratch_folder();
  const auto path = fixture::kept("qwen3_5_moe-B-untied") / "model.gguf";
  LoadOptions options;
  options.max_rows = 96;
  options.n_threads = 2;
  options.experts_folder = folder.string();
  options.ram_bytes = fixture::least_ram_bytes(path, folder);
  auto loaded = models::Model::load(path.string(), models::BackendKind::cpu, options);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const std::unique_ptr<models::Model> model = std::move(*loaded);
  ASSERT_TRUE(model->executable().expert_traffic());
  EngineConfig config;
  config.prefill_tokens = 32;
  Gate gate;  // before the engine, whose thread may still be in it
  Engine engine(*model, config);
  const auto ask = [&](int seed) {
    auto s = engine.submit(of_seed(seed, 20));
    EXPECT_TRUE(s);
    return collect(*s->events);
  };
  const std::vector<int32_t> before = ask(1).ids;
  ASSERT_EQ(before.size(), 20u);
  auto answering = engine.submit(of_seed(2, 200), gate.hook());
  ASSERT_TRUE(answering);
  answering->events->wait();  // it has a token, and the engine stands still
  auto reading = engine.submit(of_seed(3, 200));
  ASSERT_TRUE(reading);
  {
    const fixture::Unplugged unplugged(folder);
    gate.open();
    for (Submitted* s : {&*answering, &*reading}) {
      const Answer answer = collect(*s->events);
      ASSERT_EQ(answer.end.kind, Event::Kind::failed);
      EXPECT_NE(answer.end.error->message.find(folder.string()), std::string::npos) << answer.end.error->message;
    }
    EXPECT_EQ(ask(4).end.kind, Event::Kind::failed) << "it is still gone";
    EXPECT_EQ(engine.stats().requests_failed, 3u);
  }
  EXPECT_EQ(ask(1).ids, before);
  EXPECT_EQ(ask(2).end.kind, Event::Kind::finished);
  EXPECT_EQ(engine.stats().requests_failed, 3u);
}

}  // namespace
}  // namespace chimere::engine
