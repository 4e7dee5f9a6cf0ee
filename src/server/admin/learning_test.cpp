// What a user accepts changes the answers to that user alone, until it is forgotten: over HTTP, greedy.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <future>
#include <random>

#include "base/platform/file_lock.h"
#include "base/scratch_for_test.h"
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
  EXPECT_EQ(forgotten["removed_notes"], 3);
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

TEST_F(Learning, ACompletionDoesNotWaitForALesson) {
  // Whoever holds these locks, another process perhaps, keeps the lesson waiting for as long as it likes.
  std::filesystem::create_directories(folder_ / "users");
  std::optional<FileLock> of_notes, of_table;
  auto first = FileLock::acquire((folder_ / "users" / "notes.lock").string());
  auto second = FileLock::acquire((folder_ / "users" / "ann.engram.lock").string());
  ASSERT_TRUE(first && second);
  of_notes.emplace(std::move(*first));
  of_table.emplace(std::move(*second));
  auto lesson = std::async(std::launch::async, [&] {
    return server_.post("/v1/engram/accept", R"({"user":"ann","text":")" + std::string(200'000, 'a') + R"("})").status;
  });
  for (int i = 0; i < 3; ++i) ask("bob");  // the lesson has come by the first of them, or surely by the last
  EXPECT_EQ(lesson.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  of_notes.reset();
  of_table.reset();
  EXPECT_EQ(lesson.get(), 200);
}

TEST_F(Learning, WhatWasAcceptedReachesTheModelAsTextInEveryProtocol) {
  post("/v1/engram/accept", R"({"user":"ann","text":"The capital of Zubrovia is Lutzhaven."})");
  const std::string question = R"("Which town is the capital of Zubrovia?")";
  const std::string messages = R"({"messages":[{"role":"user","content":)" + question + R"(}],"max_tokens":2)";
  const auto notes = [&](const std::string& path, const std::string& body) {
    const Json json = post(path, body);
    return json.contains("engram") ? json["engram"]["notes"] : Json();
  };
  const std::string ann = R"(,"user":"ann"})";
  for (const Json& found : {notes("/v1/chat/completions", messages + ann),
                            notes("/v1/messages", messages + R"(,"model":"x","metadata":{"user_id":"ann"}})"),
                            notes("/v1/responses", R"({"input":)" + question + R"(,"max_output_tokens":2)" + ann)}) {
    ASSERT_EQ(found.size(), 1u) << found;
    EXPECT_EQ(found[0]["text"], "The capital of Zubrovia is Lutzhaven.");
    EXPECT_EQ(found[0]["source"], "accepted");
    EXPECT_EQ(found[0]["id"], 1);
  }
  for (const char* path : {"/v1/chat/completions", "/v1/messages", "/v1/responses"}) {
    const std::string body = std::string(path) == "/v1/responses"
                                 ? R"({"input":)" + question + R"(,"max_output_tokens":2,"stream":true)" + ann
                                 : messages + R"(,"model":"x","stream":true,"metadata":{"user_id":"ann"})" + ann;
    const ClientResponse streamed = server_.post(path, body);
    EXPECT_NE(streamed.body.find(R"("notes":[{"source":"accepted")"), std::string::npos) << path << streamed.body;
  }
  EXPECT_TRUE(notes("/v1/chat/completions", messages + R"(,"user":"bob"})").is_null());
  EXPECT_TRUE(notes("/v1/chat/completions", messages + R"(,"engram":{"alpha":0})" + ann).is_null());
  EXPECT_TRUE(notes("/v1/chat/completions", messages + R"(,"engram":{"notes":0})" + ann).is_null());
  post("/v1/chat/completions", messages + R"(,"engram":{"notes":17})" + ann, 400);
}

TEST_F(Learning, WithoutKeysAPersonListsAndForgetsTheirOwn) {
  EXPECT_EQ(post("/v1/engram/accept", R"({"user":"ann b","text":"One two three.","source":"a"})")["note"], 1);
  EXPECT_EQ(post("/v1/engram/accept", R"({"user":"ann b","text":"Four five six.","source":"b"})")["note"], 2);
  post("/v1/engram/accept", R"({"user":"bob","text":"Seven eight nine."})");
  for (const char* path : {"/v1/engram/notes?user=ann%20b", "/v1/engram/notes?x=1&user=ann+b"}) {
    const Json list = server_.get_json(path);
    ASSERT_EQ(list["data"].size(), 2u) << list;
    EXPECT_EQ(list["data"][1]["text"], "Four five six.");
    EXPECT_EQ(list["data"][1]["source"], "b");
  }
  EXPECT_EQ(server_.get("/v1/engram/notes").status, 400);
  EXPECT_EQ(server_.get_json("/v1/engram/notes?user=nobody")["data"].size(), 0u);
  const Json own = server_.get_json("/v1/engram?user=ann+b");
  EXPECT_EQ(own["own"]["notes"], 2) << own;
  EXPECT_GT(own["own"]["ngrams"], 0);
  EXPECT_GT(own["own"]["bytes"], 0);
  EXPECT_EQ(own["used"]["all"]["users"], 2);
  EXPECT_GT(own["limits"]["own"]["bytes"], 0);
  EXPECT_NE(server_.get("/metrics").body.find("chimere_engram_users 2"), std::string::npos);
  EXPECT_EQ(post("/v1/engram/forget", R"({"user":"ann b","note":1})")["removed_notes"], 1);
  post("/v1/engram/forget", R"({"user":"ann b","note":1})", 404);
  post("/v1/engram/forget", R"({"user":"ann b","note":2,"all":true})", 400);
  EXPECT_EQ(post("/v1/engram/forget", R"({"user":"ann b","all":true})")["removed_notes"], 1);
  EXPECT_EQ(server_.get_json("/v1/engram/notes?user=ann+b")["data"].size(), 0u);
  EXPECT_EQ(server_.get_json("/v1/engram/notes?user=bob")["data"].size(), 1u);
}

TEST_F(Learning, WhatIsLearnedIsReadableByNobodyElse) {
  post("/v1/engram/accept", R"({"user":"ann","text":"One two three."})");
  size_t n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "users")) {
    struct stat info {};
    ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
    if (entry.path().extension() == ".lock") continue;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << entry.path();
    ++n_files;
  }
  EXPECT_EQ(n_files, 1u);
  struct stat folder {};
  ASSERT_EQ(::stat((folder_ / "users").c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 0777, 0700u);
}

