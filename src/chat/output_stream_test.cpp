// output_stream_test.cpp  Arguments of tool calls as they stream: in every form, however the text is cut, the pieces
// add up to the same, come while they are written, and are never taken back.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "chat/output_parser.h"
#include "chat/tool_schema.h"

namespace chimere::chat {
namespace {

using nlohmann::ordered_json;

struct Form {
  const char* name;
  const char* dialect;
  std::string (*write)(const std::string& content, int n);  // a call of write(content, n)
};

std::string arguments_json(const std::string& content, int n) {
  ordered_json json;
  json["content"] = content;
  json["n"] = n;
  return json.dump();
}

const Form kForms[] = {
    {"tags", "qwen-xml",
     [](const std::string& content, int n) {
       return "<tool_call>\n<function=write>\n<parameter=content>\n" + content + "\n</parameter>\n<parameter=n>\n" +
              std::to_string(n) + "\n</parameter>\n</function>\n</tool_call>\n";
     }},
    {"hermes", "hermes",
     [](const std::string& content, int n) {
       return "<tool_call>\n{\"name\": \"write\", \"arguments\": " + arguments_json(content, n) + "}\n</tool_call>\n";
     }},
    {"llama", "llama",
     [](const std::string& content, int n) {
       return "{\"name\": \"write\", \"parameters\": " + arguments_json(content, n) + "}";
     }},
    {"mistral array", "mistral",
     [](const std::string& content, int n) {
       return "[TOOL_CALLS][{\"name\": \"write\", \"arguments\": " + arguments_json(content, n) +
              ", \"id\": \"abcdef123\"}]";
     }},
    {"mistral names", "mistral",
     [](const std::string& content, int n) { return "[TOOL_CALLS]write[ARGS]" + arguments_json(content, n); }},
    {"harmony", "harmony",
     [](const std::string& content, int n) {
       return "<|channel|>commentary to=functions.write <|constrain|>json<|message|>" + arguments_json(content, n) +
              "<|call|>";
     }},
};

OutputOptions options_of(const Form& form) {
  OutputOptions options;
  options.dialect = &dialect_named(form.dialect);
  options.tools = {Tool{R"({"type": "function", "function": {"name": "write", "parameters": {"type": "object",
      "properties": {"content": {"type": "string"}, "n": {"type": "integer"}}}}})"}};
  return options;
}

std::vector<OutputEvent> events_of(const std::vector<std::string>& pieces, const OutputOptions& options, bool is_cut) {
  OutputParser parser(options);
  std::vector<OutputEvent> events;
  for (const std::string& piece : pieces) parser.feed(piece, events);
  parser.finish(events, is_cut);
  return events;
}

ParsedOutput sum_of(const std::vector<OutputEvent>& events) {
  ParsedOutput sum;
  accumulate(events, sum);
  return sum;
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += "line " + std::to_string(i) + ": \"quoted\" \\ <b> </tag> é 世 {[,]}\n";
  }
  return text + "end";
}

TEST(OutputStream, APieceOfTextMakesAPieceOfTheArguments) {
  for (const Form& form : kForms) {
    const std::string text = form.write(long_text(), 7);
    std::vector<std::string> pieces;
    for (size_t i = 0; i < text.size(); i += 5) pieces.push_back(text.substr(i, 5));
    const std::vector<OutputEvent> events = events_of(pieces, options_of(form), false);
    size_t n_deltas = 0, longest = 0;
    for (const OutputEvent& event : events) {
      if (event.kind != OutputEvent::Kind::tool_call_arguments) continue;
      ++n_deltas;
      longest = std::max(longest, event.text.size());
    }
    EXPECT_GT(n_deltas, pieces.size() * 8 / 10) << form.name;
    EXPECT_LT(longest, 64u) << form.name;
    const ParsedOutput sum = sum_of(events);
    ASSERT_EQ(sum.tool_calls.size(), 1u) << form.name;
    EXPECT_FALSE(sum.has_incomplete_call) << form.name;
    EXPECT_EQ(sum.content, "") << form.name;
    const auto json = ordered_json::parse(sum.tool_calls[0].arguments_json, nullptr, false);
    ASSERT_TRUE(json.is_object()) << form.name << sum.tool_calls[0].arguments_json;
    EXPECT_EQ(json["content"], long_text()) << form.name;
    EXPECT_EQ(json["n"], 7) << form.name;
  }
}

