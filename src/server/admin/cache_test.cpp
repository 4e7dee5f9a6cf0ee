// cache_test.cpp  /v1/cache: what is kept of prompts, and its end.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "server/server_for_test.h"

namespace chimere::server {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAnn = "Authorization: Bearer anns-secret-key-1\r\n";
constexpr const char* kBob = "Authorization: Bearer bobs-secret-key-2\r\n";

class CacheEndpoint : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("chimere-cache-endpoint-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    test_.engine.cache.disk.folder = folder_.string();
    test_.engine.cache.disk.quota_bytes = 1 << 26;
  }
  void TearDown() override {
    test_.stop();
    fs::remove_all(folder_);
  }
  Json state(const char* headers = "") const { return *parse_json(test_.get("/v1/cache", headers).body); }
  Json clear(const char* headers = "") const {
    const ClientResponse response = Client(test_.port()).request("DELETE", "/v1/cache", {}, headers);
    EXPECT_EQ(response.status, 200) << response.body;
    return *parse_json(response.body);
  }
  int64_t cached_tokens(const char* headers = "") const {
    const ClientResponse response = test_.post("/v1/chat/completions", chat_body(R"("max_tokens":12)"), headers);
    while (test_.service->engine().stats().running > 0)
      std::this_thread::yield();  // its end is kept behind its last event
    return (*parse_json(response.body))["usage"]["prompt_tokens_details"]["cached_tokens"].get<int64_t>();
  }

  fs::path folder_;
  ServerForTest test_;
};

TEST_F(CacheEndpoint, TellsWhatIsKeptAndForgetsIt) {
  test_.start();
  const Json before = state();
  EXPECT_EQ(before["object"], "cache");
  EXPECT_EQ(before["enabled"], true);
  EXPECT_EQ(before["directory"], folder_.string());
  EXPECT_EQ(before["bytes"], 0);
  EXPECT_EQ(before["limit_bytes"], 1 << 26);
  EXPECT_EQ(before["entries"], 0);
  EXPECT_EQ(before["memory_bytes"], 0);
  EXPECT_EQ(cached_tokens(), 0);
  EXPECT_GT(cached_tokens(), 0);
  const Json kept = state();
  EXPECT_GT(kept["entries"], 0);
  EXPECT_GT(kept["memory_bytes"], 0);
  const Json cleared = clear();
  EXPECT_EQ(cleared["object"], "cache");
  EXPECT_GE(cleared["cleared_bytes"], kept["memory_bytes"]);
  EXPECT_EQ(cleared["cleared_entries"], kept["entries"]);
  const Json after = state();
  EXPECT_EQ(after["entries"], 0);
  EXPECT_EQ(after["memory_bytes"], 0);
  EXPECT_EQ(after["bytes"], 0);
  EXPECT_EQ(cached_tokens(), 0) << "it is computed again";
  EXPECT_NE(
      test_.get("/metrics")
          .body.find("chimere_cache_cleared_bytes_total " + std::to_string(cleared["cleared_bytes"].get<uint64_t>())),
      std::string::npos);
  EXPECT_EQ(clear()["object"], "cache") << "also when the disk was never written to";
}

TEST_F(CacheEndpoint, WhatIsOnTheDiskGoesToo) {
  test_.start();
  cached_tokens();
  test_.stop();  // everything that matters is written
  test_.start();
  EXPECT_GT(state()["bytes"], 0);
  EXPECT_GT(clear()["cleared_bytes"], 0);
  EXPECT_EQ(state()["bytes"], 0);
  size_t n = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) n += entry.path().extension() != "";
  EXPECT_EQ(n, 0u) << "only markers are left";
  EXPECT_EQ(cached_tokens(), 0);
}

TEST_F(CacheEndpoint, AKeyClearsItsOwnPartAndSeesNoPath) {
  ASSERT_TRUE(test_.config.keys.add("ann", "anns-secret-key-1"));
  ASSERT_TRUE(test_.config.keys.add("bob", "bobs-secret-key-2"));
  test_.start();
  cached_tokens(kAnn);
  cached_tokens(kBob);
  EXPECT_TRUE(state(kAnn)["directory"].is_null());
  const int64_t entries = state(kAnn)["entries"];
  EXPECT_EQ(test_.get("/v1/cache").status, 401);
  EXPECT_EQ(Client(test_.port()).request("DELETE", "/v1/cache").status, 401);
  EXPECT_EQ(clear(kAnn)["cleared_entries"], entries / 2);
  EXPECT_EQ(cached_tokens(kAnn), 0);
  EXPECT_GT(cached_tokens(kBob), 0) << "others keep theirs";
}

TEST_F(CacheEndpoint, WithoutACacheThereIsNothing) {
  test_.engine.cache.ram_bytes = 0;
  test_.start();
  cached_tokens();
  const Json json = state();
  EXPECT_EQ(json["enabled"], false);
  EXPECT_TRUE(json["directory"].is_null());
  EXPECT_EQ(json["limit_bytes"], 0);
  EXPECT_EQ(clear()["cleared_entries"], 0);
}

}  // namespace
}  // namespace chimere::server
