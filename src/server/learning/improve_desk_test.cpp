// What was learned takes part in answers to its owner, adapters come and go beside them, and a job that was asked for is done
// by the next server if this one ends before.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/scratch_for_test.h"
#include "improve/closing.h"
#include "improve/example_set.h"
#include "improve/thought_setting.h"
#include "improve/tool_words.h"
#include "models/adapter_for_test.h"
#include "orchestrator/models_for_test.h"
#include "server/learning/asked_jobs.h"
#include "server/learning/learned_adapters.h"
#include "server/server_for_test.h"
#include "store/journal.h"
#include "tokenizer/fingerprint.h"

namespace chimere::server {
namespace improve_desk_test {

using improve::ArtefactStore;

std::string text_at(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Desk : public testing::Test {
 protected:
  // A server that learns; its jobs are this shell text, which sees the kind as $1.
  void start(const std::string& job) {
    server_ = std::make_unique<ServerForTest>();
    server_->model_path = orchestrator::kModelInTheBox;
    server_->backend = models::BackendKind::cpu;
    server_->config.journal = *store::Journal::open((folder_ / "journal.db").string(), store::Journal::Consent::given);
    store_ = *ArtefactStore::open((folder_ / "improve").string());
    engram::Vocabulary vocabulary;
    {
      auto model = models::Model::load(server_->model_path, models::BackendKind::cpu, {});
      auto chat = orchestrator::ChatModel::from_model(std::move(*model));
      vocabulary = {vocabulary_fingerprint(chat->tokenizer), static_cast<uint32_t>(chat->tokenizer.n_vocab())};
    }
    vocabulary_ = vocabulary.fingerprint;
    server_->config.improve.in_use = std::make_shared<improve::InUse>(store_, vocabulary);
    server_->config.improve.command = {"/bin/sh", "-c", job, "job"};
    server_->config.improve.idle = std::chrono::seconds(0);
    server_->start();
  }
  void promote(const std::string& kind, const std::string& bytes) {
    const auto artefact = store_->put(bytes);
    ASSERT_TRUE(artefact);
    ASSERT_TRUE(store_->update([&](improve::Manifest& manifest) -> Status {
      manifest.promote({"ann", kind, ""}, {*artefact, 1, "run"});
      return Ok{};
    }));
  }
  // The text, and how many tokens were read for it.
  std::pair<std::string, int> ask(const std::string& user, const std::string& more = {}) {
    const std::string question = R"({"messages":[{"role":"user","content":"What is the capital of France?"}],)";
    const ClientResponse response = server_->post(
        "/v1/chat/completions",
        question + R"("temperature":0,"max_tokens":60,"enable_thinking":false,"user":")" + user + '"' + more + "}");
    EXPECT_EQ(response.status, 200) << response.body;
    const Json body = *parse_json(response.body);
    return {body["choices"][0]["message"]["content"].get<std::string>(), body["usage"]["prompt_tokens"].get<int>()};
  }
  static bool soon(const std::function<bool()>& is_so) {
    for (int i = 0; i < 1000 && !is_so(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return is_so();
  }

  const std::filesystem::path folder_ = fixture::scratch_folder();
  std::unique_ptr<ServerForTest> server_;
  std::shared_ptr<ArtefactStore> store_;
  uint64_t vocabulary_ = 0;
};

TEST_F(Desk, AJobThatWaitsOutlivesItsServer) {
  const std::string log = (folder_ / "log").string();
  start("sleep 600");
  for (const char* kind : {"engram", "scores"}) {
    EXPECT_EQ(server_->post("/v1/improve/runs", std::string(R"({"user":"ann","kind":")") + kind + R"("})").status, 202);
  }
  const std::filesystem::path file = folder_ / "improve" / "asked.json";
  EXPECT_EQ(text_at(file), R"([{"kind":"engram","owner":"ann"},{"kind":"scores","owner":"ann"}])"
                           "\n");
  EXPECT_EQ(server_->post("/v1/improve/runs", R"({"user":"ann","kind":"engram"})").status, 400);
  // One of them is under way, perhaps; it has not come to its end.
  soon([&] { return !server_->get_json("/v1/improve?user=ann")["running"].is_null(); });
  server_.reset();
  start("echo $1 >>" + log);
  EXPECT_TRUE(soon([&] { return text_at(log) == "engram\nscores\n"; })) << text_at(log);
  EXPECT_TRUE(soon([&] { return text_at(file) == "[]\n"; })) << text_at(file);

  // Of who is forgotten nothing waits.
  server_.reset();
  start("sleep 600");
  EXPECT_EQ(server_->post("/v1/improve/runs", R"({"user":"ann","kind":"lora"})").status, 202);
  EXPECT_EQ(server_->post("/v1/improve/forget", R"({"user":"ann","all":true})").status, 200);
  EXPECT_TRUE(soon([&] { return text_at(file) == "[]\n"; })) << text_at(file);
}

TEST(AskedJobs, ADamagedFileIsAnErrorAndAnOlderStateDoesNotReplaceANewer) {
  const std::filesystem::path file = fixture::scratch_folder() / "asked.json";
  AskedJobs jobs(file.string());
  EXPECT_TRUE(jobs.read()->empty());
  ASSERT_TRUE(jobs.write(2, {{"engram", "ann"}}));
  ASSERT_TRUE(jobs.write(1, {}));
  EXPECT_EQ(*jobs.read(), (std::vector<AskedJob>{{"engram", "ann"}}));
  for (const char* text : {"{}", "[1]", R"([{"kind":"engram"}])", R"([{"kind":1,"owner":"ann"}])", "no"}) {
    std::ofstream(file) << text;
    EXPECT_FALSE(jobs.read()) << text;
  }
  std::ofstream(file) << R"([{"kind":"dreams","owner":"ann"},{"kind":"lora","owner":""}])";
  EXPECT_EQ(*jobs.read(), (std::vector<AskedJob>{{"lora", ""}}));
}

TEST_F(Desk, WhatWasLearnedTakesPartInAnswersToItsOwner) {
  start("true");
  const auto plain = ask("ann");
  ASSERT_NE(plain.first.find("Paris"), std::string::npos) << plain.first;
  promote("closing", improve::closing_bytes("\nFair winds, my friend!"));
  promote("words", improve::tool_words_bytes({{"capital", "set_lamp", "scene", "nova"}}));
  EXPECT_EQ(ask("ann").first, plain.first + "\nFair winds, my friend!");
  const Json kept = server_->get_json("/v1/learning/answers?user=ann")["data"][0];
  ASSERT_EQ(kept["artefacts"].size(), 1u) << kept.dump();  // no tool was offered
  EXPECT_TRUE(kept["artefacts"][0].get<std::string>().starts_with("closing@"));
  const std::string tools =
      R"(,"tools":[{"type":"function","function":{"name":"set_lamp","parameters":{"type":"object"}}}])";
  EXPECT_GT(ask("ann", tools).second, ask("bob", tools).second);  // (scene: nova)

  const auto width = static_cast<size_t>(2 * server_->service->embedder().dimensions());
  const improve::SetEntry entry{"c", "k", "What is a sea?", "Water.", std::vector<int16_t>(width, 100)};
  promote("examples", improve::example_set_bytes({{entry}, 1}, vocabulary_));
  EXPECT_GT(ask("ann").second, plain.second);
  // Not for others, not where they are switched off, and no closing in an answer that has a form.
  EXPECT_EQ(ask("bob"), plain);
  EXPECT_EQ(ask("ann", R"(,"engram":{"alpha":0})"), plain);
  const auto formed = ask("ann", R"(,"response_format":{"type":"json_object"})");
  EXPECT_EQ(formed.first.find("Fair winds"), std::string::npos) << formed.first;
}

TEST_F(Desk, AThoughtEndsAsWasLearned) {
  start("true");
  const auto tokens = [&](const std::string& user, const std::string& more = {}) {
    const ClientResponse response = server_->post(
        "/v1/chat/completions", R"({"messages":[{"role":"user","content":"What do 62 and 25 make together?"}],)"
                                R"("temperature":0,"max_tokens":120,"enable_thinking":true,"user":")" +
                                    user + '"' + more + "}");
    EXPECT_EQ(response.status, 200) << response.body;
    const Json body = *parse_json(response.body);
    EXPECT_NE(body["choices"][0]["message"]["content"].get<std::string>().find("87"), std::string::npos);
    return body["usage"]["completion_tokens"].get<int>();
  };
  const int whole = tokens("ann");
  promote("thinking", improve::thought_bytes({{.most = 0}, {}}, vocabulary_));
  const int left = tokens("ann");
  EXPECT_LT(left + 16, whole);
  const auto artefacts = [&] { return server_->get_json("/v1/learning/answers?user=ann")["data"][0]["artefacts"]; };
  ASSERT_EQ(artefacts().size(), 1u);
  EXPECT_TRUE(artefacts()[0].get<std::string>().starts_with("thinking@"));
  // Not for others, and not where a request says how it thinks, or that nothing learned takes part.
  EXPECT_EQ(tokens("bob"), whole);
  EXPECT_EQ(tokens("ann", R"(,"thinking_budget":400)"), whole);
  EXPECT_TRUE(artefacts().empty());
  EXPECT_EQ(tokens("ann", R"(,"engram":{"alpha":0})"), whole);
  // One of another vocabulary is as if it were not there.
  promote("thinking", improve::thought_bytes({{.most = 0}, {}}, vocabulary_ + 1));
  EXPECT_EQ(tokens("ann"), whole);
}

TEST(LearnedAdapters, AreReadBesideTheAnswersAndGivenBack) {
  const std::filesystem::path folder = fixture::scratch_folder();
  fixture::write_adapter(fixture::kept("qwen3_5-A"), 1, folder / "tone.gguf");
  auto model =
      models::Model::load(CHIMERE_TESTS_DIR "/golden/models/qwen3_5-A/model.gguf", models::BackendKind::reference, {});
  ASSERT_TRUE(model);
  models::AdapterLibrary library(**model);
  const auto store = *ArtefactStore::open((folder / "improve").string());
  const improve::Slot slot{"ann", "lora", ""};
  const auto artefact = store->put_file((folder / "tone.gguf").string());
  const auto broken = store->put("no adapter");
  ASSERT_TRUE(artefact && broken);
  const auto use = [&](const std::string& which) {
    ASSERT_TRUE(store->update([&](improve::Manifest& manifest) -> Status {
      manifest.promote(slot, {which, 1, "run"});
      return Ok{};
    }));
  };
  Workers workers(1);
  LearnedAdapters adapters(library, *store, workers);
  EXPECT_EQ(adapters.find(*artefact), nullptr);  // not in use
  use(*artefact);
  // The thread that asks is never the one that reads, so the first answer is "not yet".
  EXPECT_EQ(adapters.find(*artefact), nullptr);
  std::shared_ptr<const Adapter> held;
  for (int i = 0; i < 1000 && !held; ++i) {
    adapters.tick();
    held = adapters.find(*artefact);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_TRUE(held);
  EXPECT_TRUE(library.list().empty());  // nobody can name it
  EXPECT_EQ(adapters.n_held(), 1u);

  // Out of use: answers under way have it, and then nobody.
  use(*broken);
  const std::weak_ptr<const Adapter> memory = held;
  for (int i = 0; i < 100; ++i) {
    adapters.tick();
    EXPECT_EQ(adapters.find(*broken), nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(adapters.n_held(), 0u);
  EXPECT_EQ(adapters.find(*artefact), nullptr);
  held.reset();
  EXPECT_TRUE(memory.expired());
}

}  // namespace improve_desk_test
}  // namespace chimere::server
