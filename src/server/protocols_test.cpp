// protocols_test.cpp  Completions, responses and Anthropic's messages: what their bodies become, and what their answers
// look like.
#include <gtest/gtest.h>

#include "server/anthropic_response.h"
#include "server/anthropic_schema.h"
#include "server/completion_response.h"
#include "server/completion_schema.h"
#include "server/json.h"
#include "server/responses_response.h"
#include "server/responses_schema.h"

namespace chimere::server {
namespace {

using orchestrator::ChatChunk;
using orchestrator::Finish;
using orchestrator::ToolChoice;

template <class Call>
Call accepted(std::variant<Call, ApiError> parsed) {
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) {
    ADD_FAILURE() << error->message;
    return {};
  }
  return std::move(std::get<Call>(parsed));
}

template <class Call>
std::string refused_param(const std::variant<Call, ApiError>& parsed) {
  const ApiError* error = std::get_if<ApiError>(&parsed);
  return error && error->status == 400 ? error->param : "accepted";
}

CompletionCall completion(const std::string& body) { return accepted(parse_completion_call(body, {})); }

TEST(CompletionSchema, ReadsPromptsOfEveryKind) {
  EXPECT_EQ(completion(R"({"prompt":"a"})").prompts[0].prompt, "a");
  EXPECT_EQ(completion(R"({"prompt":["a","b"]})").prompts[1].prompt, "b");
  EXPECT_EQ(completion(R"({"prompt":[1,2]})").prompts[0].prompt_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(completion(R"({"prompt":[[1],[2,3]]})").prompts[1].prompt_ids, (std::vector<int32_t>{2, 3}));
  const CompletionCall call =
      completion(R"({"prompt":"a","max_tokens":5,"logprobs":3,"n":2,"best_of":2,"stop":"x","mood":1})");
  EXPECT_EQ(call.prompts[0].max_tokens, 5);
  EXPECT_TRUE(call.prompts[0].logprobs);
  EXPECT_EQ(call.prompts[0].sampling.top_logprobs, 3);
  EXPECT_EQ(call.n, 2);
  EXPECT_EQ(call.ignored, std::vector<std::string>{"mood"});
}

TEST(CompletionSchema, RefusesWhatItCanNotDo) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "prompt"},
      {R"({"prompt":3})", "prompt"},
      {R"({"prompt":[]})", "prompt"},
      {R"({"prompt":["a",1]})", "prompt"},
      {R"({"prompt":[-1]})", "prompt"},
      {R"({"prompt":"a","suffix":"b"})", "suffix"},
      {R"({"prompt":"a","best_of":3})", "best_of"},
      {R"({"prompt":"a","echo":true,"logprobs":1})", "logprobs"},
      {R"({"prompt":"a","logprobs":21})", "logprobs"},
  };
  for (const auto& [body, param] : cases) EXPECT_EQ(refused_param(parse_completion_call(body, {})), param) << body;
}

AnthropicCall anthropic(const std::string& fields) {
  return accepted(parse_anthropic_call(R"({"max_tokens":9,)" + fields + "}", {}, false));
}

TEST(AnthropicSchema, TurnsBlocksIntoMessages) {
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

TEST(AnthropicSchema, GoesOnWithAnAnswerThatTheRequestBegan) {
  const AnthropicCall call = anthropic(R"("messages":[{"role":"user","content":"Hi"},
    {"role":"assistant","content":[{"type":"text","text":"{"}]}])");
  EXPECT_TRUE(call.request.goes_on);
  EXPECT_EQ(call.request.messages.back().content, "{");
  EXPECT_FALSE(anthropic(R"("messages":[{"role":"user","content":"Hi"}])").request.goes_on);
}

