// anthropic_test.cpp  Anthropic's messages: what their bodies become, and what their answers look like.
#include <gtest/gtest.h>

#include "server/protocols/anthropic_request.h"
#include "server/protocols/anthropic_response.h"
#include "server/protocols/protocols_for_test.h"

namespace chimere::server {
namespace {

using orchestrator::ChatChunk;
using orchestrator::Finish;
using orchestrator::ToolChoice;

AnthropicCall anthropic(const std::string& fields) {
  return accepted(parse_anthropic_call(R"({"max_tokens":9,)" + fields + "}", {}, false));
}

TEST(AnthropicRequest, TurnsBlocksIntoMessages) {
  const AnthropicCall call = anthropic(R"("system":[{"type":"text","text":"S"}],"messages":[
    {"role":"user","content":"Hi"},
    {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"A"},
      {"type":"tool_use","id":"t1","name":"f","input":{"x":1}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"42"},{"type":"text","text":"go on"}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"no"}],
      "is_error":true}]}],
    "stop_sequences":["E"],"thinking":{"type":"enabled","budget_tokens":7},"metadata":{"user_id":"ann"},
    "tools":[{"name":"f","description":"d","input_schema":{"type":"object"}},{"type":"bash_20250124","name":"bash"}],
    "tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true})");
  const auto& messages = call.request.messages;
  ASSERT_EQ(messages.size(), 6u);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[0].content, "S");
  EXPECT_EQ(messages[2].reasoning_content, "hm");
  EXPECT_EQ(messages[2].content, "A");
  EXPECT_EQ(messages[2].tool_calls[0].arguments_json, R"({"x":1})");
  EXPECT_EQ(messages[3].role, "tool");
  EXPECT_EQ(messages[3].tool_call_id, "t1");
  EXPECT_EQ(messages[4].content, "go on");
  EXPECT_NE(messages[5].content_parts_json.find("Error:"), std::string::npos);
  EXPECT_EQ(call.request.max_tokens, 9);
  EXPECT_EQ(call.request.stop, std::vector<std::string>{"E"});
  EXPECT_EQ(call.request.enable_thinking, true);
  EXPECT_EQ(call.request.thinking_budget, 7);
  EXPECT_EQ(call.user, "ann");
  ASSERT_EQ(call.request.tools.size(), 1u);
  EXPECT_EQ(call.request.tools[0].json,
            R"({"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}})");
  EXPECT_EQ(call.ignored, std::vector<std::string>{"tools[1]"});
  EXPECT_EQ(call.request.tool_choice, ToolChoice::named);
  EXPECT_FALSE(call.request.parallel_tool_calls);
  EXPECT_EQ(anthropic(R"("messages":[{"role":"user","content":"Hi"}])").request.enable_thinking, false);
}

TEST(AnthropicRequest, GoesOnWithAnAnswerThatTheRequestBegan) {
  const AnthropicCall call = anthropic(R"("messages":[{"role":"user","content":"Hi"},
    {"role":"assistant","content":[{"type":"text","text":"{"}]}])");
  EXPECT_TRUE(call.request.goes_on);
  EXPECT_EQ(call.request.messages.back().content, "{");
  EXPECT_FALSE(anthropic(R"("messages":[{"role":"user","content":"Hi"}])").request.goes_on);
}

TEST(AnthropicRequest, TakesSystemMessagesWhereTheyStand) {
  const AnthropicCall call = anthropic(R"("system":"S","messages":[{"role":"user","content":"Hi"},
    {"role":"system","content":"Tools changed."},
    {"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])");
  const auto& messages = call.request.messages;
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[2].role, "system");
  EXPECT_EQ(messages[2].content, "Tools changed.");
  EXPECT_EQ(messages[3].role, "system");
  EXPECT_EQ(chat::text_of(messages[3]), "a\nb");
  EXPECT_TRUE(call.ignored.empty());
}

TEST(AnthropicRequest, EffortSaysHowLongAThoughtMayBeAndAsksForNone) {
  const auto with = [](const std::string& fields) {
    return anthropic(R"("messages":[{"role":"user","content":"Hi"}],)" + fields).request;
  };
  EXPECT_EQ(with(R"("thinking":{"type":"adaptive"},"output_config":{"effort":"low"})").thinking_limit, 256);
  EXPECT_EQ(with(R"("thinking":{"type":"adaptive"},"output_config":{"effort":"high"})").enable_thinking, true);
  EXPECT_EQ(with(R"("thinking":{"type":"adaptive"},"output_config":{"effort":"max"})").thinking_limit, kMaxInt);
  EXPECT_EQ(with(R"("output_config":{"effort":"max"})").enable_thinking, false);
  EXPECT_EQ(with(R"("thinking":{"type":"enabled","budget_tokens":7},"output_config":{"effort":"max"})").thinking_budget,
            7);
  EXPECT_EQ(with(R"("output_config":{"format":{"type":"json_schema","schema":{"type":"null"}}})").form.json_schema,
            R"({"type":"null"})");
  EXPECT_EQ(refused_param(parse_anthropic_call(
                R"({"max_tokens":1,"messages":[{"role":"user","content":"Hi"}],"output_config":{"effort":"vast"}})", {},
                false)),
            "output_config.effort");
}

