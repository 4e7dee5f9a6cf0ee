// constraints_test.cpp  Forms of answers and tool calls as constraints: what is drawn under them is read back whole.
#include "orchestrator/constraints.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chat/output_parser.h"
#include "grammar/schema_validator_for_test.h"
#include "grammar/text_for_test.h"

namespace chimere::orchestrator {
namespace {

const char* kSchema =
    R"({"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer","minimum":0,"maximum":50},
    "on":{"type":"boolean"},"unit":{"type":"string","enum":["yes","no"]},"list":{"type":"array",
    "items":{"$ref":"#/$defs/x"},"maxItems":3}},"required":["a","n"],"additionalProperties":false,
    "$defs":{"x":{"type":"number"}}})";

chat::Tool tool(const std::string& name, const std::string& parameters) {
  return {R"({"type":"function","function":{"name":")" + name + R"(","parameters":)" + parameters + "}}"};
}

ChatRequest with_tools(ToolChoice choice) {
  ChatRequest request;
  request.tools = {tool("first", kSchema), tool("second", "{}")};
  request.tool_choice = choice;
  request.tool_name = choice == ToolChoice::named ? "first" : "";
  return request;
}

Constraints constraints_for_test() {
  const Tokenizer tokenizer = grammar::tokenizer_for_test();
  return Constraints(tokenizer, tokenizer.n_vocab() + 2);
}

chat::ParsedOutput parsed(const std::string& text, const ChatRequest& request, const chat::Dialect& dialect) {
  chat::OutputOptions options;
  options.tools = request.tools;
  options.dialect = &dialect;
  return chat::parse_output(text, options);
}

TEST(ConstraintsTest, RequiredCallsAreReadBackInEveryForm) {
  Constraints constraints = constraints_for_test();
  std::mt19937 random(5);
  const grammar::SchemaValidator validator(nlohmann::json::parse(kSchema));
  for (const chat::Dialect* one : chat::dialects()) {
    const chat::Dialect& dialect = *one;
    for (const ToolChoice choice : {ToolChoice::required, ToolChoice::named}) {
      const ChatRequest request = with_tools(choice);
      auto made = constraints.of_chat(request, dialect, {});
      ASSERT_TRUE(made) << made.error().message;
      ASSERT_TRUE(made->constraint);
      int complete = 0;
      for (int i = 0; i < 20; ++i) {
        const auto text = grammar::drawn_text(*made->constraint->clone(), random, "</parameter>");
        if (!text) continue;
        ++complete;
        const chat::ParsedOutput output = parsed(*text, request, dialect);
        EXPECT_EQ(output.content, "") << dialect.name << ": " << *text;
        ASSERT_FALSE(output.tool_calls.empty()) << dialect.name << ": " << *text;
        for (const chat::ToolCall& call : output.tool_calls) {
          const auto arguments = nlohmann::json::parse(call.arguments_json, nullptr, false);
          ASSERT_TRUE(arguments.is_object()) << *text;
          EXPECT_TRUE(choice != ToolChoice::named || call.name == "first") << call.name;
          if (call.name == "first") {
            EXPECT_TRUE(validator.fits(arguments)) << dialect.name << ": " << *text;
          } else {
            EXPECT_EQ(call.name, "second");
          }
        }
      }
      EXPECT_GT(complete, 3) << dialect.name;
    }
  }
}