TEST(AnthropicSchema, NamesUnknownKeysByTheirPath) {
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

TEST(AnthropicSchema, RefusesByName) {
  const std::string hi = R"("messages":[{"role":"user","content":"Hi"}])";
  const std::pair<std::string, std::string> cases[] = {
      {"{" + hi + "}", "max_tokens"},
      {R"({"max_tokens":1})", "messages"},
      {R"({"max_tokens":1,"messages":[{"role":"system","content":"x"}]})", "messages[0].role"},
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

ResponsesCall responses(const std::string& fields) { return accepted(parse_responses_call("{" + fields + "}", {})); }

TEST(ResponsesSchema, TurnsItemsIntoMessages) {
  const ResponsesCall call = responses(R"("instructions":"I","input":[
    {"role":"developer","content":"D"},
    {"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]},
    {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},
    {"type":"message","role":"assistant","content":[{"type":"output_text","text":"A"}]},
    {"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
    {"type":"function_call_output","call_id":"c1","output":"42"}],
    "tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"web_search"}],
    "reasoning":{"effort":"low"},"max_output_tokens":5,"store":true,"include":["message.output_text.logprobs"])");
  const auto& messages = call.request.messages;
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0].content, "I\n\nD");
  EXPECT_EQ(chat::text_of(messages[1]), "a\nb");
  EXPECT_EQ(messages[2].reasoning_content, "hm");
  EXPECT_EQ(messages[2].content, "A");
  EXPECT_EQ(messages[2].tool_calls[0].name, "f");
  EXPECT_EQ(messages[3].tool_call_id, "c1");
  EXPECT_EQ(call.request.max_tokens, 5);
  EXPECT_EQ(call.request.thinking_limit, 256);
  EXPECT_TRUE(call.request.logprobs);
  EXPECT_EQ(call.ignored, (std::vector<std::string>{"tools[1]", "store"}));
  EXPECT_EQ(responses(R"("input":"Hi")").request.messages[0].content, "Hi");
}

TEST(ResponsesSchema, NamesUnknownKeysByTheirPath) {
  const ResponsesCall call = responses(R"("input":[
    {"role":"user","odd":1,"content":[{"type":"input_text","text":"a","bar":1}]},
    {"type":"function_call","id":"fc","call_id":"c1","name":"f","arguments":"{}","status":"completed","more":1},
    {"type":"function_call_output","call_id":"c1","output":"42"}],
    "tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true,"foo":1}],
    "text":{"format":{"type":"json_schema","name":"n","schema":{},"baz":1}})");
  EXPECT_EQ(call.ignored, (std::vector<std::string>{"text.format.baz", "input[0].content[0].bar", "input[0].odd",
                                                    "input[1].more", "tools[0].foo"}));
}

TEST(ResponsesSchema, RefusesByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "input"},
      {R"({"input":3})", "input"},
      {R"({"input":[{"type":"item_reference","id":"x"}]})", "input[0].type"},
      {R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})", "input[0].content[0]"},
      {R"({"input":[{"role":"boss","content":"x"}]})", "input[0].role"},
      {R"({"input":"x","previous_response_id":"r"})", "previous_response_id"},
      {R"({"input":"x","background":true})", "background"},
      {R"({"input":"x","text":{"format":{"type":"json_schema"}}})", "text.format.schema"},
      {R"({"input":"x","reasoning":{"effort":"vast"}})", "reasoning.effort"},
  };
  for (const auto& [body, param] : cases) EXPECT_EQ(refused_param(parse_responses_call(body, {})), param) << body;
}

// A thought, a text and two calls, in pieces.
std::vector<ChatChunk> chunks() {
  std::vector<ChatChunk> list(5);
  list[0].kind = ChatChunk::Kind::started;
  list[0].usage.prompt_tokens = 10;
  list[1].reasoning = "hm";
  list[2].content = "Let";
  list[3].content = " me";
  list[3].tool_calls = {{0, "call_a", "f", "{\"x\""}, {0, "", "", ":1}"}, {1, "call_b", "g", "{}"}};
  list[4].kind = ChatChunk::Kind::finished;
  list[4].finish = Finish::tool_calls;
  list[4].usage.prompt_tokens = 10;
  list[4].usage.cached_tokens = 4;
  list[4].usage.completion_tokens = 6;
  return list;
}

struct Written {
  std::vector<Json> events;
  Json whole;
};

Written write(ResponseWriter& streamed, ResponseWriter& whole) {
  std::string text;
  ChatChunk sum;
  for (const ChatChunk& chunk : chunks()) {
    text += streamed.events(0, chunk);
    append(sum, chunk);
  }
  text += streamed.end(sum.usage);
  Written written;
  for (size_t at = text.find("data: "); at != std::string::npos; at = text.find("data: ", at + 1)) {
    auto json = parse_json(text.substr(at + 6, text.find('\n', at) - at - 6));
    if (json) written.events.push_back(std::move(*json));
  }
  if (auto json = parse_json(whole.body({sum}, sum.usage))) written.whole = std::move(*json);
  return written;
}

