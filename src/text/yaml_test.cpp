#include "text/yaml.h"

#include <gtest/gtest.h>

#include <string>

namespace chimere {
namespace {

TEST(YamlTest, TypedFieldsAndTheirPlaces) {
  const auto root =
      parse_yaml("name: code\nheat: 0.6\nlimit: 12\nthinks: yes\nwords: [a, b]\none: c\nnone:\n", "r.yaml");
  ASSERT_TRUE(root) << root.error().message;
  const std::string file = "r.yaml";
  YamlFields fields(*root, file);
  std::string name;
  std::optional<float> heat;
  std::optional<int32_t> limit;
  std::optional<bool> thinks;
  std::vector<std::string> words, one;
  fields.text("name", name);
  fields.number("heat", heat, 0, 2);
  fields.integer("limit", limit, 0, 100);
  fields.boolean("thinks", thinks);
  fields.words("words", words, 8);
  fields.words("one", one, 8);
  EXPECT_FALSE(fields.find("none"));
  EXPECT_TRUE(fields.end());
  EXPECT_EQ(name, "code");
  EXPECT_FLOAT_EQ(heat.value_or(0), 0.6f);
  EXPECT_EQ(limit, 12);
  EXPECT_EQ(thinks, true);
  EXPECT_EQ(words, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(one, (std::vector<std::string>{"c"}));
}

// What a reader that knows `name`, `heat`, `limit`, `thinks` and `words` says of a text.
std::string complaint(const std::string& text) {
  const auto root = parse_yaml(text, "r.yaml");
  if (!root) return root.error().message;
  const std::string file = "r.yaml";
  YamlFields fields(*root, file);
  std::string name;
  std::optional<float> heat;
  std::optional<int32_t> limit;
  std::optional<bool> thinks;
  std::vector<std::string> words;
  fields.text("name", name, 8);
  fields.number("heat", heat, 0, 2);
  fields.integer("limit", limit, -5, 100);
  fields.boolean("thinks", thinks);
  fields.words("words", words, 2, 4);
  const Status end = fields.end();
  return end ? "" : end.error().message;
}

TEST(YamlTest, ErrorsSayWhere) {
  EXPECT_EQ(complaint("name: x\nlimit: -5\n"), "");
  const std::pair<const char*, const char*> cases[] = {
      {"name: x\nheta: 1\n", "r.yaml:2:1: 'heta' is not known here; did you mean `heat`?"},
      {"heat: warm\n", "r.yaml:1:7: heat: expected a number"},
      {"heat: 3\n", "r.yaml:1:7: heat: expected a number from 0"},
      {"heat: nan\n", "expected a number"},
      {"limit: 1.5\n", "expected a whole number"},
      {"limit: 99999999999999\n", "expected a whole number"},
      {"limit: '-'\n", "expected a whole number"},
      {"thinks: maybe\n", "expected true or false, found 'maybe'"},
      {"words: {a: b}\n", "expected a list of texts, found a map"},
      {"words: [a, b, c]\n", "expected at most 2 texts, found 3"},
      {"words: [abcde]\n", "expected texts of 1 to 4 bytes"},
      {"name: [a]\n", "expected a text, found a list"},
      {"name: much too long\n", "expected at most 8 bytes"},
      {"name: a\nname: b\n", "'name' is there twice"},
      {"- a\n", "expected a map, found a list"},
      {"[a]: b\n", "expected a name as the key"},
      {"name: [\n", "r.yaml:"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(complaint(text).find(expected), std::string::npos) << text << " -> " << complaint(text);
  }
}

TEST(YamlTest, ReferencesAreCountedByWhatTheyStandFor) {
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c <= 'h'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i) bomb += (i ? ",*" : "*") + before;
    bomb += "]\n";
  }
  const auto parsed = parse_yaml(bomb, "bomb.yaml");
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().message.find("at most 20000 values"), std::string::npos) << parsed.error().message;
  EXPECT_FALSE(parse_yaml(std::string((1 << 20) + 1, 'a'), "long.yaml"));
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "[";
  EXPECT_FALSE(parse_yaml(deep + std::string(100, ']'), "deep.yaml"));
}

}  // namespace
}  // namespace chimere
