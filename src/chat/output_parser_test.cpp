// output_parser_test.cpp  Reasoning and tool calls out of generated text, however it is cut.
#include "chat/output_parser.h"

#include <gtest/gtest.h>

#include "chat/tool_schema.h"

namespace chimere::chat {
namespace {

OutputOptions with_tools(bool starts_in_reasoning = false) {
  OutputOptions options;
  options.starts_in_reasoning = starts_in_reasoning;
  options.tools = {
      Tool{R"({"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {
          "city": {"type": "string"}, "days": {"type": "integer"}, "exact": {"type": "boolean"},
          "tags": {"type": "array"}, "maybe": {"type": ["string", "null"]}, "ref": {"$ref": "#/$defs/s"},
          "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
          "$defs": {"s": {"type": "string"}}}}})"},
      Tool{R"({"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}})"}};
  return options;
}

bool is_whole_utf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    const size_t n = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 0;
    if (n == 0 || i + n > s.size()) return false;
    i += n;
  }
  return true;
}

ParsedOutput parse_pieces(const std::vector<std::string>& pieces, const OutputOptions& options) {
  OutputParser parser(options);
  std::vector<OutputEvent> events;
  for (const std::string& piece : pieces) parser.feed(piece, events);
  parser.finish(events);
  for (const OutputEvent& event : events) EXPECT_TRUE(is_whole_utf8(event.text)) << event.text;
  ParsedOutput output;
  accumulate(events, output);
  return output;
}

// Parses whole, cut once at every place, and byte by byte; all must agree.
ParsedOutput parse(const std::string& text, const OutputOptions& options = with_tools()) {
  const ParsedOutput whole = parse_output(text, options);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(parse_pieces({text.substr(0, cut), text.substr(cut)}, options), whole)
        << "cut at " << cut << ": " << text;
  }
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  EXPECT_EQ(parse_pieces(bytes, options), whole) << text;
  return whole;
}

TEST(OutputParser, SplitsReasoningFromContent) {
  EXPECT_EQ(parse("Let me see.\n\nYes.\n</think>\n\nHello — ça va? 👋\n", with_tools(true)),
            (ParsedOutput{"Let me see.\n\nYes.", "Hello — ça va? 👋\n", {}, false}));
  EXPECT_EQ(parse("<think>\nhm\n</think>\n\nHi"), (ParsedOutput{"hm", "Hi", {}, false}));
  EXPECT_EQ(parse("\n<think>\nhm"), (ParsedOutput{"hm", "", {}, false}));
  EXPECT_EQ(parse("<think>again</think>x", with_tools(true)), (ParsedOutput{"again", "x", {}, false}));
  EXPECT_EQ(parse("no end <", with_tools(true)), (ParsedOutput{"no end <", "", {}, false}));
  EXPECT_EQ(parse("\n\n</think>\n\nHi", with_tools(true)), (ParsedOutput{"", "Hi", {}, false}));
  EXPECT_EQ(parse("plain </think> text < b"), (ParsedOutput{"", "plain </think> text < b", {}, false}));
  EXPECT_EQ(parse("  padded  "), (ParsedOutput{"", "  padded  ", {}, false}));
  EXPECT_EQ(parse(""), ParsedOutput{});
}

TEST(OutputParser, CanLeaveTheTagsAlone) {
  OutputOptions raw;
  raw.parse_reasoning = false;
  raw.starts_in_reasoning = true;
  const std::string text = "<think>\na</think>\n\nb <tool_call>\n<function=now>\n</function>\n</tool_call>";
  EXPECT_EQ(parse(text, raw), (ParsedOutput{"", text, {}, false}));
}

TEST(OutputParser, ReadsXmlCalls) {
  const ParsedOutput output = parse(
      "I look.\n\n<tool_call>\n<function=weather>\n<parameter=city>\nSão Paulo\n</parameter>\n<parameter=days>\n3\n"
      "</parameter>\n<parameter=exact>\nTrue\n</parameter>\n<parameter=tags>\n[\"a\", 1]\n</parameter>\n</function>\n"
      "</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>\n");
  EXPECT_EQ(output.content, "I look.");
  ASSERT_EQ(output.tool_calls.size(), 2u);
  EXPECT_EQ(output.tool_calls[0],
            (ToolCall{"", "weather", R"({"city": "São Paulo", "days": 3, "exact": true, "tags": ["a", 1]})"}));
  EXPECT_EQ(output.tool_calls[1], (ToolCall{"", "now", "{}"}));
}

