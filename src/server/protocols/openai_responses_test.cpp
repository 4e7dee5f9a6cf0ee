// openai_responses_test.cpp  Responses: what their bodies become, what is kept, and what their answers look like.
#include <gtest/gtest.h>

#include "server/protocols/openai_input_items.h"
#include "server/protocols/openai_responses_request.h"
#include "server/protocols/openai_responses_response.h"
#include "server/protocols/protocols_for_test.h"

namespace chimere::server {
namespace {

using orchestrator::ChatChunk;
using orchestrator::Finish;

ResponsesCall responses(const std::string& fields) { return accepted(parse_responses_call("{" + fields + "}", {})); }

TEST(ResponsesRequest, TurnsItemsIntoMessages) {
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

TEST(ResponsesRequest, ToolsOfEveryFormAreShownAsFunctions) {
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

TEST(ResponsesRequest, GoesOnWithWhatIsKept) {
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

TEST(ResponsesInput, IsListedPageByPage) {
  const std::vector<KeptResponses::Item> items = {
      {"", R"({"role":"user","content":"a"})"},
      {"fc_1", R"({"type":"function_call","id":"fc_1","name":"f","arguments":"{}"})"},
      {"msg_1", R"({"type":"message","id":"msg_1","role":"assistant","content":"b"})"}};
  const auto page = [&](const std::string& query) {
    const auto asked = parse_items_query(query);
    EXPECT_TRUE(std::holds_alternative<ItemsQuery>(asked)) << query;
    const auto text = items_text(items, "resp_1", std::get<ItemsQuery>(asked));
    EXPECT_TRUE(text) << query;
    return text ? *parse_json(*text) : Json();
  };
  const Json newest = page("");
  EXPECT_EQ(newest["data"].size(), 3u);
  EXPECT_EQ(newest["first_id"], "msg_1");
  EXPECT_EQ(newest["last_id"], "item_resp_1_0");
  EXPECT_EQ(newest["has_more"], false);
  EXPECT_EQ(to_text(newest["data"][0]["content"]), R"([{"type":"output_text","text":"b"}])");
  EXPECT_EQ(newest["data"][2]["type"], "message");
  EXPECT_EQ(newest["data"][2]["content"][0]["type"], "input_text");
  std::vector<std::string> seen;
  std::string after;
  for (bool has_more = true; has_more;) {
    const Json one = page("order=asc&limit=1" + after);
    seen.push_back(one["first_id"]);
    EXPECT_EQ(one["first_id"], one["last_id"]);
    after = "&after=" + seen.back();
    has_more = one["has_more"];
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"item_resp_1_0", "fc_1", "msg_1"}));
  EXPECT_EQ(page("after=item_resp_1_0")["first_id"], nullptr);
  EXPECT_EQ(std::get<ItemsQuery>(parse_items_query("a%20b=1&limit=7")).ignored, (std::vector<std::string>{"a b"}));
  for (const char* wrong : {"limit=0", "limit=101", "limit=x", "limit=", "limit=-1", "order=up"}) {
    EXPECT_TRUE(std::holds_alternative<ApiError>(parse_items_query(wrong))) << wrong;
  }
  ItemsQuery lost;
  lost.after = "msg_2";
  EXPECT_EQ(items_text(items, "resp_1", lost).error().code, Code::invalid_argument);
}

TEST(ResponsesRequest, TheToolsThatAreAllowedAreTheOnlyOnes) {
  const std::string declared = R"("input":"Hi","tools":[{"type":"function","name":"f","parameters":{"type":"object"}},
    {"type":"namespace","name":"mail","tools":[{"type":"function","name":"send","parameters":{"type":"object"}}]},
    {"type":"function","name":"g","parameters":{"type":"object"}}],"tool_choice":)";
  const ResponsesCall call = responses(declared + R"({"type":"allowed_tools","mode":"required","tools":[
    {"type":"function","name":"send"},{"type":"function","name":"g"},{"type":"web_search"}]})");
  EXPECT_EQ(call.request.tool_choice, orchestrator::ToolChoice::required);
  EXPECT_TRUE(call.request.only_declared_tools);
  ASSERT_EQ(call.request.tools.size(), 2u);
  EXPECT_NE(call.request.tools[0].json.find("mail__send"), std::string::npos);
  EXPECT_EQ(call.ignored, (std::vector<std::string>{"tool_choice.tools[2]"}));
  EXPECT_EQ(
      responses(declared + R"({"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"x"}]})")
          .request.tool_choice,
      orchestrator::ToolChoice::none);
  EXPECT_EQ(
      refused_param(parse_responses_call(
          "{" + declared + R"({"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"h"}]}})", {})),
      "tool_choice");
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

