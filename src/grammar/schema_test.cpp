// schema_test.cpp  JSON schemas: what they accept, what they refuse, and that everything they let through fits.
#include "grammar/schema.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "grammar/schema_cases_for_test.h"
#include "grammar/schema_validator_for_test.h"
#include "grammar/text_for_test.h"

namespace chimere::grammar {
namespace {

GrammarConstraint constraint_of(const std::string& schema) {
  Grammar grammar;
  auto root = parse_schema(schema, grammar);
  EXPECT_TRUE(root) << root.error().message;
  grammar.root = grammar.add_rule("root");
  grammar.define(grammar.root, *root);
  auto made = TokenGrammar::create(grammar, vocabulary_for_test());
  EXPECT_TRUE(made) << made.error().message;
  return GrammarConstraint(*made);
}

std::string refusal(const std::string& schema) {
  Grammar grammar;
  auto root = parse_schema(schema, grammar);
  if (!root) return root.error().message;
  grammar.root = grammar.add_rule("root");
  grammar.define(grammar.root, *root);
  auto automaton = compile(grammar);
  return automaton ? "" : automaton.error().message;
}

// Cuts a text into tokens: the longest first, or pieces chosen at random.
std::vector<int32_t> tokens_of(const std::string& text, std::mt19937* random) {
  static const Tokenizer tokenizer = tokenizer_for_test();
  std::vector<int32_t> ids;
  for (size_t pos = 0; pos < text.size();) {
    std::vector<int32_t> fitting;
    for (int32_t id = 0; id < tokenizer.n_vocab(); ++id) {
      const std::string_view bytes = vocabulary_for_test()->reading(id).text;
      if (!bytes.empty() && std::string_view(text).substr(pos).starts_with(bytes)) fitting.push_back(id);
    }
    const auto shorter = [&](int32_t a, int32_t b) {
      return tokenizer.token_text(a).size() < tokenizer.token_text(b).size();
    };
    const int32_t id =
        random ? fitting[(*random)() % fitting.size()] : *std::max_element(fitting.begin(), fitting.end(), shorter);
    ids.push_back(id);
    pos += tokenizer.token_text(id).size();
  }
  return ids;
}

bool accepts(GrammarConstraint constraint, const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) {
    if (!is_set(constraint.mask(), id)) return false;
    constraint.accept(id);
  }
  const int32_t end = vocabulary_for_test()->end_ids().at(0);
  return constraint.may_end() && is_set(constraint.mask(), end);
}

TEST(SchemaTest, GoodDocumentsPassHoweverTheyAreCutAndBadOnesDoNot) {
  std::mt19937 random(7);
  for (const SchemaCase& c : schema_cases()) {
    const GrammarConstraint constraint = constraint_of(c.schema);
    const SchemaValidator validator(nlohmann::json::parse(c.schema));
    for (const std::string& text : c.good) {
      EXPECT_TRUE(accepts(constraint, tokens_of(text, nullptr))) << c.name << ": " << text;
      for (int i = 0; i < 4; ++i) EXPECT_TRUE(accepts(constraint, tokens_of(text, &random))) << c.name << ": " << text;
      if (c.name != std::string("nullable")) {
        EXPECT_TRUE(validator.fits(nlohmann::json::parse(text))) << c.name << ": " << text;
      }
    }
    for (const std::string& text : c.bad) {
      EXPECT_FALSE(accepts(constraint, tokens_of(text, nullptr))) << c.name << ": " << text;
      EXPECT_FALSE(accepts(constraint, tokens_of(text, &random))) << c.name << ": " << text;
    }
  }
}

TEST(SchemaTest, EverythingDrawnUnderTheMaskFits) {
  std::mt19937 random(11);
  for (const SchemaCase& c : schema_cases()) {
    if (c.name == std::string("nullable")) continue;  // a word of OpenAPI, not of JSON schema
    const GrammarConstraint constraint = constraint_of(c.schema);
    const SchemaValidator validator(nlohmann::json::parse(c.schema));
    int complete = 0;
    for (int i = 0; i < 25; ++i) {
      const std::optional<std::string> text = drawn_text(*constraint.clone(), random);
      if (!text) continue;
      ++complete;
      const auto value = nlohmann::json::parse(*text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << c.name << ": " << *text;
      EXPECT_TRUE(validator.fits(value)) << c.name << ": " << *text;
    }
    EXPECT_GT(complete, 5) << c.name;
  }
}

TEST(SchemaTest, WhatIsNotSupportedIsNamedWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"object","properties":{"a":{"type":"string","not":{}}}})", "schema at #/properties/a: `not`"},
      {R"({"type":"array","uniqueItems":true})", "`uniqueItems`"},
      {R"({"type":"object","patternProperties":{}})", "`patternProperties`"},
      {R"({"if":{}})", "`if`"},
      {R"({"type":"number","multipleOf":0.5})", "`multipleOf`"},
      {R"({"type":"string","format":"iri"})", "`format` is not supported iri"},
      {R"({"type":"string","pattern":"(?=a)b"})", "pattern: regular expression, byte 0"},
      {R"({"type":"string","pattern":"^a$","maxLength":3})", "`maxLength`"},
      {R"({"$ref":"http://example.com/x"})", "`$ref`"},
      {R"({"$ref":"#/$defs/none"})", "there is no #/$defs/none"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "`oneOf`"},
      {R"({"allOf":[{"type":"integer"},{"type":"string"}]})", "`type`"},
      {R"({"type":"strin"})", "found strin"},
      {R"({"type":)", "expected JSON"},
      {R"([])", "expected an object"},
      {R"({"$ref":"#"})", "no text that fits"},
      {R"({"type":"integer","minimum":5,"maximum":3})", "no text that fits"},
      {R"(false)", "no text that fits"},
      {R"({"type":"array","items":{"$ref":"#"},"minItems":1})", "no text that fits"},
      {R"({"type":"array","maxItems":-1})", "maxItems"},
  };
  for (const auto& [schema, expected] : cases) {
    EXPECT_NE(refusal(schema).find(expected), std::string::npos) << schema << " -> " << refusal(schema);
  }
}

TEST(SchemaTest, HostileSchemasAreRefusedQuickly) {
  std::string nested;
  for (int i = 0; i < 5000; ++i) nested += R"({"items":)";
  EXPECT_NE(refusal(nested + "{}" + std::string(5000, '}')).find("nested deeper"), std::string::npos);
  EXPECT_NE(refusal(std::string(300 << 10, ' ')).find("bytes"), std::string::npos);
  // Each level doubles what is below.
  std::string doubled = R"({"type":"string"})";
  for (int i = 0; i < 12; ++i) doubled = R"({"anyOf":[)" + doubled + "," + doubled + "]}";
  EXPECT_EQ(refusal(doubled), "");
  std::string refs = R"({"$ref":"#/$defs/a0","$defs":{)";
  for (int i = 0; i < 30; ++i) {
    const std::string next = R"({"$ref":"#/$defs/a)" + std::to_string(i + 1) + R"(","minLength":0})";
    refs += "\"a" + std::to_string(i) + R"(":{"anyOf":[)" + next + "," + next + "]},";
  }
  refs += R"("a30":{"type":"string"}}})";
  EXPECT_NE(refusal(refs).find("too large"), std::string::npos);
}

}  // namespace
}  // namespace chimere::grammar
