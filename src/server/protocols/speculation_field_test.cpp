// speculation_field_test.cpp  `speculation` in the four protocols: it changes no text, and what was guessed is told.
#include <gtest/gtest.h>

#include "server/http/json.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

std::string chat_text(const Json& json) { return json["choices"][0]["message"]["content"]; }
std::string completion_text(const Json& json) { return json["choices"][0]["text"]; }
std::string response_text(const Json& json) {
  std::string text;
  for (const Json& item : json["output"]) {
    if (item["type"] == "message") text += item["content"][0]["text"].get<std::string>();
  }
  return text;
}
std::string message_text(const Json& json) {
  std::string text;
  for (const Json& part : json["content"]) {
    if (part["type"] == "text") text += part["text"].get<std::string>();
  }
  return text;
}

struct SpeculatingProtocol {
  const char* path;
  std::string fields;
  std::string (*text_of)(const Json&);
};

// A form that repeats itself, so that there is something to guess.
std::vector<SpeculatingProtocol> speculating_protocols() {
  const std::string messages = R"("messages":[{"role":"user","content":"Hello"}],"enable_thinking":false)";
  const std::string form = R"(,"seed":3,"temperature":1,"regex":"([abc]{2}, one, two, three; ){12}")";
  return {{"/v1/chat/completions", messages + R"(,"max_tokens":90)" + form, chat_text},
          {"/v1/completions", R"("prompt":"Hello","max_tokens":90)" + form, completion_text},
          {"/v1/responses", R"("input":"Hello","max_output_tokens":90)" + form, response_text},
          {"/v1/messages", messages + R"(,"max_tokens":90)" + form, message_text}};
}

TEST(SpeculationField, ChangesNoTextInAnyProtocol) {
  ServerForTest server;
  server.start();
  for (const SpeculatingProtocol& p : speculating_protocols()) {
    SCOPED_TRACE(p.path);
    std::string expected;
    for (const char* mode :
         {R"("off")", "false", R"("always")", R"("auto")", "true", R"("ngram")", R"("engram")", R"("mtp")"}) {
      const ClientResponse whole = server.post(p.path, "{" + p.fields + ",\"speculation\":" + mode + "}");
      ASSERT_EQ(whole.status, 200) << whole.body;
      const auto json = parse_json(whole.body);
      ASSERT_TRUE(json);
      const std::string text = p.text_of(*json);
      EXPECT_GT(text.size(), 30u);
      if (expected.empty()) expected = text;
      EXPECT_EQ(text, expected) << mode;
    }
    EXPECT_EQ(server.post(p.path, "{" + p.fields + R"(,"speculation":"on"})").status, 400);
    EXPECT_EQ(server.post(p.path, "{" + p.fields + R"(,"speculation":1})").status, 400);
    const ClientResponse missing = server.post(p.path, "{" + p.fields + R"(,"speculation":"draft"})");
    EXPECT_EQ(missing.status, 400);
    EXPECT_NE(missing.body.find("--draft-model FILE"), std::string::npos) << missing.body;
  }
}

