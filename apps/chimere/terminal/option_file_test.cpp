// option_file_test.cpp  The form of the file, and where it is said to be wrong.
#include "terminal/option_file.h"

#include <gtest/gtest.h>

namespace chimere::apps {
namespace {

TEST(OptionFile, HasModelsAndTheirOptionsWithPlaces) {
  const auto sections = parse_model_sections(
      "# mine\nmodel-options:\n  qwen3-4b:\n    ctx: 8192\n    lora: [a=b.gguf, 'c=d.gguf:0.5']\n  \"a b\":\n    temp: "
      "-0.5\n",
      "f");
  ASSERT_TRUE(sections) << sections.error().message;
  ASSERT_EQ(sections->size(), 2u);
  const ModelSection& first = (*sections)[0];
  EXPECT_EQ(first.name, "qwen3-4b");
  ASSERT_EQ(first.options.size(), 2u);
  EXPECT_EQ(first.options[0].name, "ctx");
  EXPECT_EQ(first.options[0].values, std::vector<std::string>{"8192"});
  EXPECT_EQ(first.options[0].place, "f:4:5");
  EXPECT_EQ(first.place, "f:3:3");
  EXPECT_EQ(first.options[1].values, (std::vector<std::string>{"a=b.gguf", "c=d.gguf:0.5"}));
  EXPECT_EQ((*sections)[1].name, "a b");
  EXPECT_EQ((*sections)[1].options[0].values[0], "-0.5");
}

TEST(OptionFile, SaysWhereItIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"model:\n  a: {ctx: 1}\n", "f:1:1: expected `model-options`, found 'model'; did you mean `model-options`?"},
      {"other: 1\n", "f:1:1: expected `model-options`, found 'other'"},
      {"", "the file: expected a map, found nothing"},
      {"- a\n", "f:1:1: the file: expected a map, found a list"},
      {"models: 3\n", "f:1:9: model-options: expected names of models, and below each its options, found '3'"},
      {"models:\n  a: 3\n", "f:2:6: a: expected lines `option: value`, found '3'"},
      {"models:\n  a:\n", "a: expected lines `option: value`, found nothing"},
      {"models:\n  a: {ctx: 1}\n  a: {ctx: 2}\n", "f:3:3: 'a' is there twice"},
      {"models:\n  a: {ctx: 1}\nmodel-options:\n  b: {ctx: 2}\n", "f:3:1: expected `model-options` once"},
      {"models:\n  a:\n    ctx: 1\n    ctx: 2\n", "f:4:5: 'ctx' is there twice"},
      {"models:\n  a:\n    ctx: {b: 1}\n", "f:3:10: ctx: expected a value or a list of values, found a map"},
      {"models:\n  a:\n    ctx:\n", "ctx: expected a value or a list of values, found nothing"},
      {"models:\n  a:\n    lora: []\n", "lora: expected a value"},
      {"models:\n  a:\n    lora: [[x]]\n", "f:3:12: lora: expected a value"},
      {"models:\n  [a]: 1\n", "expected a name as the key"},
      {"models: [\n", "f:"},
      {"models:\n\t- x\n", "f:2:"},
  };
  for (const auto& [text, message] : cases) {
    const auto sections = parse_model_sections(text, "f");
    ASSERT_FALSE(sections) << text;
    EXPECT_NE(sections.error().message.find(message), std::string::npos) << text << sections.error().message;
  }
  std::string many = "models:\n";
  for (int i = 0; i < 1001; ++i) many += "  m" + std::to_string(i) + ": {ctx: 1}\n";
  EXPECT_FALSE(parse_model_sections(many, "f"));
  EXPECT_FALSE(parse_model_sections(std::string((1 << 20) + 1, ' '), "f"));
  EXPECT_FALSE(read_model_sections("/nonexistent/chimere.yaml"));
}

TEST(OptionFile, OfSeveralPlacesTheFirstWins) {
  const auto mine = parse_model_sections("model-options:\n  a: {ctx: 1}\n", "mine");
  const auto theirs = parse_model_sections("model-options:\n  a: {ctx: 2, temp: 3}\n  b: {ctx: 4}\n", "theirs");
  ASSERT_TRUE(mine && theirs);
  const auto merged = merged_sections({&*mine, &*theirs});
  ASSERT_EQ(merged.size(), 2u);
  ASSERT_EQ(merged[0].options.size(), 2u);
  EXPECT_EQ(merged[0].options[0].values[0], "1");
  EXPECT_EQ(merged[0].options[0].place, "mine:2:7");
  EXPECT_EQ(merged[0].options[1].place, "theirs:2:15");
  EXPECT_EQ(merged[1].name, "b");
}

TEST(OptionFile, DeepAndTangledFilesEnd) {
  EXPECT_FALSE(parse_model_sections("models: " + std::string(200'000, '['), "f"));
  std::string aliases = "models:\n  a: &a {x: 1}\n";
  for (char c = 'b'; c < 'z'; ++c) aliases += std::string("  ") + c + ": &" + c + " {x: [*" + char(c - 1) + "]}\n";
  EXPECT_FALSE(parse_model_sections(aliases, "f"));
}

}  // namespace
}  // namespace chimere::apps