TEST(OutputParser, KeepsValuesVerbatim) {
  const auto value = [](const std::string& raw) {
    const ParsedOutput output = parse("<tool_call>\n<function=weather>\n<parameter=city>\n" + raw +
                                      "\n</parameter>\n</function>\n</tool_call>");
    return output.tool_calls.size() == 1 ? output.tool_calls[0].arguments_json : "none";
  };
  EXPECT_EQ(value("  def f():\n    pass\n"), R"({"city": "  def f():\n    pass\n"})");
  EXPECT_EQ(value("42"), R"({"city": "42"})");
  EXPECT_EQ(value(""), R"({"city": ""})");
  EXPECT_EQ(value("a</parameter> <b> </function> x"), R"({"city": "a</parameter> <b> </function> x"})");
  EXPECT_EQ(value("<think></think>\"\\"), R"({"city": "<think></think>\"\\"})");
}

TEST(OutputParser, ForgivesSmallMistakes) {
  const ToolCall rome{"", "weather", R"({"city": "Rome"})"};
  const char* kTexts[] = {
      "<tool_call><function=weather><parameter=city>Rome</parameter></function></tool_call>",
      "<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>",
      "<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>",
      "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</tool_call>",
      "<tool_call>\n<function=weather>\n noise <x> <parameter=city>\nRome\n</parameter>\n</function>\n",
      ("<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=city>\nOslo\n"
       "</parameter>\n</function>\n</tool_call>"),
  };
  for (const char* text : kTexts) {
    EXPECT_EQ(parse(text), (ParsedOutput{"", "", {rome}, false})) << text;
  }
  const ParsedOutput two =
      parse("<tool_call>\n<function=now>\n</function>\n<function=now>\n</function>\n</tool_call> ok");
  EXPECT_EQ(two.tool_calls.size(), 2u);
  EXPECT_EQ(two.content, "ok");
}

TEST(OutputParser, CallInsideReasoningEndsIt) {
  const ParsedOutput output =
      parse("I need it.\n<tool_call>\n<function=now>\n</function>\n</tool_call>", with_tools(true));
  EXPECT_EQ(output, (ParsedOutput{"I need it.", "", {ToolCall{"", "now", "{}"}}, false}));
}

TEST(OutputParser, ReadsJsonCalls) {
  EXPECT_EQ(
      parse("ok\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"</tool_call> \\\" }\", \"d\": "
            "[{}]}}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": \"{}\"}\n</tool_call>"),
      (ParsedOutput{"",
                    "ok",
                    {ToolCall{"", "weather", R"({"city":"</tool_call> \" }","d":[{}]})"}, ToolCall{"", "now", "{}"}},
                    false}));
  EXPECT_EQ(parse("<tool_call>{\"name\": \"now\"}</tool_call>").tool_calls.size(), 1u);
}

TEST(OutputParser, WhatIsNoCallIsContent) {
  const char* kTexts[] = {
      "<tool_call>\n{\"name\": }\n</tool_call> after",
      "<tool_call>\n{\"name\": \"x\"",
      "<tool_call> hello",
      "<tool_call>",
      "<tool_call>\n<function=\n>",
      "<function=unknown>\n</function>",
      "a <tool_cal",
      "<tool_call>\n{\"name\": \"x\", \"arguments\": [1]}\n</tool_call>",
  };
  for (const char* text : kTexts) EXPECT_EQ(parse(text), (ParsedOutput{"", text, {}, false}));
}

