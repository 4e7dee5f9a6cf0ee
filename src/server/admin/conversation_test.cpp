// conversation_test.cpp  Conversations kept by key: revisions, conflicts, limits, and what a crash leaves.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/scratch_for_test.h"
#include "server/admin/conversation_store.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

namespace fs = std::filesystem;
using Outcome = ConversationStore::Change::Outcome;

class ConversationStoreTest : public testing::Test {
 protected:
  std::shared_ptr<ConversationStore> open(ConversationLimits limits = {}) const {
    auto store = ConversationStore::open(folder_.string(), limits);
    EXPECT_TRUE(store) << store.error().message;
    return *store;
  }
  const fs::path folder_ = fixture::scratch_folder();
};

TEST_F(ConversationStoreTest, RevisionsGrowAndNoneIsGivenTwice) {
  std::string name;
  {
    auto store = open();
    EXPECT_EQ(store->put("a", "one", "{}", {})->revision, 1u);
    EXPECT_EQ(store->put("a", "two", R"({"x":1})", {})->revision, 2u);
    EXPECT_EQ(store->put("b", "one", "{}", {})->revision, 1u) << "of each owner";
    EXPECT_EQ(store->remove("a", "two", {})->revision, 3u);
    EXPECT_EQ(store->remove("a", "two", {})->outcome, Outcome::missing);
    name = store->list("a")->store;
    EXPECT_NE(name, store->list("b")->store);
  }
  auto store = open();  // as after a restart
  const auto list = store->list("a");
  ASSERT_TRUE(list);
  EXPECT_EQ(list->store, name);
  EXPECT_EQ(list->revision, 3u);
  ASSERT_EQ(list->entries.size(), 1u);
  EXPECT_EQ(list->entries[0].id, "one");
  EXPECT_EQ(store->put("a", "two", "{}", {})->revision, 4u);
}

TEST_F(ConversationStoreTest, AChangeOfSomethingOlderIsRefused) {
  auto store = open();
  ASSERT_TRUE(store->put("", "c", "{}", {}));
  EXPECT_EQ(store->put("", "c", "{}", {{1}, false})->revision, 2u);
  const auto late = store->put("", "c", R"({"late":true})", {{1}, false});
  EXPECT_EQ(late->outcome, Outcome::changed_meanwhile);
  EXPECT_EQ(late->revision, 2u);
  EXPECT_EQ((*store->get("", "c"))->json, "{}");
  EXPECT_EQ(store->put("", "c", "{}", {{}, true})->outcome, Outcome::changed_meanwhile) << "it is there";
  EXPECT_EQ(store->put("", "new", "{}", {{7}, false})->outcome, Outcome::changed_meanwhile) << "it is not there";
  EXPECT_EQ(store->remove("", "c", {{1}, false})->outcome, Outcome::changed_meanwhile);
  EXPECT_EQ(store->remove("", "c", {{2}, false})->outcome, Outcome::made);
}

TEST_F(ConversationStoreTest, ClearingBeginsAnotherCollection) {
  auto store = open();
  ASSERT_TRUE(store->put("a", "one", "{}", {}));
  ASSERT_TRUE(store->put("b", "one", "{}", {}));
  const std::string name = store->list("a")->store;
  EXPECT_EQ(*store->clear("a"), 1u);
  EXPECT_NE(store->list("a")->store, name);
  EXPECT_TRUE(store->list("a")->entries.empty());
  EXPECT_EQ(store->list("b")->entries.size(), 1u);
  EXPECT_NE(open()->list("a")->store, name);
}

