// chat_response_test.cpp  The shapes clients parse.
#include "server/chat_response.h"

#include <gtest/gtest.h>

#include <cmath>

#include "server/api_error.h"
#include "server/json.h"

namespace chimere::server {
namespace {

using orchestrator::ChatChunk;
using orchestrator::Finish;

const ResponseHead kHead{"chatcmpl-1", "m", 1700000000, false};

ChatChunk chunk(ChatChunk::Kind kind) {
  ChatChunk c;
  c.kind = kind;
  return c;
}

TEST(ChatResponse, StreamStartsWithTheRole) {
  EXPECT_EQ(stream_events(kHead, chunk(ChatChunk::Kind::started), false),
            "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\","
            "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,"
            "\"finish_reason\":null}]}\n\n");
}

TEST(ChatResponse, DeltasKeepReasoningAndContentApart) {
  ChatChunk c = chunk(ChatChunk::Kind::delta);
  c.reasoning = "hm\n";
  c.content = "line\n\"é\"";
  const std::string event = stream_events(kHead, c, false);
  EXPECT_NE(event.find("\"delta\":{\"reasoning_content\":\"hm\\n\",\"content\":\"line\\n\\\"é\\\"\"}"),
            std::string::npos)
      << event;
  // One event, one line: a line break inside would end it early.
  EXPECT_EQ(event.find('\n'), event.size() - 2);
  EXPECT_EQ(stream_events(kHead, chunk(ChatChunk::Kind::delta), false), "");
}

TEST(ChatResponse, FinishAndUsage) {
  ChatChunk c = chunk(ChatChunk::Kind::finished);
  c.finish = Finish::length;
  c.usage.prompt_tokens = 3;
  c.usage.completion_tokens = 4;
  const std::string without = stream_events(kHead, c, false);
  EXPECT_NE(without.find("\"delta\":{},\"logprobs\":null,\"finish_reason\":\"length\""), std::string::npos) << without;
  EXPECT_EQ(without.find("usage"), std::string::npos);
  const std::string with = stream_events(kHead, c, true);
  EXPECT_EQ(with.substr(0, without.size()), without);
  EXPECT_NE(with.find("\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,\"total_tokens\":7,"),
            std::string::npos)
      << with;
}

TEST(ChatResponse, AFailureInsideAStreamIsAnErrorEvent) {
  ChatChunk c = chunk(ChatChunk::Kind::failed);
  c.error = Error{Code::device, "gone"};
  EXPECT_EQ(
      stream_events(kHead, c, true),
      "data: {\"error\":{\"message\":\"gone\",\"type\":\"server_error\",\"param\":null,\"code\":\"device\"}}\n\n");
}

TEST(ChatResponse, ToolCallsComeInPieces) {
  ChatChunk c = chunk(ChatChunk::Kind::delta);
  c.tool_calls = {{0, "call_1", "f", ""}, {0, "", "", "{\"a\":1}"}};
  const std::string event = stream_events(kHead, c, false);
  EXPECT_NE(
      event.find("\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"f\","
                 "\"arguments\":\"\"}},{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\":1}\"}}]"),
      std::string::npos)
      << event;
}

TEST(ChatResponse, WholeResponseIsTheSumOfItsChunks) {
  ResponseHead head = kHead;
  head.logprobs = true;
  WholeResponse whole(head);
  whole.add(chunk(ChatChunk::Kind::started));
  ChatChunk a = chunk(ChatChunk::Kind::delta);
  a.reasoning = "think";
  a.content = "an";
  a.tokens = {{{"an", -0.5f}, {{"an", -0.5f}, {"\xc3", -INFINITY}}}};
  a.tool_calls = {{0, "call_a", "f", "{"}};
  whole.add(a);
  ChatChunk b = chunk(ChatChunk::Kind::delta);
  b.content = "swer";
  b.tool_calls = {{0, "", "", "}"}, {1, "call_b", "g", "{}"}};
  whole.add(b);
  ChatChunk end = chunk(ChatChunk::Kind::finished);
  end.finish = Finish::tool_calls;
  end.usage.prompt_tokens = 10;
  end.usage.cached_tokens = 8;
  end.usage.completion_tokens = 2;
  whole.add(end);
  const auto json = parse_json(whole.body());
  ASSERT_TRUE(json);
  const Json& choice = (*json)["choices"][0];
  EXPECT_EQ((*json)["object"], "chat.completion");
  EXPECT_EQ(choice["message"]["content"], "answer");
  EXPECT_EQ(choice["message"]["reasoning_content"], "think");
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 2u);
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], "{}");
  EXPECT_EQ(choice["message"]["tool_calls"][1]["id"], "call_b");
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["logprobs"]["content"][0]["top_logprobs"][1]["bytes"], Json::array({0xc3}));
  EXPECT_EQ(choice["logprobs"]["content"][0]["top_logprobs"][1]["logprob"], -9999.0);
  EXPECT_EQ((*json)["usage"]["total_tokens"], 12);
  EXPECT_EQ((*json)["usage"]["prompt_tokens_details"]["cached_tokens"], 8);
}

TEST(ApiError, HasTheFourFields) {
  EXPECT_EQ(error_body({400, "bad \"x\"", "invalid_request_error", "top_p", ""}),
            "{\"error\":{\"message\":\"bad "
            "\\\"x\\\"\",\"type\":\"invalid_request_error\",\"param\":\"top_p\",\"code\":null}}");
  EXPECT_EQ(to_api_error(Error{Code::exhausted, "full"}).status, 503);
  EXPECT_EQ(to_api_error(Error{Code::invalid_argument, "x"}).status, 400);
  EXPECT_EQ(to_api_error(Error{Code::internal, "x"}).status, 500);
}

TEST(Json, LimitsDepthBeforeParsing) {
  EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']')));
  const auto deep = parse_json(std::string(65, '[') + std::string(65, ']'));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().message, "JSON: expected at most 64 nested arrays and objects, found more");
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')));
  EXPECT_TRUE(parse_json("\"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\""));
}

TEST(Json, LimitsTheKeysOfObjects) {
  auto object = [](int keys) {
    std::string text = "{";
    for (int i = 0; i < keys; ++i) text += "\"" + std::to_string(i) + "\":0,";
    text.back() = '}';
    return text;
  };
  EXPECT_TRUE(parse_json(object(2000)));
  EXPECT_FALSE(parse_json(object(20'000)));
}

TEST(Json, SaysWhereItIsMalformed) {
  for (const char* text : {"", "{", "{\"a\":}", "[1,]", "nul", "{} x", "\"\\ud800\"", "\"\xff\"", "1e999"}) {
    const auto json = parse_json(text);
    ASSERT_FALSE(json) << text;
    EXPECT_EQ(json.error().message.rfind("JSON: ", 0), 0u) << json.error().message;
  }
}

}  // namespace
}  // namespace chimere::server
