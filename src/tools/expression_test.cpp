#include "tools/expression.h"

#include <gtest/gtest.h>

namespace chimere::tools {
namespace {

std::string value_of(std::string_view expression) {
  const auto answer = evaluate(expression);
  return answer ? answer->text : answer.error().message;
}

TEST(Expression, IsExactAndBindsAsOneWritesIt) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"2 + 3 * 4", "14"},
      {"(2 + 3) * 4", "20"},
      {"0.1 + 0.2", "0.3"},
      {"-2^2", "-4"},
      {"2^3^2", "512"},
      {"2^-3", "0.125"},
      {"0^0", "1"},
      {"(-1)^1000000001", "-1"},
      {"1/7*7", "1"},
      {"10/3", "3.33333333333333 (rounded; exactly 10/3)"},
      {"-1/3", "-0.333333333333333 (rounded; exactly -1/3)"},
      {"10 // 3", "3"},
      {"-7 // 2", "-4"},
      {"-7 % 3", "2"},
      {"7.5 mod 2", "1.5"},
      {"25!", "15511210043330985984000000"},
      {"2^200", "1606938044258990275541962092341162602522202993782792835301376"},
      {"123456789123456789 * 987654321987654321", "121932631356500531347203169112635269"},
      {"1.5e3 + 1e-2", "1500.01"},
      {"1/10^30", "0.000000000000000000000000000001"},
      {"10^40/3", "3.33333333333333e+39 (rounded; exactly 10000000000000000000000000000000000000000/3)"},
      {"1000!", "4.02387260077094e+2567 (rounded; the exact number has 2568 digits)"},
      {"- - 3 + + 2", "5"},
  };
  for (const auto& [expression, expected] : cases) EXPECT_EQ(value_of(expression), expected) << expression;
}

TEST(Expression, ReadsWhatModelsWrite) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"3 × 4 ÷ 2 − 1", "5"},
      {"3 x 4", "12"},
      {"3² + 4²", "25"},
      {"2**10", "1024"},
      {"√16 + √(9)", "7"},
      {"1,234,567 * 2", "2469134"},
      {"1 000 000 / 8", "125000"},
      {"1_000 + 1'000", "2000"},
      {"2\u202F500 + 1", "2501"},
      {"15% of 80", "12"},
      {"200 * (1 + 10%)", "220"},
      {"5% + 3%", "0.08"},
      {"1 - 10%", "0.9"},
      {"10 % 3", "1"},
      {"2 + 2 =", "4"},
      {"math.sqrt(9)", "3"},
      {"MAX(1, 2)", "2"},
      {".5 + 5.", "5.5"},
      {"412 times 298 plus 511", "123287"},
      {"412 plus 298 minus 511", "199"},
      {"12 divided by 8", "1.5"},
      {"412 moins 298 plus 511", "625"},
      {"6 fois 7", "42"},
      {"84 divisé par 2", "42"},
      {"5% plus 3%", "0.08"},
      {"10% times 50", "5"},
  };
  for (const auto& [expression, expected] : cases) EXPECT_EQ(value_of(expression), expected) << expression;
}

TEST(Expression, HasFunctionsAndComparisons) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"sqrt(16/25)", "0.8"},
      {"sqrt(2)", "1.4142135623731 (rounded)"},
      {"sqrt(2)^2", "2 (rounded)"},
      {"8^(1/3)", "2"},
      {"cbrt(-27)", "-3"},
      {"abs(-3/4)", "0.75"},
      {"min(3, 1, 2)", "1"},
      {"max(100,200)", "200"},
      {"round(2.5)", "3"},
      {"round(-2.675, 2)", "-2.68"},
      {"round(12345; -2)", "12300"},
      {"floor(-1.5)", "-2"},
      {"ceil(-1.5)", "-1"},
      {"gcd(12, 18)", "6"},
      {"lcm(4, 6, 10)", "60"},
      {"lcm(0, 6)", "0"},
      {"factorial(5)", "120"},
      {"pow(2, 10)", "1024"},
      {"mod(10, 4)", "2"},
      {"sum(1, 2, 3)", "6"},
      {"mean(1, 2, 3, 4)", "2.5"},
      {"1/3 + 1/6 == 1/2", "true"},
      {"2 < 1", "false"},
      {"2 ≥ 2", "true"},
      {"3! != 6", "false"},
  };
  for (const auto& [expression, expected] : cases) EXPECT_EQ(value_of(expression), expected) << expression;
}

TEST(Expression, ErrorsSayWhereAndWhat) {
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"", "at character 1: expected a number, a function or '(', found the end"},
      {"2 × * 3", "at character 5: expected a number, a function or '(', found '*'"},
      {"(2 + 3", "at character 7: expected ')', found the end"},
      {"2(3)", "at character 2: expected an operator or the end, found '('"},
      {"1 / (2 - 2)", "at character 3: division by zero"},
      {"0^-1", "at character 2: division by zero: zero to a negative power"},
      {"sqrt(-4)", "at character 1: the root of a negative number"},
      {"1.5!", "at character 4: the factorial of a number that is no integer from 0 on"},
      {"3,14", "at character 2: a comma that no three digits follow; decimals are written with a point"},
      {"200 + 10%",
       "at character 5: a percentage beside a number can be read in two ways; write 200 * (1 + 10%) or 200 + 0.1"},
      {"10 % -3",
       "at character 6: a percentage beside a number can be read in two ways; write 200 * (1 + 10%) or 200 + 0.1"},
      {"max(1,000, 2)",
       "at character 7: a comma between arguments, or between thousands? Write numbers here without separators"},
      {"round(1, 2, 3)", "at character 1: round takes 1 to 2 arguments, found 3"},
      {"gcd(1.5, 2)", "at character 1: gcd takes integers"},
      {"2^sqrt(2)",
       "at character 2: expected an exponent that is an integer or a fraction with a denominator up to 64"},
      {"sqrt(2) < 2", "at character 9: a rounded root cannot be compared exactly; compare the squares"},
      {"1 < 2 < 3", "at character 7: expected an operator or the end, found '<'"},
      {"\xFF", "at character 1: expected a number, a function or '(', found '\xFF'"},
  };
  for (const auto& [expression, expected] : cases) EXPECT_EQ(value_of(expression), expected) << expression;
  EXPECT_NE(value_of("sinus(1)").find("unknown name 'sinus'; there are sqrt, cbrt"), std::string::npos);
}

TEST(Expression, HasLimits) {
  EXPECT_EQ(value_of(std::string(kMaxExpressionBytes + 1, '1')),
            "expected an expression of at most 4096 bytes, found 4097");
  EXPECT_EQ(value_of("9^9^9"), "at character 2: the number has more than 5000 digits");
  EXPECT_EQ(value_of("1e5001"), "at character 1: the number has more than 5000 digits");
  EXPECT_EQ(value_of("100000!"), "at character 7: the number has more than 5000 digits");
  EXPECT_EQ(value_of("1e-4999 / 1e4999"), "at character 9: the number has more than 5000 digits");
  EXPECT_EQ(value_of(std::string(70, '(') + "1"), "at character 65: more than 128 levels inside each other");
  EXPECT_EQ(value_of(std::string(200, '-') + "1"), "at character 128: more than 128 levels inside each other");
  std::string heavy = "1";
  for (int i = 0; i < 300; ++i) heavy += " + 2^9999/3";
  EXPECT_EQ(value_of(heavy), "the expression takes too long: its numbers are too large");
  const auto cancelled = evaluate("1 + 1", [] { return true; });
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, Code::cancelled);
}

}  // namespace
}  // namespace chimere::tools
