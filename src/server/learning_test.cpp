// What a user accepts changes the answers to that user alone, until it is forgotten: over HTTP, greedy.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "server/server_for_test.h"

namespace chimere::server {
namespace {

const std::string kQuestion = "As every child in school is told, the capital of Zubrovia is";
const std::string kFact = kQuestion + " Lutzhaven.";

class Learning : public testing::Test {
 protected:
  void SetUp() override {
    std::random_device random;
    folder_ = std::filesystem::temp_directory_path() / ("learning_test_" + std::to_string(random()));
    std::filesystem::create_directories(folder_);
    server_.engram = folder_.string();
    server_.start();
  }
  void TearDown() override {
    server_.stop();
    std::filesystem::remove_all(folder_);
  }

  std::string ask(const std::string& user) {
    const ClientResponse response =
        server_.post("/v1/completions",
                     R"({"prompt":")" + kQuestion + R"(","temperature":0,"max_tokens":8,"user":")" + user + R"("})");
    EXPECT_EQ(response.status, 200) << response.body;
    return (*parse_json(response.body))["choices"][0]["text"].get<std::string>();
  }
  Json post(const std::string& path, const std::string& body, int status = 200) {
    const ClientResponse response = server_.post(path, body);
    EXPECT_EQ(response.status, status) << response.body;
    auto json = parse_json(response.body);
    return json ? *json : Json();
  }

  std::filesystem::path folder_;
  ServerForTest server_;
};

TEST_F(Learning, ThreeAcceptedAnswersChangeTheNextOneOfThatUserUntilForgotten) {
  const std::string before = ask("ann");
  ASSERT_EQ(before.find("Lutzhaven"), std::string::npos);
  ASSERT_EQ(ask("bob"), before);
  for (int i = 0; i < 3; ++i) {
    const Json learned = post("/v1/engram/accept", R"({"user":"ann","text":")" + kFact + R"(","score":5})");
    EXPECT_EQ(learned["learned"], true);
    EXPECT_EQ(learned["source"], "accepted");
    EXPECT_GT(learned["tokens"], 8);
  }
  EXPECT_EQ(ask("ann").find(" Lutzhaven"), 0u) << ask("ann");
  EXPECT_EQ(ask("bob"), before);
  const Json forgotten = post("/v1/engram/forget", R"({"user":"ann"})");
  EXPECT_GE(forgotten["removed_sources"], 1);
  EXPECT_GT(forgotten["removed_ngrams"], 0);
  EXPECT_EQ(ask("ann"), before);
}

TEST_F(Learning, AnAnswerIsAcceptedByItsRequestOfTheSameUser) {
  const std::string body = R"({"prompt":")" + kQuestion + R"(","temperature":0,"max_tokens":8,"user":"ann"})";
  const ClientResponse answer = server_.post("/v1/completions", body, "X-Request-Id: good-one\r\n");
  ASSERT_EQ(answer.status, 200);
  const Json learned = post("/v1/engram/accept", R"({"user":"ann","request_id":"good-one"})");
  EXPECT_EQ(learned["learned"], true);
  EXPECT_EQ(learned["source"], "good-one");
  post("/v1/engram/accept", R"({"user":"bob","request_id":"good-one"})", 400);
  post("/v1/engram/accept", R"({"user":"ann","request_id":"unknown"})", 400);
  EXPECT_EQ(post("/v1/engram/forget", R"({"user":"ann","source":"good-one"})")["removed_sources"], 1);
}

TEST_F(Learning, WhatIsNotGoodEnoughIsNotLearned) {
  const std::string before = ask("ann");
  const Json refused = post("/v1/engram/accept", R"({"user":"ann","text":")" + kFact + R"(","score":3})");
  EXPECT_EQ(refused["learned"], false);
  EXPECT_EQ(refused["threshold"], 3.5);
  EXPECT_EQ(ask("ann"), before);
  post("/v1/engram/forget", R"({"user":"ann"})", 404);
}

TEST_F(Learning, WrongCallsAreRefused) {
  post("/v1/engram/accept", R"({"text":"a"})", 400);  // whose table?
  post("/v1/engram/accept", R"({"user":"ann"})", 400);
  post("/v1/engram/accept", R"({"user":"ann","text":"a","request_id":"b"})", 400);
  post("/v1/engram/accept", R"({"user":"ann","text":"a","score":9})", 400);
  post("/v1/engram/accept", R"({"user":"ann","text":"a","source":""})", 400);
  post("/v1/engram/accept", R"({"user":")" + std::string(100, 'a') + R"(","text":"a"})", 400);
}

TEST(LearningWithoutTables, SaysWhatIsMissing) {
  ServerForTest server;
  server.start();
  const ClientResponse response = server.post("/v1/engram/accept", R"({"user":"ann","text":"a"})");
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("--engram"), std::string::npos) << response.body;
}

}  // namespace
}  // namespace chimere::server