TEST(LearningLimits, ATextThatDoesNotFitIsRefusedAndSaysWhy) {
  const auto folder = fixture::scratch_folder();
  ServerForTest server;
  server.engram = folder.string();
  server.note_limits.file_bytes = 300'000;
  server.note_limits.all_files = 4;
  server.start();
  const std::string large = R"(","text":")" + std::string(250'000, 'a') + R"("})";
  EXPECT_EQ(server.post("/v1/engram/accept", R"({"user":"ann)" + large).status, 200);
  for (int i = 0; i < 10; ++i) {
    const ClientResponse refused = server.post("/v1/engram/accept", R"({"user":"ann)" + large);
    EXPECT_EQ(refused.status, 507) << refused.body;
    EXPECT_NE(refused.body.find("expected at most 300000 bytes, found 500"), std::string::npos) << refused.body;
    EXPECT_NE(refused.body.find("insufficient_storage"), std::string::npos);
  }
  int n_learned = 0;
  for (int i = 0; i < 20; ++i) {
    n_learned +=
        server.post("/v1/engram/accept", R"({"user":"u)" + std::to_string(i) + R"(","text":"a b"})").status == 200;
  }
  EXPECT_EQ(n_learned, 3);
  EXPECT_EQ(server.get_json("/v1/engram")["used"]["all"]["users"], 4);
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
