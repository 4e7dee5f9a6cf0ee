// Passages that mean the same as a question take part in its answer, for those who may see them: over HTTP, greedy.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "retrieval/passage_library.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

const std::string kAboutThePassage = "As every child in school is told, the capital of Zubrovia is";
const std::string kPassage = kAboutThePassage + " Lutzhaven.";

class Passages : public testing::Test {
 protected:
  void SetUp() override {
    std::random_device random;
    folder_ = std::filesystem::temp_directory_path() / ("passages_test_" + std::to_string(random()));
    std::filesystem::create_directories(folder_);
    server_.engram = folder_.string();
    server_.start();
    save(folder_ / "notes.passages", {{"atlas", kPassage}, {"kitchen", "Boil the noodles for ten minutes."}});
  }
  void TearDown() override {
    server_.stop();
    std::filesystem::remove_all(folder_);
  }

  // Embedded by the model that is served. `model`: another fingerprint, as if another one had done it.
  void save(const std::filesystem::path& path, const std::vector<retrieval::Passage>& passages, uint64_t model = 0) {
    orchestrator::Embedder& embedder = server_.service->embedder();
    retrieval::PassageIndex index(model ? model : embedder.model_fingerprint(), embedder.dimensions());
    for (const retrieval::Passage& passage : passages) {
      orchestrator::EmbedCall call;
      call.inputs.push_back({passage.text});
      auto embedded = embedder.embed_now(std::move(call));
      ASSERT_TRUE(embedded) << embedded.error().message;
      const Status added = index.add(passage, embedded->vectors[0]);
      ASSERT_TRUE(added) << added.error().message;
    }
    std::filesystem::create_directories(path.parent_path());
    const Status saved = index.save(path.string());
    ASSERT_TRUE(saved) << saved.error().message;
  }
  Json ask(const std::string& engram, const std::string& more = {}, int status = 200) {
    const ClientResponse response = server_.post(
        "/v1/completions", R"({"prompt":")" + kAboutThePassage + R"(","temperature":0,"max_tokens":8,"engram":{)" +
                               engram + "}" + more + "}");
    EXPECT_EQ(response.status, status) << response.body;
    auto json = parse_json(response.body);
    return json ? *json : Json();
  }
  static std::string text(const Json& json) { return json["choices"][0]["text"].get<std::string>(); }

  std::filesystem::path folder_;
  ServerForTest server_;
};

TEST_F(Passages, TheNearestChangeTheAnswerAndAreNamedInIt) {
  const Json before = ask("");
  ASSERT_EQ(text(before).find("Lutzhaven"), std::string::npos);
  EXPECT_FALSE(before.contains("engram"));
  const Json with = ask(R"("passages":"notes","top":1)");
  EXPECT_EQ(text(with).find(" Lutzhaven"), 0u) << with;
  ASSERT_EQ(with["engram"]["passages"].size(), 1u) << with;
  EXPECT_EQ(with["engram"]["passages"][0]["source"], "atlas");
  EXPECT_EQ(with["engram"]["passages"][0]["text"], kPassage);
  EXPECT_GT(with["engram"]["passages"][0]["score"], 0.5);
  const Json both = ask(R"("passages":"notes")");
  EXPECT_LE(both["engram"]["passages"].size(), 2u) << both;
  EXPECT_EQ(both["engram"]["passages"][0]["source"], "atlas");
}

TEST_F(Passages, WithAlphaZeroTheAnswerIsTheSameAsWithout) {
  const std::string logprobs = R"(,"logprobs":1)";
  const Json before = ask("", logprobs), off = ask(R"("passages":"notes","alpha":0)", logprobs);
  EXPECT_EQ(before["choices"], off["choices"]);
  EXPECT_FALSE(off.contains("engram"));
}

TEST_F(Passages, AGrammarIsNeverBroken) {
  const std::string digits = text(ask(R"("passages":"notes","alpha":2)", R"(,"regex":"[0-9]{4}")"));
  EXPECT_EQ(digits.size(), 4u);
  EXPECT_TRUE(std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) << digits;
}

TEST_F(Passages, AUsersOwnAreFoundByThatUserAlone) {
  save(retrieval::PassageLibrary::user_folder(folder_, "ann") / "diary.passages", {{"diary", kPassage}});
  const Json ann = ask(R"("passages":"diary")", R"(,"user":"ann")");
  EXPECT_EQ(text(ann).find(" Lutzhaven"), 0u) << ann;
  for (const char* user : {R"(,"user":"bob")", R"()", R"(,"user":"ann/diary")"}) {
    const Json refused = ask(R"("passages":"diary")", user, 400);
    EXPECT_NE(refused["error"]["message"].get<std::string>().find("notes"), std::string::npos) << refused;
    EXPECT_EQ(refused["error"]["message"].get<std::string>().find("there is diary"), std::string::npos) << refused;
  }
  ask(R"("passages":"users/ann/diary")", R"(,"user":"bob")", 400);
  ask(R"("passages":"../notes")", "", 400);
  // One's own file stands before the one of the same name for all.
  save(retrieval::PassageLibrary::user_folder(folder_, "ann") / "notes.passages", {{"mine", kPassage}});
  EXPECT_EQ(ask(R"("passages":"notes","top":1)", R"(,"user":"ann")")["engram"]["passages"][0]["source"], "mine");
  EXPECT_EQ(ask(R"("passages":"notes","top":1)", R"(,"user":"bob")")["engram"]["passages"][0]["source"], "atlas");
}

