// protocols_test.cpp  Completions, responses and Anthropic's messages: what their bodies become, and what their answers
// look like.
#include <gtest/gtest.h>

#include "server/http/json.h"
#include "server/protocols/anthropic_response.h"
#include "server/protocols/anthropic_schema.h"
#include "server/protocols/completion_response.h"
#include "server/protocols/completion_schema.h"
#include "server/protocols/responses_response.h"
#include "server/protocols/responses_schema.h"

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

TEST(AnthropicSchema, TakesSystemMessagesWhereTheyStand) {
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

TEST(AnthropicSchema, EffortSaysHowLongAThoughtMayBeAndAsksForNone) {
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

TEST(AnthropicSchema, RefusesThreadsInTheWordsThatItsSdkFallsBackOn) {
  const auto parsed = parse_anthropic_call(R"({"max_tokens":9,"thread":{"type":"create"},"messages":[]})", {}, false);
  const ApiError* error = std::get_if<ApiError>(&parsed);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->status, 400);
  const auto json = parse_json(anthropic_error_body(*error));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["error"]["details"]["error_code"], "thread_unsupported_request");
  EXPECT_EQ((*json)["error"]["details"]["unsupported"], Json::array({"thread"}));
}

TEST(AnthropicSchema, SaysThatAPromptIsTooLongAsAnthropicDoes) {
  const auto json = parse_json(anthropic_error_body(prompt_too_long(1200, 1000)));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["error"]["type"], "invalid_request_error");
  EXPECT_EQ((*json)["error"]["message"], "prompt is too long: 1200 tokens > 1000 maximum");
  EXPECT_EQ((*json)["error"]["n_prompt_tokens"], 1200);
  EXPECT_EQ((*json)["error"]["n_ctx"], 1000);
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
  // Nothing can be kept here.
  EXPECT_EQ(call.ignored, (std::vector<std::string>{"tools[1]", "store"}));
  EXPECT_FALSE(call.is_kept);
  EXPECT_EQ(responses(R"("input":"Hi")").request.messages[0].content, "Hi");
}

TEST(ResponsesSchema, ToolsOfEveryFormAreShownAsFunctions) {
  const ResponsesCall call = responses(R"("input":[{"role":"user","content":"Hi"},
    {"type":"function_call","call_id":"c1","namespace":"mcp__notes","name":"find","arguments":"{}"},
    {"type":"function_call_output","call_id":"c1","output":"none"},
    {"type":"custom_tool_call","call_id":"c2","name":"patch","input":"a\nb"},
    {"type":"custom_tool_call_output","call_id":"c2","output":"done"},
    {"type":"tool_search_call","call_id":"c3","execution":"client","arguments":{"query":"mail"}},
    {"type":"tool_search_output","call_id":"c3","tools":[{"type":"namespace","name":"mail","tools":[
      {"type":"function","name":"send","parameters":{"type":"object"}}]}]},
    {"type":"web_search_call","id":"w"}],
    "tools":[{"type":"function","name":"run","parameters":{"type":"object"}},
      {"type":"namespace","name":"mcp__notes","description":"d","tools":[
        {"type":"function","name":"find","strict":false,"parameters":{"type":"object"}}, {"type":"mcp"}]},
      {"type":"custom","name":"patch","description":"Edits.","format":{"type":"grammar","syntax":"lark",
        "definition":"start: line+"}},
      {"type":"tool_search","execution":"client","parameters":{"type":"object"}},
      {"type":"web_search"}],"tool_choice":{"type":"function","name":"find"})");
  EXPECT_EQ(call.request.tool_name, "mcp__notes__find");
  std::vector<std::string> names;
  for (const chat::Tool& tool : call.request.tools) {
    const auto json = parse_json(tool.json);
    ASSERT_TRUE(json);
    names.push_back((*json)["function"]["name"]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"mail__send", "run", "mcp__notes__find", "patch", "tool_search"}));
  EXPECT_NE(call.request.tools[3].json.find("start: line+"), std::string::npos);
  ASSERT_EQ(call.tools.size(), 4u);
  EXPECT_EQ(call.tools.at("mcp__notes__find").space, "mcp__notes");
  EXPECT_EQ(call.tools.at("mcp__notes__find").name, "find");
  EXPECT_EQ(call.tools.at("patch").kind, ResponseTool::Kind::custom);
  EXPECT_EQ(call.tools.at("tool_search").kind, ResponseTool::Kind::search);
  EXPECT_EQ(call.ignored, (std::vector<std::string>{"input[7]", "tools[1].tools[1]", "tools[4]"}));
  const auto& messages = call.request.messages;
  ASSERT_EQ(messages.size(), 7u);
  EXPECT_EQ(messages[1].tool_calls[0].name, "mcp__notes__find");
  EXPECT_EQ(messages[3].tool_calls[0].arguments_json, R"({"input":"a\nb"})");
  EXPECT_EQ(messages[4].tool_call_id, "c2");
  EXPECT_EQ(messages[5].tool_calls[0].name, "tool_search");
}