TEST_F(ConversationStoreTest, LimitsHoldAndWhatWasThereStays) {
  ConversationLimits limits;
  limits.owner_count = 2;
  limits.owner_bytes = 100;
  limits.all_bytes = 100;
  auto store = open(limits);
  const std::string text = R"({"text":"0123456789"})";
  EXPECT_EQ(store->put("a", "1", text, {})->outcome, Outcome::made);
  EXPECT_EQ(store->put("a", "2", text, {})->outcome, Outcome::made);
  EXPECT_EQ(store->put("a", "3", "{}", {})->outcome, Outcome::no_room);
  const auto larger = store->put("a", "2", std::string(90, ' ') + "{}", {});
  EXPECT_EQ(larger->outcome, Outcome::no_room);
  EXPECT_NE(larger->no_room.find("100 bytes"), std::string::npos) << larger->no_room;
  EXPECT_EQ((*store->get("a", "2"))->json, text);
  EXPECT_EQ(store->put("b", "1", text, {})->outcome, Outcome::no_room) << "of all";
  ASSERT_TRUE(store->remove("a", "1", {}));
  EXPECT_EQ(store->put("b", "1", text, {})->outcome, Outcome::made);
  EXPECT_EQ(store->put("a", "2", text, {})->outcome, Outcome::made) << "in the place of itself";
}