TEST(ResponsesRequest, NamesUnknownKeysByTheirPath) {
  const ResponsesCall call = responses(R"("input":[
    {"role":"user","odd":1,"content":[{"type":"input_text","text":"a","bar":1}]},
    {"type":"function_call","id":"fc","call_id":"c1","name":"f","arguments":"{}","status":"completed","more":1},
    {"type":"function_call_output","call_id":"c1","output":"42"}],
    "tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true,"foo":1}],
    "text":{"format":{"type":"json_schema","name":"n","schema":{},"baz":1}})");
  EXPECT_EQ(call.ignored, (std::vector<std::string>{"text.format.baz", "input[0].content[0].bar", "input[0].odd",
                                                    "input[1].more", "tools[0].foo"}));
}

TEST(ResponsesRequest, RefusesByName) {
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

// Their places are those in their own item, and who reads the stream sees them before the text is closed.
TEST(ResponsesResponse, WhatAnAnswerCitesIsAnnotated) {
  std::vector<ChatChunk> list(4);
  list[0].content = "Aïe [1]. ";
  list[1].reasoning = "hm";
  list[2].content = "So [2].";
  list[3].kind = ChatChunk::Kind::finished;
  list[3].citations = {{4, 7, "beans, line 2", "", "beans.md"}, {12, 15, "Boats", "https://boats.example", ""}};
  const auto writer = responses_writer({"m", 1});
  std::string text;
  for (const ChatChunk& chunk : list) text += writer->events(0, chunk);
  text += writer->end({});
  std::vector<Json> events;
  for (size_t at = 0; (at = text.find("data: ", at)) != std::string::npos; ++at) {
    events.push_back(*parse_json(text.substr(at + 6, text.find("\n\n", at) - at - 6)));
  }
  const Json page = {{"start_index", 3},
                     {"end_index", 6},
                     {"type", "url_citation"},
                     {"url", "https://boats.example"},
                     {"title", "Boats"}};
  std::vector<std::string> types;
  for (const Json& event : events) {
    types.push_back(event["type"]);
    if (types.back() == "response.output_text.annotation.added") {
      EXPECT_EQ(event["annotation"], page);
      EXPECT_EQ(event["annotation_index"], 0);
      EXPECT_EQ(event["output_index"], 2);
    }
  }
  const auto added = std::find(types.begin(), types.end(), "response.output_text.annotation.added");
  ASSERT_NE(added, types.end());
  EXPECT_EQ(*(added + 1), "response.output_text.done");
  const Json& output = events.back()["response"]["output"];
  ASSERT_EQ(output.size(), 3u);
  EXPECT_EQ(output[2]["content"][0]["annotations"], Json::array({page}));
  const Json& file = output[0]["content"][0]["annotations"][0];
  EXPECT_EQ(file["type"], "file_citation");
  EXPECT_EQ(file["filename"], "beans.md");
  EXPECT_EQ(file["start_index"], 4);
}

TEST(ResponsesResponse, APromptThatIsTooLongIsAnEventOfAStream) {
  const auto writer = responses_writer({"m", 1});
  const ApiError error = prompt_too_long(1200, 1000, "input");
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

}  // namespace
}  // namespace chimere::server
