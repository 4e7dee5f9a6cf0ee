// token_stats_test.cpp  Entropy and certainty of every token in the four protocols, streamed and whole.
#include <gtest/gtest.h>

#include "server/http/json.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

// The tokens of all events, joined.
std::string streamed_tokens(const std::string& body, const std::function<const Json*(const Json&)>& stats_of) {
  std::string text;
  for (size_t at = body.find("data: {"); at != std::string::npos; at = body.find("data: {", at + 1)) {
    const auto json = parse_json(body.substr(at + 6, body.find('\n', at) - at - 6));
    EXPECT_TRUE(json);
    const Json* stats = json ? stats_of(*json) : nullptr;
    if (!stats) continue;
    for (const Json& entry : *stats) {
      text += entry["token"].get<std::string>();
      EXPECT_GE(entry["entropy"].get<double>(), 0);
      EXPECT_GE(entry["certainty"].get<double>(), 0);
      EXPECT_LE(entry["certainty"].get<double>(), 1);
    }
  }
  return text;
}

std::string whole_tokens(const Json& stats) {
  std::string text;
  for (const Json& entry : stats) text += entry["token"].get<std::string>();
  return text;
}

const Json* of_choice(const Json& event) {
  if (!event.contains("choices") || event["choices"].empty()) return nullptr;
  return event["choices"][0].contains("token_stats") ? &event["choices"][0]["token_stats"] : nullptr;
}

const Json* of_event(const Json& event) { return event.contains("token_stats") ? &event["token_stats"] : nullptr; }

TEST(TokenStats, AreTheSameStreamedAndWholeInEveryProtocol) {
  ServerForTest server;
  server.start();
  const std::string ask = R"(,"seed":1,"token_stats":true)";
  const std::string messages = R"("messages":[{"role":"user","content":"Hello"}])";
  struct Protocol {
    const char* path;
    std::string fields;
    const Json* (*stats_of)(const Json&);
  };
  const Protocol protocols[] = {
      {"/v1/chat/completions", messages + R"(,"max_tokens":12)", of_choice},
      {"/v1/completions", R"("prompt":"Hello","max_tokens":12)", of_choice},
      {"/v1/responses", R"("input":"Hello","max_output_tokens":12)", of_event},
      {"/v1/messages", messages + R"(,"max_tokens":12,"thinking":{"type":"enabled","budget_tokens":4})", of_event},
  };
  for (const Protocol& p : protocols) {
    const ClientResponse whole = server.post(p.path, "{" + p.fields + ask + "}");
    ASSERT_EQ(whole.status, 200) << p.path << whole.body;
    const auto json = parse_json(whole.body);
    ASSERT_TRUE(json);
    const Json* stats = p.stats_of(*json);
    ASSERT_TRUE(stats) << p.path;
    EXPECT_FALSE(stats->empty()) << p.path;
    const ClientResponse streamed = server.post(p.path, "{" + p.fields + ask + R"(,"stream":true})");
    EXPECT_EQ(streamed_tokens(streamed.body, p.stats_of), whole_tokens(*stats)) << p.path;
    const ClientResponse without = server.post(p.path, "{" + p.fields + "}");
    EXPECT_EQ(without.body.find("token_stats"), std::string::npos) << p.path;
  }
}

}  // namespace
}  // namespace chimere::server