TEST(OutputParser, ACallThatIsCutOffKeepsWhatThereWas) {
  const std::pair<const char*, const char*> cases[] = {
      {"<tool_call>\n<function=weather>\n", ""},
      {"<tool_call>\n<function=weather>\n<parameter=ci", ""},
      {"<tool_call>\n<function=weather>\n<parameter=city>\nSão \"Pa", R"({"city": "São \"Pa)"},
      {"<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</para", R"({"city": "Rome)"},
      {"<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>", R"({"city": "Rome")"},
      {"<tool_call>\n<function=weather>\n<parameter=days>\n1", ""},
      {"<tool_call>\n<function=weather>\n<parameter=tags>\n[\"a\", \"b", R"({"tags": ["a", "b)"},
      {R"(<tool_call>{"name": "weather", )", ""},
      {R"(<tool_call>{"name": "weather", "arguments": {"city": "Ro)", R"({"city":"Ro)"},
      {R"(<tool_call>{"name": "weather", "arguments": {"city": "Ro\)", R"({"city":"Ro)"},
  };
  for (const auto& [text, arguments] : cases) {
    EXPECT_EQ(parse(text), (ParsedOutput{"", "", {{"", "weather", arguments}}, true})) << text;
  }
}

TEST(OutputParser, MendsWhatModelsGetWrongInsideStrings) {
  const auto arguments = [](const std::string& json) {
    const ParsedOutput output =
        parse("<tool_call>\n{\"name\": \"weather\", \"arguments\": " + json + "}\n</tool_call>");
    return output.tool_calls.size() == 1 && !output.has_incomplete_call ? output.tool_calls[0].arguments_json : "none";
  };
  EXPECT_EQ(arguments("{\"city\": \"a\nb\tc\"}"), R"({"city":"a\nb\tc"})");
  EXPECT_EQ(arguments(R"({"city": "\d+ \u00e9 \u12 \/"})"), R"({"city":"\\d+ \u00e9 \\u12 \/"})");
  // What is no JSON at all is the client's to judge; the closing tag ends it.
  EXPECT_EQ(arguments(R"({"city": "say "hi" now")"), R"({"city":"say "hi" now"})");
}

TEST(OutputParser, StreamsWhatIsCertain) {
  OutputParser parser(with_tools(true));
  std::vector<OutputEvent> events;
  parser.feed("Hm </thi", events);
  EXPECT_EQ(events, (std::vector<OutputEvent>{{OutputEvent::Kind::reasoning, "Hm", 0}}));
  events.clear();
  parser.feed("s", events);
  EXPECT_EQ(events, (std::vector<OutputEvent>{{OutputEvent::Kind::reasoning, " </this", 0}}));
  events.clear();
  parser.feed("</think>\n\nA<tool", events);
  EXPECT_EQ(events, (std::vector<OutputEvent>{{OutputEvent::Kind::content, "A", 0}}));
  events.clear();
  parser.feed("_call>\n<function=weather>\n<parameter=days>\n5\n</parameter>\n", events);
  EXPECT_EQ(events, (std::vector<OutputEvent>{{OutputEvent::Kind::tool_call_begin, "weather", 0},
                                              {OutputEvent::Kind::tool_call_arguments, "{\"days\": 5", 0}}));
}

TEST(OutputParser, GoesOnWithAnAnswerThatHasBegun) {
  OutputOptions options = with_tools();
  options.starts_in_content = true;
  EXPECT_EQ(parse(" and <think> is text", options), (ParsedOutput{"", " and <think> is text", {}, false}));
  options.dialect = &dialect_named("llama");
  const std::string json = R"({"name": "now", "parameters": {}})";
  EXPECT_EQ(parse(json, options), (ParsedOutput{"", json, {}, false}));
  options.dialect = &dialect_named("harmony");
  EXPECT_EQ(parse("there.<|end|><|start|>assistant<|channel|>analysis<|message|>hm", options),
            (ParsedOutput{"hm", "there.", {}, false}));
}

TEST(ToolSchema, KnowsWhenAValueCanOnlyBeText) {
  const JsonTypes text{"string"}, maybe{"string", "null"}, either{"string", "integer"}, number{"integer"}, any;
  EXPECT_TRUE(is_surely_text("", text));
  EXPECT_FALSE(is_surely_text("", maybe));
  EXPECT_FALSE(is_surely_text("nul", maybe));
  EXPECT_FALSE(is_surely_text(" None \n", maybe));
  EXPECT_TRUE(is_surely_text("nul and void", maybe));
  EXPECT_TRUE(is_surely_text("[1", maybe));
  EXPECT_TRUE(is_surely_text("42", maybe));
  EXPECT_FALSE(is_surely_text("42", either));
  EXPECT_TRUE(is_surely_text("42 days", either));
  EXPECT_FALSE(is_surely_text("4", number));
  EXPECT_FALSE(is_surely_text("{", any));
  EXPECT_FALSE(is_surely_text("\"", any));
  EXPECT_TRUE(is_surely_text("plain", any));
  EXPECT_FALSE(is_surely_text("fal", any));
}

TEST(ToolSchema, TypesDecide) {
  const auto parameters = declared_parameters(with_tools().tools).at("weather");
  const auto json = [&](const char* key, const char* raw) { return json_of_argument(raw, parameters.at(key)); };
  EXPECT_EQ(json("days", " 5 "), "5");
  EXPECT_EQ(json("days", "five"), "\"five\"");
  EXPECT_EQ(json("days", "123456789012345678901234567890"), "123456789012345678901234567890");
  EXPECT_EQ(json("exact", "False"), "false");
  EXPECT_EQ(json("maybe", "null"), "null");
  EXPECT_EQ(json("maybe", "5"), "\"5\"");
  EXPECT_EQ(json("either", "5"), "5");
  EXPECT_EQ(json("either", "\"q\""), "\"\\\"q\\\"\"");
  EXPECT_EQ(json("ref", "{}"), "\"{}\"");
  EXPECT_EQ(json_of_argument("{\"a\": 1}", {}), "{\"a\": 1}");
  EXPECT_EQ(json_of_argument("plain", {}), "\"plain\"");
  EXPECT_EQ(json_of_argument(std::string(100'000, '['), {}), json_quoted(std::string(100'000, '[')));
  EXPECT_TRUE(declared_parameters({Tool{"{broken"}, Tool{"[]"}, Tool{"{\"function\": {\"name\": 5}}"}}).empty());
}

OutputOptions in_dialect(const char* name) {
  OutputOptions options = with_tools();
  options.dialect = &dialect_named(name);
  return options;
}

TEST(OutputParser, ReadsLlamaCalls) {
  const OutputOptions llama = in_dialect("llama");
  const ToolCall rome{"", "weather", R"({"city":"Rome {\"}"})"};
  const std::string call = R"({"name": "weather", "parameters": {"city": "Rome {\"}"}})";
  EXPECT_EQ(parse(call, llama), (ParsedOutput{"", "", {rome}, false}));
  EXPECT_EQ(parse("\n<|python_tag|>" + call, llama), (ParsedOutput{"", "", {rome}, false}));
  EXPECT_EQ(parse("I look.\n<|python_tag|>" + call, llama), (ParsedOutput{"", "I look.", {rome}, false}));
  EXPECT_EQ(parse(call + "; " + call, llama), (ParsedOutput{"", "", {rome, rome}, false}));
  EXPECT_EQ(parse("<think>hm</think>\n" + call, llama), (ParsedOutput{"hm", "", {rome}, false}));
}

TEST(OutputParser, LlamaTextThatIsNoCallIsContent) {
  const OutputOptions llama = in_dialect("llama");
  for (const char* text : {R"({"name": "unknown", "parameters": {}})", R"({"answer": [1, 2]} is it)", "{not json",
                           "plain {\"name\": \"weather\", \"parameters\": {}}", "<|python_tag|>print(1)",
                           "<|python_tag|>{\"a\": 1} x", "<|python", "[1, 2"}) {
    EXPECT_EQ(parse(text, llama), (ParsedOutput{"", text, {}, false})) << text;
  }
}

TEST(OutputParser, ReadsMistralCalls) {
  const OutputOptions mistral = in_dialect("mistral");
  const ToolCall rome{"", "weather", R"({"city":"Rome"})"};
  const ToolCall now{"", "now", "{}"};
  EXPECT_EQ(parse(R"([TOOL_CALLS][{"name": "weather", "arguments": {"city": "Rome"}, "id": "abcdef123"}])", mistral),
            (ParsedOutput{"", "", {rome}, false}));
  EXPECT_EQ(parse(R"([TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Rome"}}, {"name": "now"}])", mistral),
            (ParsedOutput{"", "", {rome, now}, false}));
  EXPECT_EQ(parse(R"(Well.[TOOL_CALLS]weather[ARGS]{"city": "Rome"}[TOOL_CALLS]now[CALL_ID]x1[ARGS]{})", mistral),
            (ParsedOutput{"", "Well.", {rome, now}, false}));
  EXPECT_EQ(parse(R"([TOOL_CALLS]weather{"city": "Rome"})", mistral), (ParsedOutput{"", "", {rome}, false}));
  for (const char* text : {"[TOOL_CALLS]", "[TOOL_CALLS]?", "[TOOL_CALLS]weather[ARGS]no", "[TOOL_CALLS][1]",
                           "[TOOL_CALLS][{\"name\": \"wea", "[TOOL_CALLS]weather[CALL_ID]never", "a [TOOL"}) {
    EXPECT_EQ(parse(text, mistral), (ParsedOutput{"", text, {}, false})) << text;
  }
}