// Wherever generation is cut off, what was given out before is the start of what is given out in the end, most of the
// text is there, and no mark of the form is left in the content.
TEST(OutputStream, ACutLeavesWhatThereWas) {
  const std::string content = "def f():\n    return \"x\" # \\ é\n";
  for (const Form& form : kForms) {
    const OutputOptions options = options_of(form);
    const std::string text = form.write(content, 7);
    const std::string whole = sum_of(events_of({text}, options, false)).tool_calls.at(0).arguments_json;
    const size_t begin = text.find("def f");
    for (size_t cut = begin; cut < text.size(); ++cut) {
      const ParsedOutput sum = sum_of(events_of({text.substr(0, cut)}, options, true));
      ASSERT_EQ(sum.tool_calls.size(), 1u) << form.name << " cut at " << cut;
      const std::string& arguments = sum.tool_calls[0].arguments_json;
      EXPECT_EQ(sum.tool_calls[0].name, "write");
      EXPECT_EQ(sum.content, "") << form.name << " cut at " << cut;
      EXPECT_TRUE(whole.starts_with(arguments)) << form.name << ": " << arguments;
      EXPECT_GE(arguments.size() + 16, std::min(cut - begin, content.size())) << form.name << ": " << arguments;
      const auto json = ordered_json::parse(closed_json(arguments), nullptr, false);
      ASSERT_TRUE(json.is_object()) << arguments;
      const std::string saved = json.value("content", "");
      EXPECT_TRUE(content.starts_with(saved)) << saved;
    }
  }
}

// Random text of the letters that matter to a parser, right and wrong, cut at random: the same sum every time, and at
// every moment what has come is a prefix of it.
TEST(OutputStream, CutsNeverMatter) {
  const std::vector<std::string> words = {"<tool_call>",
                                          "</tool_call>",
                                          "\n",
                                          "<function=write>",
                                          "</function>",
                                          "<parameter=content>",
                                          "<parameter=n>",
                                          "<parameter=other>",
                                          "</parameter>",
                                          "{",
                                          "}",
                                          "\"name\"",
                                          "\"write\"",
                                          ": ",
                                          ", ",
                                          "\"arguments\"",
                                          "\"parameters\"",
                                          "[",
                                          "]",
                                          "\\",
                                          "\"",
                                          "u00e9",
                                          "é",
                                          "👩",
                                          "12",
                                          "null",
                                          "text ",
                                          "<|python_tag|>",
                                          "[TOOL_CALLS]",
                                          "write[ARGS]",
                                          "<think>",
                                          "</think>",
                                          "<|channel|>commentary to=functions.write<|message|>",
                                          "<|call|>",
                                          "<|start|>assistant",
                                          "{\"name\": \"write\", \"arguments\": {\"content\": \"",
                                          "<tool_call>\n<function=write>\n<parameter=content>\n",
                                          "\xe4",
                                          "\x01"};
  std::mt19937 random(20240611);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  for (const Form& form : kForms) {
    const OutputOptions options = options_of(form);
    for (int round = 0; round < 1500; ++round) {
      std::string text = pick(3) == 0 ? form.write("a\n</parameter> b", 3) : "";
      for (size_t i = pick(12); i > 0; --i) text += words[pick(words.size())];
      if (pick(4) == 0) text = text.substr(0, pick(text.size() + 1));
      const bool is_cut = pick(2) == 0;
      const ParsedOutput whole = sum_of(events_of({text}, options, is_cut));
      OutputParser parser(options);
      std::vector<OutputEvent> events;
      for (size_t at = 0; at < text.size();) {
        const size_t n = 1 + pick(7);
        parser.feed(std::string_view(text).substr(at, n), events);
        at += n;
        const ParsedOutput now = sum_of(events);
        EXPECT_TRUE(whole.content.starts_with(now.content)) << form.name << ": " << text;
        EXPECT_TRUE(whole.reasoning.starts_with(now.reasoning)) << form.name << ": " << text;
        ASSERT_LE(now.tool_calls.size(), whole.tool_calls.size()) << form.name << ": " << text;
        for (size_t i = 0; i < now.tool_calls.size(); ++i) {
          EXPECT_TRUE(whole.tool_calls[i].arguments_json.starts_with(now.tool_calls[i].arguments_json))
              << form.name << ": " << text;
        }
      }
      parser.finish(events, is_cut);
      ASSERT_EQ(sum_of(events), whole) << form.name << ": " << text;
    }
  }
}

}  // namespace
}  // namespace chimere::chat
