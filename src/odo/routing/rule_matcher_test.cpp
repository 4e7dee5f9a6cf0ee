// rule_matcher_test.cpp  Words, phrases and files that rules find, and those they must not.
#include "odo/routing/rule_matcher.h"

#include <gtest/gtest.h>

namespace chimere::odo {
namespace {

class RuleMatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    RouteRules a, b;
    a.words = {"code", "pull request", "c++", "tendinite", "Écris", "vulnerab*", "brute forc*"};
    b.words = {"request"};
    b.patterns = {"[^a-z]cve-[0-9]+-[0-9]+", "^ hello $"};
    auto made = RuleMatcher::create({{"a", a}, {"b", b}});
    ASSERT_TRUE(made) << made.error().message;
    matcher_.emplace(std::move(*made));
  }
  std::vector<std::string> found(const char* text, size_t route = 0) const {
    const auto hits = matcher_->match(FoldedText(text));
    return {hits[route].found.begin(), hits[route].found.end()};
  }

  std::optional<RuleMatcher> matcher_;
};

using Found = std::vector<std::string>;

TEST_F(RuleMatcherTest, FindsWholeWordsOfAnyCase) {
  EXPECT_EQ(found("Is this CODE right?"), Found{"code"});
  EXPECT_EQ(found("decode the codex, encoder"), Found{});
  EXPECT_EQ(found("(code)"), Found{"code"});
  EXPECT_EQ(found("code, code and code"), Found{"code"});
  EXPECT_EQ(found("C++ or c#"), Found{"c++"});
  EXPECT_EQ(found("the letter c"), Found{});
}

TEST_F(RuleMatcherTest, FindsAccentsWithAndWithout) {
  EXPECT_EQ(found("écris une lettre"), Found{"Écris"});
  EXPECT_EQ(found("ECRIS une lettre"), Found{"Écris"});
  EXPECT_EQ(found("e\xCC\x81"
                  "cris"),
            Found{"Écris"});  // the accent as a character of its own
  EXPECT_EQ(found("une t\xC3\xA9ndinite"), Found{"tendinite"});
}

TEST_F(RuleMatcherTest, FindsPhrasesAndBeginnings) {
  EXPECT_EQ(found("my Pull\n  Request is open"), Found{"pull request"});
  EXPECT_EQ(found("pull the request"), Found{});
  EXPECT_EQ(found("my pull request", 1), Found{"request"});
  EXPECT_EQ(found("vulnerabilities"), Found{"vulnerab*"});
  EXPECT_EQ(found("vulnérabilité"), Found{"vulnerab*"});
  EXPECT_EQ(found("invulnerable"), Found{});
  EXPECT_EQ(found("they are brute forcing it"), Found{"brute forc*"});
  EXPECT_EQ(found("brute"), Found{});
}

TEST_F(RuleMatcherTest, PatternsSeeTheFoldedText) {
  EXPECT_EQ(found("CVE-2021-44228", 1), Found{"[^a-z]cve-[0-9]+-[0-9]+"});
  EXPECT_EQ(found("Hello", 1), Found{"^ hello $"});
  EXPECT_EQ(found("Hello you", 1), Found{});
}

TEST_F(RuleMatcherTest, AnyBytesWillDo) {
  EXPECT_EQ(found(""), Found{});
  EXPECT_EQ(found("\xFF\xFE code \xC3"), Found{"code"});
  // Of a long text the ends are looked at.
  const std::string filler(100'000, 'x');
  EXPECT_EQ(found(("code " + filler).c_str()), Found{"code"});
  EXPECT_EQ(found((filler + " code").c_str()), Found{"code"});
  EXPECT_EQ(found((filler + " code " + filler).c_str()), Found{});
}

TEST(Attachments, FitByEndingAndType) {
  EXPECT_TRUE(fits_attachment(".py", "Main.PY", ""));
  EXPECT_FALSE(fits_attachment(".py", "main.pyc", ""));
  EXPECT_FALSE(fits_attachment(".py", "py", ""));
  EXPECT_TRUE(fits_attachment("image/*", "a", "image/png"));
  EXPECT_FALSE(fits_attachment("image/*", "image/png", "text/plain"));
  EXPECT_TRUE(fits_attachment("text/x-python", "", "Text/X-Python; charset=utf-8"));
  EXPECT_FALSE(fits_attachment("text/x-python", "", "text/x-python2"));
}

}  // namespace
}  // namespace chimere::odo
