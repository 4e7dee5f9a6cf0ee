// route_rules_test.cpp  The `match:` section of a route's file: what is read, and what is refused and where.
#include "odo/routing/route_rules.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/scratch_for_test.h"

namespace chimere::odo {
namespace {

std::string refusal(const std::string& text) {
  const auto read = parse_route_rules(text, "code.yaml");
  return read ? "nothing is wrong" : read.error().message;
}

TEST(RouteRules, ReadsWhatIsThere) {
  const auto read = parse_route_rules(
      "name: code\nparams: {temperature: 0.5}\nmatch:\n  words: [git, 'pull request']\n  patterns: ['[a-z]+error: ']\n"
      "  attachments: [.py, 'image/*']\n  examples:\n    - Why does it crash?\n  describes: programs\n",
      "code.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->first, "code");
  EXPECT_EQ(read->second.words, (std::vector<std::string>{"git", "pull request"}));
  EXPECT_EQ(read->second.patterns.size(), 1u);
  EXPECT_EQ(read->second.attachments.size(), 2u);
  EXPECT_EQ(read->second.examples.front(), "Why does it crash?");
  EXPECT_EQ(read->second.describes, "programs");
}

TEST(RouteRules, RefusalsSayWhere) {
  EXPECT_EQ(refusal("name: code\nmatch:\n  wrods: [git]\n"),
            "code.yaml:3:3: 'wrods' is not known here; did you mean `words`?");
  EXPECT_EQ(refusal("name: code\nmatch:\n  words: {git: 1}\n"),
            "code.yaml:3:10: words: expected a list of texts, found a map");
  EXPECT_EQ(refusal("name: code\nmatch:\n  words:\n    - git\n    - '---'\n"),
            "code.yaml:5:7: words: expected letters or digits, found '---'");
  EXPECT_EQ(refusal("name: code\nmatch:\n  words: [git]\n  words: [hg]\n"), "code.yaml:4:3: 'words' is there twice");
  EXPECT_EQ(refusal("name: code\nmatch:\n  attachments: [py]\n"),
            "code.yaml:3:17: attachments: expected an ending such as .py or a type such as image/*, found 'py'");
  EXPECT_EQ(refusal("name: code\nmatch: [a]\n"), "code.yaml:2:8: expected a map, found a list");
  EXPECT_NE(refusal("name: code\nmatch:\n  patterns: ['(a']\n").find("code.yaml:3:14: patterns: "), std::string::npos);
  EXPECT_NE(refusal("match: {words: [a]}\n").find("name: expected"), std::string::npos);
  EXPECT_NE(refusal("name: [\n").find("code.yaml:"), std::string::npos);
  EXPECT_NE(refusal("[]").find("expected a map"), std::string::npos);
}

TEST(RouteRules, HasLimits) {
  std::string many = "name: code\nmatch:\n  words:\n";
  for (size_t i = 0; i <= kMaxRouteWords; ++i) many += "    - w" + std::to_string(i) + "\n";
  EXPECT_NE(refusal(many).find("expected at most 4096 texts, found 4097"), std::string::npos);
  const std::string is_long(kMaxRuleBytes + 1, 'a');
  EXPECT_NE(
      refusal("name: code\nmatch:\n  describes: " + is_long + "\n").find("expected at most 1000 bytes, found 1001"),
      std::string::npos);
  EXPECT_NE(refusal("name: " + std::string(size_t{1} << 20, 'a')).find("bytes"), std::string::npos);
}

TEST(RouteRules, FoldersHaveOneRouteAFile) {
  const std::string folder = fixture::scratch_folder().string();
  EXPECT_FALSE(read_route_rules(folder));
  std::ofstream(folder + "/b.yaml") << "name: b\nmatch: {words: [bee]}\n";
  std::ofstream(folder + "/a.yaml") << "name: a\nmatch: {words: [ape]}\n";
  std::ofstream(folder + "/notes.txt") << "no route";
  const auto routes = read_route_rules(folder);
  ASSERT_TRUE(routes) << routes.error().message;
  ASSERT_EQ(routes->size(), 2u);
  EXPECT_EQ(routes->front().first, "a");
  std::ofstream(folder + "/c.yaml") << "name: d\n";
  const auto wrong = read_route_rules(folder);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("expected the name 'c'"), std::string::npos);
  EXPECT_FALSE(read_route_rules(folder + "/nowhere"));
}

}  // namespace
}  // namespace chimere::odo