TEST(OutputParser, KnowsOtherMarkersOfAThought) {
  OutputOptions mistral = in_dialect("mistral");
  mistral.thought = {"[THINK]", "[/THINK]"};
  EXPECT_EQ(parse("[THINK]hm <think>[/THINK]Hi", mistral), (ParsedOutput{"hm <think>", "Hi", {}, false}));
}

TEST(OutputParser, ReadsHarmony) {
  OutputOptions harmony = with_tools();
  harmony.dialect = &dialect_named("harmony");
  const ToolCall rome{"", "weather", R"({"city":"Rome"})"};
  EXPECT_EQ(parse("<|channel|>analysis<|message|>hm <b>\n<|end|><|start|>assistant<|channel|>final<|message|>Hi < you ",
                  harmony),
            (ParsedOutput{"hm <b>", "Hi < you ", {}, false}));
  EXPECT_EQ(
      parse("<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\": \"Rome\"}", harmony),
      (ParsedOutput{"", "", {rome}, false}));
  EXPECT_EQ(parse("<|channel|>analysis<|message|>hm<|end|><|start|>assistant to=functions.weather<|channel|>commentary "
                  "json<|message|>{\"city\": \"Rome\"}<|call|>",
                  harmony),
            (ParsedOutput{"hm", "", {rome}, false}));
  EXPECT_EQ(parse("plain text", harmony), (ParsedOutput{"", "plain text", {}, false}));
  EXPECT_EQ(parse("<|channel|>final", harmony), (ParsedOutput{"", "<|channel|>final", {}, false}));
  EXPECT_EQ(parse("<|channel|>commentary to=functions.weather<|message|>{no", harmony),
            (ParsedOutput{"", "{no", {}, false}));
}

