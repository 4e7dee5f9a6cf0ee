// silence_test.cpp  A stream keeps its head for its first words, and where these take long, says so from time to time, so
// that nobody between takes it for dead.
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

// Every stream is silent for too long from its first tick on, and waits for the place that the brake has.
struct SilentServer : ServerForTest {
  SilentServer() {
    config.longest_silence = std::chrono::milliseconds(0);
    engine.max_running = 1;
  }
};

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Silence, HeadLeavesWithAComment) {
  SilentServer server;
  server.start();
  Client client(server.port());
  {
    EngineBrake brake(*server.service);
    client.send(post_text("/v1/chat/completions", chat_body(R"("stream":true,"max_tokens":3)")));
    ASSERT_TRUE(client.read_until(": waiting\n\n"));
    EXPECT_EQ(client.received().rfind("HTTP/1.1 200 OK\r\n", 0), 0u) << client.received();
    EXPECT_NE(client.received().find("Content-Type: text/event-stream"), std::string::npos);
  }
  const ClientResponse answer = client.read_response();
  EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n")) << answer.body;
  EXPECT_EQ(count(answer.body, R"("role":"assistant")"), 1u) << answer.body;
  EXPECT_EQ(count(answer.body, R"("finish_reason":"length")"), 1u) << answer.body;
}

TEST(Silence, WhatFailsLaterIsAnEvent) {
  SilentServer server;
  server.start();
  Client client(server.port());
  {
    EngineBrake brake(*server.service);
    client.send(
        post_text("/v1/chat/completions", chat_body(R"("stream":true,"max_tokens":3)"), "X-Request-Id: mine\r\n"));
    ASSERT_TRUE(client.read_until(": waiting\n\n"));
    EXPECT_EQ(server.post("/v1/requests/mine/cancel", "{}").status, 200);
  }
  const ClientResponse answer = client.read_response();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(count(answer.body, R"(data: {"error":{)"), 1u) << answer.body;
  EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n")) << answer.body;
}

// Whether anything of an answer has come.
bool has_heard(const Client& client) {
  char byte;
  return ::recv(client.socket(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

// Of a request that is under way; 0: it has no prompt yet.
int prompt_tokens(const ServerForTest& server, const std::string& id) {
  const Json requests = server.get_json("/v1/requests");
  for (const Json& request : requests["data"]) {
    if (request["id"] == id) return request["prompt_tokens"].get<int>();
  }
  return 0;
}

TEST(Silence, HeadWaitsForTheFirstWord) {
  const std::string messages = R"("messages":[{"role":"user","content":"Hello"}])";
  const std::pair<std::string, std::string> streams[] = {
      {"/v1/chat/completions", "{" + messages + R"(,"stream":true})"},
      {"/v1/completions", R"({"prompt":"Hello","stream":true,"echo":true})"},
      {"/completion", R"({"prompt":"Hello","stream":true})"},
      {"/v1/messages", "{" + messages + R"(,"stream":true,"max_tokens":9})"},
      {"/v1/responses", R"({"input":"Hello","stream":true})"},
      {"/api/chat", "{" + messages + "}"},
      {"/api/generate", R"({"prompt":"Hello"})"},
  };
  for (const auto& [path, body] : streams) {
    SCOPED_TRACE(path);
    ServerForTest server;
    server.engine.max_running = 1;
    server.start();
    Client client(server.port());
    {
      EngineBrake brake(*server.service);
      client.send(post_text(path, body, "X-Request-Id: mine\r\n"));
      while (prompt_tokens(server, "mine") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_FALSE(has_heard(client)) << "its prompt is made, and it waits for a place";
      EXPECT_EQ(server.post("/v1/requests/mine/cancel", "{}").status, 200);
    }
    const ClientResponse answer = client.read_response();
    EXPECT_EQ(answer.status, 400) << answer.head << answer.body;
    EXPECT_EQ(answer.header("Content-Type"), "application/json");
    EXPECT_NE(answer.body.find("the request was cancelled"), std::string::npos) << answer.body;
  }
}

TEST(Silence, HeadLeavesWithProgressThatWasAskedFor) {
  ServerForTest server;
  server.start();
  std::string words;
  for (int i = 0; i < 100; ++i) words += "word ";
  const std::string body = R"({"messages":[{"role":"user","content":")" + words +
                           R"("}],"max_tokens":3,"stream":true,"return_progress":true})";
  Client client(server.port());
  {
    EngineBrake brake(*server.service);
    client.send(post_text("/v1/chat/completions", body));
    brake.step_until([&] { return has_heard(client); });
    ASSERT_TRUE(client.read_until(R"("prompt_progress":)"));
    EXPECT_EQ(count(client.received(), R"("role":"assistant")"), 1u) << client.received();
    EXPECT_EQ(client.received().find(R"("finish_reason":")"), std::string::npos) << client.received();
  }
  EXPECT_TRUE(client.read_response().body.ends_with("data: [DONE]\n\n"));
}

TEST(Silence, LinesOfJsonHaveNoComment) {
  SilentServer server;
  server.start();
  Client client(server.port());
  {
    EngineBrake brake(*server.service);
    client.send(
        post_text("/api/chat", R"({"messages":[{"role":"user","content":"Hello"}],"options":{"num_predict":3}})"));
    ASSERT_TRUE(client.read_until("\r\n\r\n"));
    EXPECT_EQ(client.received().rfind("HTTP/1.1 200 OK\r\n", 0), 0u) << client.received();
  }
  const ClientResponse answer = client.read_response();
  EXPECT_EQ(answer.body.rfind("{", 0), 0u) << answer.body;
  EXPECT_EQ(count(answer.body, R"("done":true)"), 1u) << answer.body;
}

}  // namespace
}  // namespace chimere::server