TEST(ConstraintsTest, OneCallAtMostWhereSeveralAreNotWanted) {
  Constraints constraints = constraints_for_test();
  std::mt19937 random(9);
  ChatRequest request = with_tools(ToolChoice::required);
  request.parallel_tool_calls = false;
  for (const char* name : {"qwen-xml", "hermes", "mistral"}) {
    const chat::Dialect& dialect = chat::dialect_named(name);
    auto made = constraints.of_chat(request, dialect, {true, {}});
    ASSERT_TRUE(made) << made.error().message;
    for (int i = 0; i < 10; ++i) {
      const auto text = grammar::drawn_text(*made->constraint->clone(), random, "</parameter>");
      if (!text) continue;
      EXPECT_EQ(parsed(*text, request, dialect).tool_calls.size(), 1u) << *text;
    }
  }
  // Text may come first, or alone, when a call is not demanded.
  request.tool_choice = ToolChoice::automatic;
  auto made = constraints.of_chat(request, chat::dialect_named("hermes"), {});
  ASSERT_TRUE(made) << made.error().message;
  const Tokenizer tokenizer = grammar::tokenizer_for_test();
  const std::string call = "<tool_call>\n{\"name\": \"second\", \"arguments\": {}}\n</tool_call>";
  const auto accepts = [&](const std::string& text) {
    auto constraint = made->constraint->clone();
    for (const char c : text) {
      const int32_t id = tokenizer.find_token(std::string(1, c));
      if (!grammar::is_set(constraint->mask(), id)) return false;
      constraint->accept(id);
    }
    return grammar::is_set(constraint->mask(), tokenizer.eog_ids().at(0));
  };
  EXPECT_TRUE(accepts("hello world"));
  EXPECT_TRUE(accepts("hello" + call));
  EXPECT_FALSE(accepts(call + "\n" + call));
  // Where only some tools are allowed, no call of another can be written.
  request.parallel_tool_calls = true;
  request.only_declared_tools = true;
  request.tools = {tool("second", "{}")};
  made = constraints.of_chat(request, chat::dialect_named("hermes"), {});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(accepts("hello" + call));
  EXPECT_TRUE(accepts(call + "\n" + call));
  EXPECT_FALSE(accepts("<tool_call>\n{\"name\": \"first\", \"arguments\": {}}\n</tool_call>"));
}

TEST(ConstraintsTest, FormsOfAnswers) {
  Constraints constraints = constraints_for_test();
  std::mt19937 random(2);
  ChatRequest request;
  auto free = constraints.of_chat(request, chat::dialect_named("hermes"), {});
  ASSERT_TRUE(free);
  EXPECT_FALSE(free->constraint);
  request.form.json_object = true;
  auto object = constraints.of_chat(request, chat::dialect_named("hermes"), {});
  ASSERT_TRUE(object);
  EXPECT_FALSE(object->allows_calls);
  int complete = 0;
  for (int i = 0; i < 10; ++i) {
    const auto text = grammar::drawn_text(*object->constraint->clone(), random);
    if (!text) continue;
    ++complete;
    EXPECT_TRUE(nlohmann::json::parse(*text, nullptr, false).is_object()) << *text;
  }
  EXPECT_GT(complete, 2);
  auto again = constraints.of_chat(request, chat::dialect_named("hermes"), {});
  ASSERT_TRUE(again);
  EXPECT_EQ(object->constraint, again->constraint) << "kept from the first time";

  CompletionRequest completion;
  completion.form.regex = "(yes|no)!?";
  auto regex = constraints.of_completion(completion);
  ASSERT_TRUE(regex) << regex.error().message;
  const std::optional<std::string> answer = grammar::drawn_text(*regex->constraint->clone(), random);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(*answer == "yes" || *answer == "no" || *answer == "yes!" || *answer == "no!") << *answer;
}

TEST(ConstraintsTest, AThoughtInPlainWordsComesBeforeTheForm) {
  Constraints constraints = constraints_for_test();
  ChatRequest request;
  request.form.regex = "yes|no";
  auto made = constraints.of_chat(request, chat::dialect_named("hermes"), {true, "</t>"});
  ASSERT_TRUE(made) << made.error().message;
  const Tokenizer tokenizer = grammar::tokenizer_for_test();
  const auto accepts = [&](const std::string& text) {
    auto constraint = made->constraint->clone();
    for (const char c : text) constraint->accept(tokenizer.find_token(std::string(1, c)));
    return grammar::is_set(constraint->mask(), tokenizer.eog_ids().at(0)) && constraint->is_finished();
  };
  EXPECT_TRUE(accepts("well, no</t>\n\nyes"));
  EXPECT_TRUE(accepts("</t>no"));
  EXPECT_FALSE(made->allows_calls);
}

TEST(ConstraintsTest, RefusalsSayWhere) {
  Constraints constraints = constraints_for_test();
  ChatRequest two;
  two.form.json_object = true;
  two.form.regex = "a";
  EXPECT_NE(constraints.of_chat(two, chat::default_dialect(), {}).error().message.find("found 2"), std::string::npos);
  ChatRequest odd = with_tools(ToolChoice::required);
  odd.tools.push_back(tool("third", R"({"type":"object","properties":{"x":{"not":{}}}})"));
  for (const char* name : {"qwen-xml", "hermes"}) {
    const std::string message = constraints.of_chat(odd, chat::dialect_named(name), {}).error().message;
    EXPECT_NE(message.find("tool third: schema at #/properties/x: `not`"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace chimere::orchestrator