TEST(AnthropicRequest, RefusesThreadsInTheWordsThatItsSdkFallsBackOn) {
  const auto parsed = parse_anthropic_call(R"({"max_tokens":9,"thread":{"type":"create"},"messages":[]})", {}, false);
  const ApiError* error = std::get_if<ApiError>(&parsed);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->status, 400);
  const auto json = parse_json(anthropic_error_body(*error));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["error"]["details"]["error_code"], "thread_unsupported_request");
  EXPECT_EQ((*json)["error"]["details"]["unsupported"], Json::array({"thread"}));
}

TEST(AnthropicRequest, SaysThatAPromptIsTooLongAsAnthropicDoes) {
  const auto json = parse_json(anthropic_error_body(prompt_too_long(1200, 1000, "messages")));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["error"]["type"], "invalid_request_error");
  EXPECT_EQ((*json)["error"]["message"], "prompt is too long: 1200 tokens > 1000 maximum");
  EXPECT_EQ((*json)["error"]["n_prompt_tokens"], 1200);
  EXPECT_EQ((*json)["error"]["n_ctx"], 1000);
}

TEST(AnthropicRequest, NamesUnknownKeysByTheirPath) {
  const AnthropicCall call = anthropic(R"("system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}],
    "messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},
      {"type":"text","text":"b","citations":[1]}]},
    {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{},"caller":1}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"42","odd":1}]}],
    "tools":[{"name":"f","input_schema":{"type":"object"},"foo":1,"eager_input_streaming":true}])");
  EXPECT_EQ(call.ignored, (std::vector<std::string>{"messages[0].content[1].citations", "messages[1].content[0].caller",
                                                    "messages[2].content[0].odd", "tools[0].foo"}));
  EXPECT_EQ(chat::text_of(call.request.messages[1]), "a\nb");
}

TEST(AnthropicRequest, RefusesByName) {
  const std::string hi = R"("messages":[{"role":"user","content":"Hi"}])";
  const std::pair<std::string, std::string> cases[] = {
      {"{" + hi + "}", "max_tokens"},
      {R"({"max_tokens":1})", "messages"},
      {R"({"max_tokens":1,"messages":[{"role":"boss","content":"x"}]})", "messages[0].role"},
      {R"({"max_tokens":1,"messages":[{"role":"user"}]})", "messages[0].content"},
      {R"({"max_tokens":1,"messages":[{"role":"user","content":[{"type":"image"}]}]})", "messages[0].content[0].type"},
      {R"({"max_tokens":1,"messages":[{"role":"assistant","content":""}]})", "messages"},
      {R"({"max_tokens":1,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[
         {"type":"tool_use","id":"t","name":"f","input":{}}]}]})",
       "messages"},
      {R"({"max_tokens":1,"messages":[{"role":"user","content":[{"type":"text"}]}]})", "messages[0].content[0].text"},
      {R"({"max_tokens":1,"tool_choice":{"type":"any"},)" + hi + "}", "tool_choice"},
      {R"({"max_tokens":1,"thinking":{"type":"deep"},)" + hi + "}", "thinking.type"},
      {R"({"max_tokens":1,"system":3,)" + hi + "}", "system"},
  };
  for (const auto& [body, param] : cases)
    EXPECT_EQ(refused_param(parse_anthropic_call(body, {}, false)), param) << body;
  EXPECT_EQ(refused_param(parse_anthropic_call("{" + hi + "}", {}, true)), "accepted");
  EXPECT_EQ(anthropic_error_body({429, "slow down", "", "", ""}),
            R"({"type":"error","error":{"type":"rate_limit_error","message":"slow down"}})");
}

TEST(AnthropicResponse, OpensAndClosesBlocksInOrder) {
  const auto streamed = anthropic_writer("m"), whole = anthropic_writer("m");
  const Written written = write(*streamed, *whole);
  const std::string start = "content_block_start", delta = "content_block_delta", stop = "content_block_stop";
  EXPECT_EQ(types_of(written.events),
            (std::vector<std::string>{"message_start", start, delta, delta, stop, start, delta, delta, stop, start,
                                      delta, delta, stop, start, delta, stop, "message_delta", "message_stop"}));
  EXPECT_EQ(written.events[0]["message"]["usage"]["input_tokens"], 10);
  EXPECT_EQ(written.events[16]["delta"]["stop_reason"], "tool_use");
  EXPECT_EQ(written.whole["content"].size(), 4u);
  EXPECT_EQ(written.whole["content"][2]["input"]["x"], 1);
  EXPECT_EQ(written.whole["usage"]["input_tokens"], 6);
  EXPECT_EQ(written.whole["usage"]["cache_read_input_tokens"], 4);
}

TEST(AnthropicResponse, GivesTheArgumentsOfACallThatWasCutOff) {
  ChatChunk cut;
  cut.finish = Finish::length;
  cut.tool_calls = {{0, "call_a", "f", "{\"x\": 1"}};
  const auto json = parse_json(anthropic_writer("m")->body({cut}, {}));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["content"][0]["input"]["x"], 1);
  EXPECT_EQ((*json)["stop_reason"], "max_tokens");
  cut.tool_calls = {{0, "call_a", "f", "{\"x\": 1, \"text\": \"half a li"}};
  const auto text = parse_json(anthropic_writer("m")->body({cut}, {}));
  ASSERT_TRUE(text);
  EXPECT_EQ((*text)["content"][0]["input"], (Json{{"x", 1}, {"text", "half a li"}}));
}

}  // namespace
}  // namespace chimere::server
