// budget_test.cpp  Tokens by key: counted, told to those who may see them, and limited.
#include <gtest/gtest.h>

#include <fstream>

#include "base/scratch_for_test.h"
#include "server/http/key_usage.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

using std::chrono::hours;

TEST(KeyUsage, CountsByDayAndInAll) {
  KeyUsage usage;
  const KeyUsage::Clock::time_point noon{hours(24 * 20000 + 12)};
  usage.add("ann", {100, 60, 10}, noon);
  usage.add("ann", {100, 0, 10}, noon + hours(11));
  EXPECT_EQ(usage.of("ann", noon).today.computed(), 160u);
  EXPECT_EQ(usage.of("ann", noon + hours(12)).today.computed(), 0u) << "another day";
  usage.add("bob", {5, 0, 5}, noon + hours(12));
  EXPECT_EQ(usage.of("ann", noon + hours(12)).today.computed(), 0u);
  EXPECT_EQ(usage.of("ann", noon + hours(12)).all.computed(), 160u);
  EXPECT_EQ(usage.of("eve", noon).all.computed(), 0u);
  EXPECT_EQ(KeyUsage::next_day(noon), noon + hours(12));
}

TEST(KeyUsage, OutlivesTheServer) {
  const std::string file = (fixture::scratch_folder() / "usage").string();
  const KeyUsage::Clock::time_point now = KeyUsage::Clock::now();
  {
    KeyUsage usage(file);
    usage.add("ann", {100, 60, 10}, now);
    EXPECT_TRUE(usage.text_to_save(now));
    EXPECT_FALSE(usage.text_to_save(now)) << "nothing has changed";
    usage.add("ann", {1, 0, 0}, now);
    EXPECT_FALSE(usage.text_to_save(now)) << "not so often";
  }
  KeyUsage usage(file);
  EXPECT_EQ(usage.of("ann", now).today.computed(), 51u);
  EXPECT_EQ(usage.all(now).size(), 1u);
  for (const char* damaged :
       {"", "{", "[]", R"({"day":"x","keys":{}})", R"({"day":1,"keys":{"a":{"all":[1,-2,3]}}})"}) {
    std::ofstream(file) << damaged;
    EXPECT_EQ(KeyUsage(file).of("a", now).all.computed(), 0u) << damaged;
  }
}

class BudgetTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.config.keys.add_lines(key_line({"ann", sha256_hex("ann"), 30, false}) + "\n" +
                                                  key_line({"bob", sha256_hex("bob"), 0, false}) + "\n" +
                                                  key_line({"boss", sha256_hex("boss"), 0, true}),
                                              "keys"));
    server_.start();
  }
  ClientResponse post(const std::string& who, const std::string& path, const std::string& body) const {
    return server_.post(path, body, "x-api-key: " + who + "\r\n");
  }
  ClientResponse chat(const std::string& who) const {
    return post(who, "/v1/chat/completions", chat_body(R"("max_tokens":5)"));
  }
  Json keys(const std::string& who) const {
    const auto json = parse_json(server_.get("/v1/status", "x-api-key: " + who + "\r\n").body);
    return json ? (*json)["keys"] : Json();
  }
  // The record of a request ends a moment after its last byte.
  Json keys_when(const std::string& who, const std::function<bool(const Json&)>& so) const {
    for (int i = 0; i < 500; ++i) {
      if (Json json = keys(who); so(json)) return json;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return keys(who);
  }
  ServerForTest server_;
};

TEST_F(BudgetTest, EachKeySeesItsOwnAndAnAdminAll) {
  ASSERT_EQ(chat("bob").status, 200);
  ASSERT_EQ(chat("ann").status, 200);
  const Json own = keys_when("bob", [](const Json& json) { return json[0]["today"]["generated"] == 5; });
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0]["name"], "bob");
  EXPECT_EQ(own[0]["today"]["generated"], 5);
  EXPECT_GT(own[0]["today"]["prompt"], 0);
  EXPECT_EQ(own[0]["all"], own[0]["today"]);
  EXPECT_TRUE(own[0]["tokens_per_day"].is_null());
  const Json all = keys_when("boss", [](const Json& json) { return json.size() == 2; });
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["name"], "ann");
  EXPECT_EQ(all[0]["tokens_per_day"], 30);
}

TEST_F(BudgetTest, ASpentBudgetIsRefusedInTheWordsOfEachProtocol) {
  ClientResponse refused;
  for (int i = 0; i < 200 && refused.status != 429; ++i) refused = chat("ann");
  ASSERT_EQ(refused.status, 429);
  EXPECT_NE(refused.body.find("token_budget_exceeded"), std::string::npos) << refused.body;
  EXPECT_NE(refused.body.find("of its 30 tokens of today"), std::string::npos) << refused.body;
  EXPECT_NE(refused.body.find("T00:00:00Z"), std::string::npos) << refused.body;
  const int wait = std::atoi(refused.header("Retry-After").c_str());
  EXPECT_GT(wait, 0);
  EXPECT_LE(wait, 86400);
  const ClientResponse anthropic = post("ann", "/v1/messages", R"({"max_tokens":5,"messages":[]})");
  EXPECT_EQ(anthropic.status, 429);
  EXPECT_EQ((*parse_json(anthropic.body))["type"], "error");
  EXPECT_EQ((*parse_json(anthropic.body))["error"]["type"], "rate_limit_error");
  const ClientResponse ollama = post("ann", "/api/chat", R"({"messages":[]})");
  EXPECT_EQ(ollama.status, 429);
  EXPECT_TRUE((*parse_json(ollama.body))["error"].is_string());
  EXPECT_EQ(post("ann", "/chat/completions", chat_body(R"("max_tokens":5)")).status, 429) << "another name of it";
  EXPECT_EQ(post("ann", "/tokenize", R"({"content":"x"})").status, 200) << "uses no tokens";
  EXPECT_EQ(chat("bob").status, 200);
}

TEST_F(BudgetTest, AClientThatLeavesHasUsedWhatItRead) {
  {
    Client leaves(server_.port());
    leaves.send(post_text("/v1/chat/completions", chat_body(R"("max_tokens":900,"stream":true,"ignore_eos":true)"),
                          "x-api-key: bob\r\n"));
    ASSERT_TRUE(leaves.read_until("\"content\""));
    ASSERT_TRUE(leaves.read_until("data:"));
  }
  const Json own = keys_when("bob", [](const Json& json) { return json[0]["today"]["prompt"] > 0; });
  EXPECT_GT(own[0]["today"]["prompt"], 0) << own.dump();
}

TEST(Budget, WithoutKeysThereIsOneCount) {
  ServerForTest server;
  server.start();
  ASSERT_EQ(server.post("/v1/chat/completions", chat_body(R"("max_tokens":5)")).status, 200);
  Json keys;
  for (int i = 0; i < 500 && (keys = server.get_json("/v1/status")["keys"]).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_TRUE(keys[0]["name"].is_null());
  EXPECT_EQ(keys[0]["today"]["generated"], 5);
}

}  // namespace
}  // namespace chimere::server