// What finish() makes of a call whose last tags are missing.
ParsedOutput finish_after(const std::string& text, bool is_cut) {
  OutputParser parser(with_tools());
  std::vector<OutputEvent> events;
  parser.feed(text, events);
  parser.finish(events, is_cut);
  ParsedOutput output;
  accumulate(events, output);
  return output;
}

TEST(OutputParser, EndsACallWhereTheModelStopped) {
  const ToolCall rome{"", "weather", R"({"city": "Rome"})"};
  const std::string head = "<tool_call>\n<function=weather>\n<parameter=city>\nRome";
  for (const char* tail : {"", "\n", "\n</para", "\n</parameter>", "\n</parameter>\n</func"}) {
    EXPECT_EQ(finish_after(head + tail, false), (ParsedOutput{"", "", {rome}, false})) << tail;
    EXPECT_TRUE(finish_after(head + tail, true).has_incomplete_call) << tail;
  }
  const std::string json = R"(<tool_call>{"name": "now", "arguments": {}})";
  for (const bool is_cut : {false, true}) {
    EXPECT_EQ(finish_after(json, is_cut), (ParsedOutput{"", "", {{"", "now", "{}"}}, false}));
  }
  const std::string open = R"(<tool_call>{"name": "weather", "arguments": {"city": "Rome"})";
  EXPECT_EQ(finish_after(open, false), (ParsedOutput{"", "", {{"", "weather", R"({"city":"Rome"})"}}, false}));
  EXPECT_TRUE(finish_after(open, true).has_incomplete_call);
}

}  // namespace
}  // namespace chimere::chat
