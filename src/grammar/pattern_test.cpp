#include "grammar/pattern.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <regex>
#include <string>
#include <string_view>

namespace chimere::grammar {
namespace {

TEST(PatternTest, FindsWhatTheStandardLibraryFinds) {
  const char* const texts[] = {"blk.0.ffn_down.weight",
                               "blk.12.attn_q.weight",
                               "output.weight",
                               "output_norm.weight",
                               "token_embd.weight",
                               "blk.7.ssm_out.weight",
                               "",
                               "a"};
  const char* const expressions[] = {
      "ffn_down", "^output", "weight$",   "^output\\.weight$", "blk\\.(0|7)\\.", "blk\\.\\d+\\.", "attn_[qkv]\\.",
      "",         "^$",      "norm|embd", "(ffn|attn)_.+ht",   "a{1,3}",         "[^a-z]",        "^blk|^token",
      "o.*o"};
  for (const char* const expression : expressions) {
    const auto pattern = Pattern::parse(expression);
    ASSERT_TRUE(pattern) << expression << ": " << pattern.error().message;
    for (const std::string text : texts) {
      EXPECT_EQ(pattern->is_in(text), std::regex_search(text, std::regex(expression))) << expression << " in " << text;
    }
  }
}

TEST(PatternTest, TablesChangeNothing) {
  const char* const expressions[] = {"ab",
                                     "^ab",
                                     "ab$",
                                     "^(a|b)*c$",
                                     "a.*b",
                                     "[^a]b{2,3}",
                                     "",
                                     "^$",
                                     "(a|bc)+ ?\\.d",
                                     "\u00e9",
                                     "^ *(ab|ba)( c)?[ !]*$"};
  for (const char* const expression : expressions) {
    const auto slow = Pattern::parse(expression);
    ASSERT_TRUE(slow) << expression;
    Pattern fast = *slow;
    EXPECT_TRUE(fast.tabulate()) << expression;
    std::uint64_t seed = 1;
    for (int i = 0; i < 2000; ++i) {
      std::string text;
      for (int n = i % 12; n > 0; --n) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        constexpr std::string_view kPieces[] = {"a", "b", "c", "d", " ", ".", "!", "\u00e9", "\xff", "\n"};
        text += kPieces[(seed >> 33) % std::size(kPieces)];
      }
      EXPECT_EQ(fast.is_in(text), slow->is_in(text)) << expression << " in '" << text << "'";
    }
  }
  // Too many ways: it stays as it was.
  auto wide = Pattern::parse("a.{500}b");
  ASSERT_TRUE(wide) << wide.error().message;
  EXPECT_FALSE(wide->tabulate());
  EXPECT_TRUE(wide->is_in("a" + std::string(500, 'x') + "b"));
}

TEST(PatternTest, HostileExpressionsCostLittle) {
  // A state for each subset of the places behind the last "a": refused before there are many.
  const auto wide = Pattern::parse("a..................b");
  ASSERT_FALSE(wide);
  EXPECT_NE(wide.error().message.find("states"), std::string::npos) << wide.error().message;
  // Exponential in the standard library.
  const auto nested = Pattern::parse("((a+)+)+b$");
  ASSERT_TRUE(nested) << nested.error().message;
  EXPECT_FALSE(nested->is_in(std::string(4000, 'a')));
  // An overflow there.
  EXPECT_FALSE(Pattern::parse("a\\66666666666666666666"));
  EXPECT_FALSE(Pattern::parse("a{99999999999999999999}"));
}

}  // namespace
}  // namespace chimere::grammar