// Passages and notes stand in the prompt as text, so they are counted where prompts are.
TEST_F(Passages, AreCountedWithTheTokensOfAPrompt) {
  const auto posted = [&](const std::string& path, const std::string& body) {
    const ClientResponse response = server_.post(path, body);
    EXPECT_EQ(response.status, 200) << path << ": " << response.body;
    auto json = parse_json(response.body);
    return json ? *json : Json();
  };
  posted("/v1/engram/accept", R"({"user":"ann","text":")" + kAboutThePassage + R"( known for its harbour."})");
  const std::string asked = R"("messages":[{"role":"user","content":")" + kAboutThePassage + R"("}],"engram":)";
  std::vector<int> counts;
  for (const std::string engram : {R"({"alpha":0})", R"({"notes":3})", R"({"passages":"notes","notes":3})"}) {
    const std::string chat = "{" + asked + engram + R"(,"user":"ann","max_tokens":1})";
    counts.push_back(posted("/tokenize", chat)["count"]);
    EXPECT_EQ(posted("/v1/chat/completions", chat)["usage"]["prompt_tokens"], counts.back()) << engram;
    const std::string message = "{" + asked + engram + R"(,"metadata":{"user_id":"ann"})";
    const int n = posted("/v1/messages/count_tokens", message + "}")["input_tokens"];
    const Json usage = posted("/v1/messages", message + R"(,"max_tokens":1})")["usage"];
    EXPECT_EQ(usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>(), n) << engram;
  }
  EXPECT_GT(counts[1], counts[0] + 5) << "the note";
  EXPECT_GT(counts[2], counts[1] + 5) << "the passage";
}

TEST_F(Passages, EveryProtocolNamesThem) {
  const std::string engram = R"("engram":{"passages":"notes","top":1},"max_tokens":4,"temperature":0)";
  const std::string messages = R"("messages":[{"role":"user","content":")" + kAboutThePassage + R"("}],)";
  const auto source = [&](const std::string& path, const std::string& body) {
    const ClientResponse response = server_.post(path, body);
    EXPECT_EQ(response.status, 200) << response.body;
    auto json = parse_json(response.body);
    return json ? (*json)["engram"]["passages"][0]["source"].get<std::string>() : std::string();
  };
  EXPECT_EQ(source("/v1/chat/completions", "{" + messages + engram + "}"), "atlas");
  EXPECT_EQ(source("/v1/messages", "{" + messages + engram + R"(,"model":"x"})"), "atlas");
  EXPECT_EQ(source("/v1/responses", R"({"input":")" + kAboutThePassage +
                                        R"(","engram":{"passages":"notes","top":1},"max_output_tokens":4})"),
            "atlas");
  for (const char* path : {"/v1/chat/completions", "/v1/messages"}) {
    const ClientResponse streamed = server_.post(path, "{" + messages + engram + R"(,"model":"x","stream":true})");
    EXPECT_NE(streamed.body.find(R"("source":"atlas")"), std::string::npos) << streamed.body;
  }
}

TEST_F(Passages, WhatCanNotBeUsedIsRefusedAndTheServerGoesOn) {
  save(folder_ / "foreign.passages", {{"atlas", kPassage}}, 12345);
  std::ofstream(folder_ / "damaged.passages", std::ios::binary) << "no passages";
  EXPECT_NE(ask(R"("passages":"foreign")", "", 400)["error"]["message"].get<std::string>().find("--embedding-model"),
            std::string::npos);
  const ClientResponse damaged =
      server_.post("/v1/completions", R"({"prompt":"x","engram":{"passages":"damaged"},"max_tokens":1})");
  EXPECT_GE(damaged.status, 400) << damaged.body;
  ask(R"("passages":"unknown")", "", 400);
  ask(R"("passages":"notes","top":0)", "", 400);
  ask(R"("passages":"notes","top":17)", "", 400);
  ask(R"("passages":3)", "", 400);
  EXPECT_EQ(text(ask(R"("passages":"notes","top":1)")).find(" Lutzhaven"), 0u);
}

TEST_F(Passages, TablesAndPassagesAreListed) {
  EXPECT_EQ(server_.post("/v1/engram/accept", R"({"user":"ann","text":"a b c d e"})").status, 200);
  const Json list = server_.get_json("/v1/engram");
  EXPECT_EQ(list["passages"], Json::array({"notes"})) << list;
  EXPECT_TRUE(list["tables"].is_array()) << list;
  EXPECT_TRUE(list["own"].is_null()) << list;  // nobody asked
}

}  // namespace
}  // namespace chimere::server