std::vector<std::string> types_of(const std::vector<Json>& events) {
  std::vector<std::string> types;
  for (const Json& event : events) types.push_back(event.value("type", ""));
  return types;
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

TEST(ResponsesResponse, AnItemThatIsCutOffSaysSo) {
  const auto writer = responses_writer("m", 1, "{}", false);
  ChatChunk chunk;
  chunk.tool_calls = {{0, "call_a", "f", "{\"x\": \"ha"}};
  std::string text = writer->events(0, chunk);
  ChatChunk end;
  end.kind = ChatChunk::Kind::finished;
  end.finish = Finish::length;
  text += writer->events(0, end);
  EXPECT_NE(text.find("\"type\":\"response.function_call_arguments.done\""), std::string::npos) << text;
  const size_t done = text.find("\"type\":\"response.output_item.done\"");
  ASSERT_NE(done, std::string::npos) << text;
  EXPECT_NE(text.find("\"status\":\"incomplete\"", done), std::string::npos) << text;
}

TEST(ResponsesResponse, NumbersItsEventsAndEndsWithTheWhole) {
  const auto streamed = responses_writer("m", 1, "{}", false), whole = responses_writer("m", 1, "{}", false);
  const Written written = write(*streamed, *whole);
  for (size_t i = 0; i < written.events.size(); ++i) EXPECT_EQ(written.events[i]["sequence_number"], i);
  const std::string added = "response.output_item.added", done = "response.output_item.done";
  EXPECT_EQ(types_of(written.events), (std::vector<std::string>{"response.created",
                                                                "response.in_progress",
                                                                added,
                                                                "response.content_part.added",
                                                                "response.reasoning_text.delta",
                                                                "response.reasoning_text.done",
                                                                "response.content_part.done",
                                                                done,
                                                                added,
                                                                "response.content_part.added",
                                                                "response.output_text.delta",
                                                                "response.output_text.delta",
                                                                "response.output_text.done",
                                                                "response.content_part.done",
                                                                done,
                                                                added,
                                                                "response.function_call_arguments.delta",
                                                                "response.function_call_arguments.delta",
                                                                "response.function_call_arguments.done",
                                                                done,
                                                                added,
                                                                "response.function_call_arguments.delta",
                                                                "response.function_call_arguments.done",
                                                                done,
                                                                "response.completed"}));
  const Json& end = written.events.back()["response"];
  ASSERT_EQ(end["output"].size(), 4u);
  EXPECT_EQ(end["output"][1]["content"][0]["text"], "Let me");
  EXPECT_EQ(end["output"][2]["arguments"], "{\"x\":1}");
  ASSERT_EQ(written.whole["output"].size(), 4u);
  EXPECT_EQ(written.whole["output"][2]["arguments"], end["output"][2]["arguments"]);
  EXPECT_EQ(written.whole["status"], "completed");
  EXPECT_EQ(written.whole["usage"]["input_tokens_details"]["cached_tokens"], 4);
}

TEST(CompletionResponse, EchoesAndListsLogprobs) {
  ResponseHead head{"cmpl-1", "m", 1, true, false};
  ChatChunk sum;
  sum.content = "ab";
  sum.tokens.resize(2);
  sum.tokens[0].token = {"a", -1};
  sum.tokens[0].top.push_back({"a", -1});
  sum.tokens[1].token = {"b", -2};
  sum.tokens[1].top.push_back({"c", -0.5f});
  const auto json = parse_json(completion_writer(head, {"> "})->body({sum}, {}));
  ASSERT_TRUE(json);
  const Json& choice = (*json)["choices"][0];
  EXPECT_EQ(choice["text"], "> ab");
  EXPECT_EQ(choice["logprobs"]["tokens"], Json::array({"a", "b"}));
  EXPECT_EQ(choice["logprobs"]["text_offset"], Json::array({0, 1}));
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][1]["c"], -0.5);
}

}  // namespace
}  // namespace chimere::server