TEST_F(ConversationStoreTest, FilesThatAreNotOursAreLeftAlone) {
  {
    auto store = open();
    ASSERT_TRUE(store->put("a", "good", "{}", {}));
  }
  const fs::path owner = folder_ / "key-a";
  std::ofstream(owner / "bad.json") << "no head\n{}";
  std::ofstream(owner / "cut.json") << R"({"revision":9)";
  std::ofstream(owner / "we ird.json") << "{\"revision\":9}\n{}";
  std::ofstream(owner / "note.txt") << "{\"revision\":9}\n{}";
  auto store = open();
  ASSERT_EQ(store->list("a")->entries.size(), 1u);
  EXPECT_EQ(store->list("a")->revision, 1u);
  EXPECT_FALSE(store->get("a", "bad")->has_value());
  EXPECT_EQ(fs::status(owner).permissions() & fs::perms::others_all, fs::perms::none);
  EXPECT_EQ(fs::status(owner / "good.json").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

// A page deletes what is gone from a collection that it knows.
TEST_F(ConversationStoreTest, WhatIsDamagedIsNotTakenForDeleted) {
  const std::string before = [&] {
    auto store = open();
    EXPECT_TRUE(store->put("ann", "c1", "{}", {}));
    EXPECT_TRUE(store->put("ann", "c2", "{}", {}));
    return store->list("ann")->store;
  }();
  EXPECT_EQ(open()->list("ann")->store, before);
  std::ofstream(folder_ / "key-ann" / "c1.json", std::ios::trunc) << "{\"revi";
  const auto after = open()->list("ann");
  EXPECT_NE(after->store, before);
  ASSERT_EQ(after->entries.size(), 1u);
  EXPECT_EQ(after->entries[0].id, "c2");
  EXPECT_GE(after->revision, 2u);
}

TEST_F(ConversationStoreTest, ManyThreadsLoseNothing) {
  auto store = open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string id = "c" + std::to_string(i % 5) + "-" + std::to_string(t);
        EXPECT_EQ(store->put("a", id, "{}", {})->outcome, Outcome::made);
        EXPECT_TRUE(store->list("a"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->list("a")->revision, 80u);
  EXPECT_EQ(store->list("a")->entries.size(), 20u);
}

class ConversationApi : public testing::Test {
 protected:
  void SetUp() override {
    server_.config.conversations = *ConversationStore::open(fixture::scratch_folder().string(), {});
    ASSERT_TRUE(server_.config.keys.add("ann", "ann-key"));
    ASSERT_TRUE(server_.config.keys.add("bob", "bob-key"));
    server_.start();
  }
  ClientResponse ask(const std::string& method, const std::string& path, const std::string& body = {},
                     const std::string& headers = {}, const std::string& who = "ann") const {
    return Client(server_.port())
        .request(method, "/v1/conversations" + path, body, "x-api-key: " + who + "-key\r\n" + headers);
  }
  ServerForTest server_;
};

TEST_F(ConversationApi, KeepsThemByKey) {
  const ClientResponse put = ask("PUT", "/c1", R"({"title":"Hello"})");
  ASSERT_EQ(put.status, 200) << put.body;
  EXPECT_EQ(put.header("ETag"), "\"1\"");
  const ClientResponse got = ask("GET", "/c1");
  EXPECT_EQ(got.body, R"({"title":"Hello"})");
  EXPECT_EQ(got.header("ETag"), "\"1\"");
  EXPECT_EQ(ask("GET", "/c1", {}, {}, "bob").status, 404);
  EXPECT_EQ(ask("DELETE", "/c1", {}, {}, "bob").status, 404);
  EXPECT_EQ((*parse_json(ask("GET", "", {}, {}, "bob").body))["data"].size(), 0u);
  const ClientResponse list = ask("GET", "");
  const Json json = *parse_json(list.body);
  EXPECT_EQ(json["data"][0]["id"], "c1");
  EXPECT_EQ(json["data"][0]["revision"], 1);
  EXPECT_EQ(json["limits"]["count"], 2000);
  const ClientResponse same = ask("GET", "", {}, "If-None-Match: " + list.header("ETag") + "\r\n");
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.body, "");
  EXPECT_EQ(ask("DELETE", "/c1").status, 200);
  EXPECT_EQ(ask("GET", "", {}, "If-None-Match: " + list.header("ETag") + "\r\n").status, 200);
  EXPECT_EQ(Client(server_.port()).request("GET", "/v1/conversations", {}, {}).status, 401);
}

TEST_F(ConversationApi, SaysWhoWasFaster) {
  ask("PUT", "/c1", "{}");
  EXPECT_EQ(ask("PUT", "/c1", "{}", "If-Match: \"1\"\r\n").status, 200);
  const ClientResponse late = ask("PUT", "/c1", "{}", "If-Match: \"1\"\r\n");
  EXPECT_EQ(late.status, 412);
  EXPECT_EQ(late.header("ETag"), "\"2\"");
  EXPECT_NE(late.body.find("revision_changed"), std::string::npos) << late.body;
  EXPECT_EQ(ask("PUT", "/c1", "{}", "If-None-Match: *\r\n").status, 412);
  EXPECT_EQ(ask("DELETE", "/c1", {}, "If-Match: \"1\"\r\n").status, 412);
  EXPECT_EQ(ask("DELETE", "").status, 200);
  EXPECT_EQ(ask("GET", "/c1").status, 404);
}

TEST_F(ConversationApi, RefusesWhatIsNone) {
  for (const char* body : {"", "[]", "1", "{", "\"x\""}) EXPECT_EQ(ask("PUT", "/c1", body).status, 400) << body;
  for (const char* id : {"/a.b", "/..", "/%2e%2e", "/a%2Fb", "/ä"}) EXPECT_EQ(ask("PUT", id, "{}").status, 400) << id;
  EXPECT_EQ(ask("PUT", "/" + std::string(65, 'x'), "{}").status, 400);
  for (const char* tag : {"1", "\"\"", "\"x\"", "\"1", "\"99999999999999999999999\"", "*"}) {
    EXPECT_EQ(ask("PUT", "/c1", "{}", "If-Match: " + std::string(tag) + "\r\n").status, 400) << tag;
  }
  EXPECT_EQ(ask("PUT", "/c1", "{}", "If-None-Match: \"1\"\r\n").status, 400);
  EXPECT_EQ(ask("POST", "/c1", "{}").status, 405);
  std::string large = R"({"text":")" + std::string(300'000, 'x') + R"("})";
  EXPECT_EQ(ask("PUT", "/large", large).status, 200);
  EXPECT_EQ(ask("GET", "/large").body, large);
}

TEST(ConversationApiOff, AServerThatKeepsNoneHasNoSuchPath) {
  ServerForTest server;
  server.start();
  EXPECT_EQ(server.get("/v1/conversations").status, 404);
}

}  // namespace
}  // namespace chimere::server
