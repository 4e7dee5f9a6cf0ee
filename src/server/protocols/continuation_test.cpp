// continuation_test.cpp  What clients see of an answer that the request began, and of the head of every answer.
#include <set>

#include "server/server_for_test.h"

namespace chimere::server {
namespace {

// The events of a stream, without [DONE].
std::vector<Json> sse_events(const std::string& body) {
  std::vector<Json> events;
  for (size_t at = body.find("data: {"); at != std::string::npos; at = body.find("data: {", at + 1)) {
    auto json = parse_json(body.substr(at + 6, body.find('\n', at) - at - 6));
    EXPECT_TRUE(json) << body;
    if (json) events.push_back(std::move(*json));
  }
  return events;
}

TEST(Continuation, EveryAnswerAndEveryChunkHasTheFingerprint) {
  ServerForTest test;
  test.start();
  std::set<std::string> seen;
  const auto note = [&](const Json& json) { seen.insert(json.value("system_fingerprint", "none")); };
  const std::string usage = R"("stream":true,"stream_options":{"include_usage":true})";
  for (const char* path : {"/v1/chat/completions", "/v1/completions"}) {
    const auto body = [&](const std::string& fields) {
      const std::string prompt = R"(,"prompt":"Hi")";
      return R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":3)" + prompt + "," + fields + "}";
    };
    auto whole = parse_json(test.post(path, body(R"("n":1)")).body);
    ASSERT_TRUE(whole);
    note(*whole);
    const std::vector<Json> events = sse_events(test.post(path, body(usage)).body);
    EXPECT_GE(events.size(), 3u);
    for (const Json& event : events) note(event);
  }
  ASSERT_EQ(seen.size(), 1u) << *seen.begin() << " " << *seen.rbegin();
  EXPECT_EQ(seen.begin()->rfind("fp_", 0), 0u);
  EXPECT_EQ(seen.begin()->size(), 13u);
  // Another version of the program may answer otherwise; the same one has the same name after a restart.
  const std::string first = *seen.begin();
  for (const char* version : {"1.2.3", "1.2.4"}) {
    test.stop();
    test.config.version = version;
    test.start();
    const auto json = parse_json(test.post("/v1/chat/completions", chat_body(R"("max_tokens":1)")).body);
    ASSERT_TRUE(json);
    EXPECT_EQ((*json)["system_fingerprint"] == Json(first), test.config.version == "1.2.3");
  }
}

TEST(Continuation, TheFirstDeltaHasARoleAndAnEmptyText) {
  ServerForTest test;
  test.start();
  const auto events = sse_events(test.post("/v1/chat/completions", chat_body(R"("max_tokens":3,"stream":true)")).body);
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events[0]["choices"][0]["delta"], (Json{{"role", "assistant"}, {"content", ""}}));
}

TEST(Continuation, OnlyWhatFollowsComesBack) {
  ServerForTest test;
  test.start();
  const std::string begun = R"({"role":"user","content":"Hello"},{"role":"assistant","content":"BEGUN, and"}])";
  const auto chat = parse_json(test.post("/v1/chat/completions", R"({"max_tokens":4,"seed":1,"messages":[)" + begun +
                                                                     R"(,"continue_final_message":true})")
                                   .body);
  ASSERT_TRUE(chat && chat->contains("choices")) << to_text(*chat);
  const Json& message = (*chat)["choices"][0]["message"];
  EXPECT_EQ(message["content"].get<std::string>().find("BEGUN"), std::string::npos);
  EXPECT_FALSE(message.contains("reasoning_content"));
  const auto claude =
      parse_json(test.post("/v1/messages", R"({"max_tokens":4,"seed":1,"messages":[)" + begun + "}").body);
  ASSERT_TRUE(claude && claude->contains("content")) << to_text(*claude);
  EXPECT_EQ((*claude)["content"][0]["text"], message["content"]);
  const std::string count = R"({"messages":[)" + begun + "}";
  const auto counted = parse_json(test.post("/v1/messages/count_tokens", count).body);
  ASSERT_TRUE(counted);
  EXPECT_EQ((*counted)["input_tokens"], (*chat)["usage"]["prompt_tokens"]);
}

TEST(Continuation, NestedUnknownFieldsAreNamedInTheHeader) {
  ServerForTest test;
  test.start();
  const ClientResponse response =
      test.post("/v1/chat/completions",
                R"({"max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a","bar":1}]}],"odd":1,
          "tools":[{"type":"function","function":{"name":"f","foo":1}}],"response_format":{"type":"text","baz":1}})");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.header("X-Chimere-Ignored"),
            "odd, messages[0].content[0].bar, tools[0].function.foo, response_format.baz");
}

}  // namespace
}  // namespace chimere::server