// Several tokens may come between two looks at the stream.
TEST(SpeculationField, StopStringsCutTheSameText) {
  ServerForTest server;
  server.start();
  const SpeculatingProtocol p = speculating_protocols()[0];
  std::string texts[2];
  for (int i = 0; i < 2; ++i) {
    const std::string mode = i == 0 ? R"("off")" : R"("always")";
    const ClientResponse whole =
        server.post(p.path, "{" + p.fields + R"(,"stop":"two, three; ","speculation":)" + mode + "}");
    ASSERT_EQ(whole.status, 200) << whole.body;
    texts[i] = p.text_of(*parse_json(whole.body));
    EXPECT_TRUE(texts[i].ends_with("one, ")) << texts[i];
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(SpeculationField, WhatWasGuessedIsTold) {
  ServerForTest server;
  server.start();
  const SpeculatingProtocol p = speculating_protocols()[0];
  const auto timings = [&](const std::string& mode) {
    return (*parse_json(server.post(p.path, "{" + p.fields + R"(,"n":2,"speculation":)" + mode + "}").body))["timings"];
  };
  EXPECT_FALSE(timings(R"("off")").contains("draft_n"));
  const Json drafted = timings(R"("always")");
  EXPECT_GT(drafted["draft_n_accepted"].get<int>(), 0);
  EXPECT_GE(drafted["draft_n"].get<int>(), drafted["draft_n_accepted"].get<int>());
  const double length = drafted["mean_accepted_length"].get<double>();
  EXPECT_GT(length, 0);
  EXPECT_LE(length, 15);
  // Behind another answer, so that all of the last one is published.
  ASSERT_EQ(server.post(p.path, "{" + p.fields + R"(,"speculation":"off"})").status, 200);
  const Json status = server.get_json("/v1/status")["speculation"];
  EXPECT_EQ(status["mode"], "off") << "of requests that do not say";
  EXPECT_EQ(status["draft_tokens"], drafted["draft_n"]);
  EXPECT_EQ(status["accepted_tokens"], drafted["draft_n_accepted"]);
  EXPECT_NEAR(status["mean_accepted_length"].get<double>(), length, 1e-9);
  EXPECT_NEAR(drafted["draft_n_accepted"].get<int>() / status["drafts"].get<double>(), length, 1e-9);
  EXPECT_NE(server.get("/metrics").body.find("\nchimere_draft_mean_accepted_length "), std::string::npos);
  EXPECT_NE(
      server.get("/metrics")
          .body.find("chimere_draft_tokens_accepted_total " + std::to_string(drafted["draft_n_accepted"].get<int>())),
      std::string::npos);
}

TEST(SpeculationField, SlotsSayWhereDraftsRun) {
  ServerForTest server;
  server.engine.speculate = speculative::Mode::automatic;
  server.start();
  for (const Json& slot : server.get_json("/slots")) EXPECT_EQ(slot["speculative"], true);
}

// How the number of guesses is chosen: what steps cost, how sure guesses are, and what came of it.
TEST(SpeculationField, TheControllerIsVisible) {
  ServerForTest server;
  server.start();
  const SpeculatingProtocol p = speculating_protocols()[0];
  Json status = server.get_json("/v1/status")["speculation"];
  EXPECT_TRUE(status["controller"]["chances"].empty()) << "nobody guessed yet";
  EXPECT_FALSE(status["controller"].contains("open_ms")) << "nor timed anything";
  EXPECT_FALSE(status.contains("mean_accepted_length"));
  EXPECT_FALSE(status.contains("drafter"));
  const auto answer = parse_json(server.post(p.path, "{" + p.fields + R"(,"speculation":"auto"})").body);
  ASSERT_TRUE(answer);
  ASSERT_EQ(server.post(p.path, "{" + p.fields + R"(,"speculation":"auto"})").status, 200);
  status = server.get_json("/v1/status")["speculation"];
  const Json& control = status["controller"];
  EXPECT_TRUE(control["may_pay"].is_boolean());
  EXPECT_GE(control["depth"].get<int>(), 0);
  EXPECT_GE(control["open_ms"].get<double>(), 0);
  EXPECT_GE(control["back_ms"].get<double>(), 0);
  ASSERT_FALSE(control["step_ms"].empty());
  EXPECT_EQ(control["step_ms"][0]["rows"], 1);
  EXPECT_GT(control["step_ms"][0]["ms"].get<double>(), 0);
  for (const Json& of : control["chances"]) {
    ASSERT_EQ(of["chances"].size(), of["counted"].size()) << of.dump();
    for (const Json& chance : of["chances"]) {
      EXPECT_GE(chance.get<double>(), 0);
      EXPECT_LE(chance.get<double>(), 1);
    }
  }
  EXPECT_GT(status["draft_gain"].get<double>(), 0);
  EXPECT_GE(status["draft_time_share"].get<double>(), 0);
  EXPECT_LE(status["draft_time_share"].get<double>(), 1);
  const std::string metrics = server.get("/metrics").body;
  for (const char* name :
       {"chimere_answer_steps_seconds_total ", "chimere_draft_seconds_total ", "chimere_draft_saved_seconds_total ",
        "chimere_draft_gain ", "chimere_draft_time_share ", "chimere_drafter_rows_total 0\n"}) {
    EXPECT_NE(metrics.find(std::string("\n") + name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace chimere::server
