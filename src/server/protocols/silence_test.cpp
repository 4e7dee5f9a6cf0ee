// silence_test.cpp  A stream that has nothing to say yet says so from time to time, so that nobody between takes it for
// dead.
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