TEST(ResponsesSchema, GoesOnWithWhatIsKept) {
  KeptResponses kept{std::chrono::seconds(60)};
  kept.put({"resp_1",
            "ann",
            {{"", R"({"role":"user","content":"One?"})"},
             {"msg_1", R"({"type":"message","id":"msg_1","role":"assistant","content":"Two."})"}},
            "{}",
            KeptResponses::Clock::now()});
  const auto ask = [&](const std::string& body, const char* owner) {
    return parse_responses_call(body, {}, &kept, owner);
  };
  const ResponsesCall next = accepted(ask(R"({"previous_response_id":"resp_1","input":"Three?"})", "ann"));
  ASSERT_EQ(next.request.messages.size(), 3u);
  EXPECT_EQ(next.request.messages[1].content, "Two.");
  EXPECT_EQ(next.request.messages[2].content, "Three?");
  EXPECT_TRUE(next.is_kept);
  ASSERT_EQ(next.items.size(), 3u);
  EXPECT_EQ(next.items[1].id, "msg_1");
  EXPECT_NE(next.echo.find(R"("previous_response_id":"resp_1")"), std::string::npos);
  EXPECT_NE(next.echo.find(R"("store":true)"), std::string::npos);
  const std::string named = R"({"store":false,"input":[{"role":"user","content":"One?"},
    {"type":"item_reference","id":"msg_1"},{"role":"user","content":"Three?"}]})";
  const ResponsesCall referring = accepted(ask(named, "ann"));
  ASSERT_EQ(referring.request.messages.size(), 3u);
  EXPECT_EQ(referring.request.messages[1].content, "Two.");
  EXPECT_FALSE(referring.is_kept);
  EXPECT_TRUE(referring.items.empty());
  // Another key has none of it.
  EXPECT_EQ(refused_param(ask(named, "bob")), "input[1]");
  EXPECT_EQ(refused_param(ask(R"({"previous_response_id":"resp_1","input":"x"})", "bob")), "previous_response_id");
}

