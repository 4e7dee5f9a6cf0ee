// openai_chat_response_test.cpp  The shapes clients parse.
#include "server/protocols/openai_chat_response.h"

#include <gtest/gtest.h>

#include <cmath>

#include "server/http/api_error.h"
#include "server/http/json.h"

namespace chimere::server {
namespace {

using orchestrator::ChatChunk;
using orchestrator::Finish;

ResponseHead head(bool include_usage = false, bool logprobs = false) {
  return {"chatcmpl-1", "m", 1700000000, logprobs, include_usage};
}

ChatChunk chunk(ChatChunk::Kind kind) {
  ChatChunk c;
  c.kind = kind;
  return c;
}

TEST(ChatResponse, StreamStartsWithTheRole) {
  EXPECT_EQ(chat_writer(head())->events(0, chunk(ChatChunk::Kind::started)),
            "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\","
            "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,"
            "\"finish_reason\":null}]}\n\n");
}

TEST(ChatResponse, DeltasKeepReasoningAndContentApart) {
  ChatChunk c = chunk(ChatChunk::Kind::delta);
  c.reasoning = "hm\n";
  c.content = "line\n\"é\"";
  const std::string event = chat_writer(head())->events(0, c);
  EXPECT_NE(event.find("\"delta\":{\"reasoning_content\":\"hm\\n\",\"content\":\"line\\n\\\"é\\\"\"}"),
            std::string::npos)
      << event;
  // One event, one line: a line break inside would end it early.
  EXPECT_EQ(event.find('\n'), event.size() - 2);
}

TEST(ChatResponse, FinishAndUsage) {
  ChatChunk c = chunk(ChatChunk::Kind::finished);
  c.finish = Finish::length;
  c.usage.prompt_tokens = 3;
  c.usage.completion_tokens = 4;
  c.usage.reasoning_tokens = 2;
  auto without = chat_writer(head());
  const std::string end = without->events(1, c);
  EXPECT_NE(end.find("\"index\":1,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"length\""), std::string::npos)
      << end;
  EXPECT_NE(end.find("\"timings\":{\"queue_ms\":"), std::string::npos) << end;
  EXPECT_EQ(without->end(c.usage), kSseDone);
  const std::string with = chat_writer(head(true))->end(c.usage);
  EXPECT_NE(with.find("\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,\"total_tokens\":7,"),
            std::string::npos)
      << with;
  EXPECT_NE(with.find("\"completion_tokens_details\":{\"reasoning_tokens\":2}"), std::string::npos) << with;
}

TEST(ChatResponse, AFailureInsideAStreamIsAnErrorEvent) {
  EXPECT_EQ(chat_writer(head())->error_event(to_api_error(Error{Code::device, "gone"})),
            "data: {\"error\":{\"message\":\"gone\",\"type\":\"server_error\",\"param\":null,\"code\":\"device\"}}\n\n"
            "data: [DONE]\n\n");
}

TEST(ResponseWriter, PromptsThatChoicesShareCountOnce) {
  engine::Usage usage;
  usage.prompt_tokens = 10;
  usage.cached_tokens = 4;
  usage.completion_tokens = 3;
  engine::Usage second = usage;
  second.cached_tokens = 10;
  const engine::Usage total = total_usage({usage, second, usage, second}, 2);
  EXPECT_EQ(total.prompt_tokens, 20);
  EXPECT_EQ(total.cached_tokens, 8);
  EXPECT_EQ(total.completion_tokens, 12);
}

TEST(ChatResponse, ToolCallsComeInPieces) {
  ChatChunk c = chunk(ChatChunk::Kind::delta);
  c.tool_calls = {{0, "call_1", "f", ""}, {0, "", "", "{\"a\":1}"}};
  const std::string event = chat_writer(head())->events(0, c);
  EXPECT_NE(
      event.find("\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"f\","
                 "\"arguments\":\"\"}},{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\":1}\"}}]"),
      std::string::npos)
      << event;
}

TEST(ChatResponse, WholeResponseIsTheSumOfItsChunks) {
  ChatChunk sum;
  append(sum, chunk(ChatChunk::Kind::started));
  ChatChunk a = chunk(ChatChunk::Kind::delta);
  a.reasoning = "think";
  a.content = "an";
  a.tokens = {{{"an", -0.5f}, {{"an", -0.5f}, {"\xc3", -INFINITY}}}};
  a.tool_calls = {{0, "call_a", "f", "{"}};
  append(sum, a);
  ChatChunk b = chunk(ChatChunk::Kind::delta);
  b.content = "swer";
  b.tool_calls = {{0, "", "", "}"}, {1, "call_b", "g", "{}"}};
  append(sum, b);
  ChatChunk end = chunk(ChatChunk::Kind::finished);
  end.finish = Finish::tool_calls;
  end.usage.prompt_tokens = 10;
  end.usage.cached_tokens = 8;
  end.usage.completion_tokens = 2;
  append(sum, end);
  const auto json = parse_json(chat_writer(head(false, true))->body({sum}, end.usage));
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
  EXPECT_EQ(to_api_error(Error{Code::exhausted, "full"}).status, 429);
  EXPECT_EQ(to_api_error(Error{Code::invalid_argument, "x"}).status, 400);
  EXPECT_EQ(to_api_error(Error{Code::internal, "x"}).status, 500);
}

}  // namespace
}  // namespace chimere::server