TEST(KeptResponses, AreBoundedInTimeNumberAndBytes) {
  using std::chrono::seconds;
  const KeptResponses::Clock::time_point start = KeptResponses::Clock::now();
  const auto entry = [&](const std::string& id, const std::string& owner, size_t bytes = 1, seconds at = seconds(0)) {
    return KeptResponses::Entry{id, owner, {{"item_" + id, "{}"}}, std::string(bytes, 'x'), start + at};
  };
  KeptResponses kept{seconds(60)};
  kept.put(entry("old", "ann"));
  EXPECT_TRUE(kept.body("ann", "old", start + seconds(59)));
  EXPECT_FALSE(kept.body("ann", "old", start + seconds(60)));
  EXPECT_FALSE(kept.body("bob", "old", start));
  EXPECT_FALSE(kept.item("bob", "item_old", start));
  EXPECT_TRUE(kept.item("ann", "item_old", start));
  // One key's flood drops its own, not another's.
  for (size_t i = 0; i < KeptResponses::kMaxOwnerCount; ++i) kept.put(entry("b" + std::to_string(i), "bob"));
  EXPECT_TRUE(kept.body("bob", "b0", start));
  kept.put(entry("one more", "bob"));
  EXPECT_FALSE(kept.body("bob", "b0", start));
  EXPECT_TRUE(kept.body("bob", "b1", start));
  EXPECT_TRUE(kept.body("ann", "old", start));
  kept.put(entry("large", "eve", KeptResponses::kMaxOwnerBytes));
  EXPECT_FALSE(kept.body("eve", "large", start));
  kept.put(entry("half", "eve", KeptResponses::kMaxOwnerBytes / 2));
  kept.put(entry("other half", "eve", KeptResponses::kMaxOwnerBytes / 2));
  EXPECT_FALSE(kept.body("eve", "half", start));
  EXPECT_TRUE(kept.body("eve", "other half", start));
  // All together.
  for (size_t i = 0; i < KeptResponses::kMaxCount; ++i) {
    kept.put(entry("u" + std::to_string(i), "user" + std::to_string(i), 1, seconds(1)));
  }
  EXPECT_FALSE(kept.body("ann", "old", start + seconds(1)));
  EXPECT_TRUE(kept.forget("user7", "u7", start + seconds(1)));
  EXPECT_FALSE(kept.forget("user7", "u7", start + seconds(1)));
  kept.drop_old(start + seconds(100));
  EXPECT_FALSE(kept.body("user8", "u8", start + seconds(1)));
  KeptResponses off{seconds(0)};
  off.put(entry("a", "ann"));
  EXPECT_FALSE(off.body("ann", "a", start));
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
      {R"({"input":[{"type":"item_reference","id":"x"}]})", "input[0]"},
      {R"({"input":[{"id":"x"}]})", "input[0]"},
      {R"({"input":[{"type":3}]})", "input[0].type"},
      {R"({"input":[3]})", "input[0]"},
      {R"({"input":"x","conversation":"c"})", "conversation"},
      {R"({"input":"x","tools":[{"type":"namespace","name":"n"}]})", "tools[0].tools"},
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

TEST(ResponsesResponse, CallsGoBackInTheFormOfTheirDeclaration) {
  ResponsesHead head{"m", 1};
  head.tools["notes__find"] = {ResponseTool::Kind::function, "notes", "find"};
  head.tools["patch"] = {ResponseTool::Kind::custom, "", "patch"};
  head.tools["tool_search"] = {ResponseTool::Kind::search, "", "tool_search"};
  Json kept;
  head.keep = [&](const Json& whole) { kept = whole; };
  const auto writer = responses_writer(std::move(head));
  std::vector<ChatChunk> list(6);
  list[0].tool_calls = {{0, "call_a", "notes__find", "{\"q\":1}"}};
  list[1].tool_calls = {{1, "call_b", "patch", "{\"inp"}};
  list[2].tool_calls = {{1, "", "", "ut\":\"a \\"}};
  list[3].tool_calls = {{1, "", "", "n\\u00e9 \\ud83d"}};
  list[4].tool_calls = {{1, "", "", "\\ude00\\\"b\"}"}};
  list[5].tool_calls = {{2, "call_c", "tool_search", "{\"query\":\"mail\"}"}};
  std::string deltas;
  for (const ChatChunk& chunk : list) {
    const std::string text = writer->events(0, chunk);
    for (size_t at = 0; (at = text.find("data: ", at)) != std::string::npos; ++at) {
      const auto event = parse_json(text.substr(at + 6, text.find("\n\n", at) - at - 6));
      ASSERT_TRUE(event) << text;
      if ((*event)["type"] == "response.custom_tool_call_input.delta")
        deltas += (*event)["delta"].get<std::string>() + "|";
    }
  }
  EXPECT_EQ(deltas, "a |\n\u00e9 |\U0001F600\"b|");
  ChatChunk end;
  end.kind = ChatChunk::Kind::finished;
  end.finish = Finish::tool_calls;
  writer->events(0, end);
  writer->end({});
  ASSERT_EQ(kept["output"].size(), 3u);
  EXPECT_EQ(kept["output"][0]["type"], "function_call");
  EXPECT_EQ(kept["output"][0]["namespace"], "notes");
  EXPECT_EQ(kept["output"][0]["name"], "find");
  EXPECT_EQ(kept["output"][1]["type"], "custom_tool_call");
  EXPECT_EQ(kept["output"][1]["input"], "a \n\u00e9 \U0001F600\"b");
  EXPECT_FALSE(kept["output"][1].contains("arguments"));
  EXPECT_EQ(kept["output"][2]["type"], "tool_search_call");
  EXPECT_EQ(kept["output"][2]["arguments"]["query"], "mail");
}

TEST(ResponsesResponse, APromptThatIsTooLongIsAnEventOfAStream) {
  const auto writer = responses_writer({"m", 1});
  const ApiError error = prompt_too_long(1200, 1000);
  EXPECT_TRUE(writer->streams(error));
  EXPECT_FALSE(writer->streams({500, "x", "", "", ""}));
  const std::string text = writer->error_event(error);
  EXPECT_EQ(text.find("event: response.created"), 0u) << text;
  const size_t failed = text.find("event: response.failed\ndata: ");
  ASSERT_NE(failed, std::string::npos) << text;
  const size_t begin = failed + 29;
  const auto event = parse_json(text.substr(begin, text.find("\n\n", begin) - begin));
  ASSERT_TRUE(event) << text;
  const Json& said = (*event)["response"]["error"];
  EXPECT_EQ(said["code"], "context_length_exceeded");
  EXPECT_EQ(said["message"].get<std::string>().find(
                "This model's maximum context length is 1000 tokens. However, you requested 1200"),
            0u);
  EXPECT_EQ(said["n_prompt_tokens"], 1200);
  EXPECT_EQ(said["n_ctx"], 1000);
}

TEST(ResponsesResponse, AnItemThatIsCutOffSaysSo) {
  const auto writer = responses_writer({"m", 1});
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
  const auto streamed = responses_writer({"m", 1}), whole = responses_writer({"m", 1});
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
