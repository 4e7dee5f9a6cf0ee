// constraint_test.cpp  Masks against the naive way to make them, and what a constraint does beyond masks.
#include "grammar/constraint.h"

#include <gtest/gtest.h>

#include <random>

#include "grammar/gbnf.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "grammar/schema_cases_for_test.h"
#include "grammar/text_for_test.h"

namespace chimere::grammar {
namespace {

std::shared_ptr<const TokenGrammar> token_grammar(Grammar& grammar, Result<ExprId> root) {
  EXPECT_TRUE(root) << root.error().message;
  grammar.root = grammar.add_rule("the whole");
  grammar.define(grammar.root, *root);
  auto made = TokenGrammar::create(grammar, vocabulary_for_test());
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

std::shared_ptr<const TokenGrammar> of_gbnf(const std::string& text) {
  Grammar grammar;
  return token_grammar(grammar, parse_gbnf(text, grammar));
}

// Every token tried by itself.
std::vector<uint64_t> naive_mask(const GrammarConstraint& constraint) {
  const Vocabulary& vocabulary = *vocabulary_for_test();
  std::vector<uint64_t> bits(vocabulary.n_words());
  const auto set = [&](int32_t id) { bits[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64); };
  for (int32_t id = 0; id < static_cast<int32_t>(bits.size() * 64); ++id) {
    const Vocabulary::Reading reading = vocabulary.reading(id);
    if (reading.text.empty() && reading.code.empty()) continue;
    GrammarConstraint tried = constraint;
    tried.accept(id);
    if (!tried.is_finished() || tried.may_end()) set(id);
  }
  const bool none = std::all_of(bits.begin(), bits.end(), [](uint64_t word) { return word == 0; });
  if (constraint.may_end() || constraint.is_in_text() || none) {
    for (const int32_t id : vocabulary.end_ids()) set(id);
  }
  return bits;
}

void compare_along_random_texts(const std::shared_ptr<const TokenGrammar>& grammar, int n_texts, const char* name) {
  std::mt19937 random(3);
  for (int text = 0; text < n_texts; ++text) {
    GrammarConstraint constraint(grammar);
    for (int n = 0; n < 60 && !constraint.is_finished(); ++n) {
      const std::span<const uint64_t> mask = constraint.mask();
      const std::vector<uint64_t> expected = naive_mask(constraint);
      ASSERT_TRUE(std::equal(mask.begin(), mask.end(), expected.begin(), expected.end())) << name << ", token " << n;
      std::vector<int32_t> allowed;
      for (int32_t id = 0; id < static_cast<int32_t>(mask.size() * 64); ++id) {
        if (is_set(mask, id) && !vocabulary_for_test()->is_end(id)) allowed.push_back(id);
      }
      if (allowed.empty()) break;
      constraint.accept(allowed[random() % allowed.size()]);
    }
  }
}

constexpr const char* kArithmetic = R"GBNF(
root ::= sum "\n"?      # a comment
sum ::= term (("+" | "-") term)*
term ::= number | "(" sum ")"
number ::= [0-9]{1,3} ("." [0-9]+)?
)GBNF";

TEST(ConstraintTest, MasksEqualTheNaiveOnes) {
  for (const SchemaCase& c : schema_cases()) {
    Grammar grammar;
    const auto compiled = token_grammar(grammar, parse_schema(c.schema, grammar));
    compare_along_random_texts(compiled, 2, c.name);
  }
  compare_along_random_texts(of_gbnf(kArithmetic), 5, "arithmetic");
  compare_along_random_texts(of_gbnf("root ::= item{2,90} \"!\"\nitem ::= [a-h]+ \",\" | \"(\" root \")\""), 5,
                             "nested");
  compare_along_random_texts(of_gbnf("root ::= .{0,40} \"hello world\""), 5, "plain after a run");
  compare_along_random_texts(of_gbnf("root ::= (a | b) root?\na ::= \"a\" \"a\"?\nb ::= \"a\"+ \"b\""), 5, "ambiguous");
  for (const char* regex : {"(abc|a.c)*x?", "[^a]{3,50}b", "h(el+o)? w.{2,9}[0-9a-f]{64}", "\\w+@\\w+\\.(com|org)"}) {
    Grammar grammar;
    compare_along_random_texts(token_grammar(grammar, parse_regex(regex, grammar)), 3, regex);
  }
}

TEST(ConstraintTest, TextWithoutAMark) {
  Grammar grammar;
  const ExprId text = grammar.sequence({grammar.without("</a>"), grammar.bytes("</a>")});
  const auto compiled = token_grammar(grammar, text);
  compare_along_random_texts(compiled, 5, "without");
  const Tokenizer tokenizer = tokenizer_for_test();
  const auto is_complete = [&](std::string_view written) {
    GrammarConstraint constraint(compiled);
    for (const char c : written) constraint.accept(tokenizer.find_token(std::string_view(&c, 1)));
    return constraint.may_end();
  };
  EXPECT_TRUE(is_complete("x <</a>"));
  EXPECT_TRUE(is_complete("</a>"));
  EXPECT_TRUE(is_complete("</</a>"));
  EXPECT_FALSE(is_complete("</a></a>"));
  EXPECT_FALSE(is_complete("</a"));
}

TEST(ConstraintTest, ControlTokensAreMetOnlyWhereTheGrammarNamesThem) {
  const Tokenizer tokenizer = tokenizer_for_test();
  const int32_t start = tokenizer.find_token("<|im_start|>"), think = tokenizer.find_token("<think>");
  const auto anything = of_gbnf("root ::= .*");
  GrammarConstraint free(anything);
  EXPECT_FALSE(is_set(free.mask(), start));
  EXPECT_TRUE(is_set(free.mask(), think)) << "a word that stands for its own text";
  Grammar grammar;
  const ExprId both = grammar.sequence({grammar.token(start), grammar.token(think), grammar.bytes("x")});
  GrammarConstraint named(token_grammar(grammar, both));
  EXPECT_TRUE(is_set(named.mask(), start));
  named.accept(start);
  EXPECT_TRUE(is_set(named.mask(), think));
  named.accept(think);
  named.accept(tokenizer.find_token("x"));
  EXPECT_TRUE(named.may_end());
  EXPECT_TRUE(named.is_finished());
}

TEST(ConstraintTest, AForcedTokenThatDoesNotFitLeavesOnlyTheEnd) {
  const Tokenizer tokenizer = tokenizer_for_test();
  GrammarConstraint constraint(of_gbnf("root ::= \"abc\""));
  constraint.accept(tokenizer.find_token("x"));
  EXPECT_TRUE(constraint.is_finished());
  const auto mask = constraint.mask();
  for (int32_t id = 0; id < tokenizer.n_vocab(); ++id) {
    EXPECT_EQ(is_set(mask, id), vocabulary_for_test()->is_end(id)) << id;
  }
}

TEST(ConstraintTest, ClonesGoTheirOwnWay) {
  const Tokenizer tokenizer = tokenizer_for_test();
  GrammarConstraint constraint(of_gbnf("root ::= \"a\" (\"b\" | \"c\")"));
  constraint.accept(tokenizer.find_token("a"));
  const std::unique_ptr<TokenConstraint> other = constraint.clone();
  constraint.accept(tokenizer.find_token("b"));
  EXPECT_TRUE(constraint.is_finished());
  EXPECT_FALSE(other->is_finished());
  EXPECT_TRUE(is_set(other->mask(), tokenizer.find_token("c")));
  EXPECT_FALSE(is_set(other->mask(), tokenizer.find_token("a")));
}

TEST(ConstraintTest, ALongTextKeepsTheStackSmall) {
  const Tokenizer tokenizer = tokenizer_for_test();
  GrammarConstraint constraint(of_gbnf("root ::= (\"(\" [a-c]{1,900000} \")\" | \"[\" root \"]\"){1,900000}"));
  for (int i = 0; i < 40000; ++i) {
    for (const char* piece : {"(", "a", "abc", ")"}) {
      const int32_t id = tokenizer.find_token(piece);
      if (i % 1000 == 0) {
        ASSERT_TRUE(is_set(constraint.mask(), id)) << i;
      }
      constraint.accept(id);
    }
    ASSERT_TRUE(constraint.may_end()) << i;
  }
}

TEST(ConstraintTest, ACompletionIsShortAndWhole) {
  std::mt19937 random(5);
  for (const SchemaCase& c : schema_cases()) {
    Grammar grammar;
    const auto compiled = token_grammar(grammar, parse_schema(c.schema, grammar));
    for (int i = 0; i < 12; ++i) {
      GrammarConstraint constraint(compiled);
      // Into the text, then straight to its end.
      for (int n = 0; n < 3 * i && !constraint.is_finished(); ++n) {
        std::vector<int32_t> allowed;
        const auto mask = constraint.mask();
        for (int32_t id = 0; id < static_cast<int32_t>(mask.size() * 64); ++id) {
          if (is_set(mask, id) && !vocabulary_for_test()->is_end(id)) allowed.push_back(id);
        }
        if (allowed.empty()) break;
        constraint.accept(allowed[random() % allowed.size()]);
      }
      std::vector<int32_t> rest = constraint.completion(TokenConstraint::Part::all);
      EXPECT_EQ(rest.empty(), constraint.may_end()) << c.name;
      for (size_t k = 0; k < rest.size(); ++k) {
        ASSERT_TRUE(is_set(constraint.mask(), rest[k])) << c.name;
        const auto left = static_cast<int32_t>(rest.size() - k - 1);
        EXPECT_TRUE(constraint.can_end_after(rest[k], left)) << c.name;
        constraint.accept(rest[k]);
      }
      EXPECT_TRUE(constraint.may_end()) << c.name;
    }
  }
}

std::string shortest(const std::string& schema, std::string_view written, TokenConstraint::Part part) {
  static const Tokenizer tokenizer = tokenizer_for_test();
  Grammar grammar;
  GrammarConstraint constraint(token_grammar(grammar, parse_schema(schema, grammar)));
  for (const char c : written) constraint.accept(tokenizer.find_token(std::string_view(&c, 1)));
  std::string text;
  for (const int32_t id : constraint.completion(part)) text += vocabulary_for_test()->reading(id).text;
  return text;
}

TEST(ConstraintTest, ACompletionClosesWhatIsOpen) {
  using Part = TokenConstraint::Part;
  const std::string two = R"({"type":"object","properties":{"a":{"type":"string"},"n":{"type":"number"}},
      "required":["a","n"],"additionalProperties":false})";
  EXPECT_EQ(shortest(two, "{\"a\":\"bcd", Part::inner), "\"");
  EXPECT_EQ(shortest(two, "{\"a\":\"bcd", Part::all), "\",\"n\":0}");
  EXPECT_EQ(shortest(two, "{\"a\":\"bcd\\u00", Part::inner), "00\"");
  EXPECT_EQ(shortest(two, "{\"a\":\"\",\"n\":1.", Part::inner), "0");
  EXPECT_EQ(shortest(two, "{\"a\":\"\",\"n\":12", Part::all), "}");
  EXPECT_EQ(shortest(two, "{\"a\":\"\",\"n\":12}", Part::all), "");
  const std::string counted = R"({"type":"string","minLength":2,"maxLength":400})";
  EXPECT_EQ(shortest(counted, "\"abc", Part::inner), "\"");
  EXPECT_EQ(shortest(counted, "\"a", Part::all).size(), 2u);
  EXPECT_EQ(shortest(R"({"type":"array","items":{"enum":["long one","ab"]},"minItems":3})", "[", Part::all),
            R"("ab","ab","ab"])");
}

// What the loop guard counts: tokens that lie in one string, and what separates strings and lines.
TEST(ConstraintTest, TokensOfOneStringAreCounted) {
  const Tokenizer tokenizer = tokenizer_for_test();
  Grammar strings, texts;
  const auto listed = token_grammar(strings, parse_schema(R"({"type":"array","items":{"type":"string"}})", strings));
  const auto count = [&](const std::shared_ptr<const TokenGrammar>& grammar, std::string_view written) {
    GrammarConstraint constraint(grammar);
    for (const char c : written) constraint.accept(tokenizer.find_token(std::string_view(&c, 1)));
    return constraint.n_text();
  };
  EXPECT_EQ(count(listed, "["), 0);
  EXPECT_EQ(count(listed, "[\""), 0);
  EXPECT_EQ(count(listed, "[\"abc"), 3);
  EXPECT_EQ(count(listed, "[\"abc\""), 0);
  EXPECT_EQ(count(listed, "[\"abc\",\"d"), 1);
  EXPECT_EQ(count(listed, "[\"abc\\nd"), 1) << "another line";
  EXPECT_EQ(count(of_gbnf("root ::= .*"), "abc"), 0) << "may end anywhere, so nothing has to be closed";
  EXPECT_EQ(count(of_gbnf("root ::= \"[\" [0-9,]* \"]\""), "[12,000"), 3) << "a number of several";
  EXPECT_EQ(count(of_gbnf("root ::= \"[\" [0-9,]* \"]\""), "[12,000,"), 0);
  const std::string least = R"({"type":"string","minLength":4})";
  EXPECT_EQ(count(token_grammar(texts, parse_schema(least, texts)), "\"aaaaaa"), 3) << "what is demanded is no circle";
}

// Once 512 ways each looked on by themselves, 1.2 s a token. Steps are counted, not seconds.
TEST(ConstraintTest, AmbiguousGrammarsCostNoMoreThanTheirLimit) {
  std::string members;
  for (int i = 0; i < 100; ++i) {
    members += std::string(i ? "," : "") + R"({"type":"object","properties":{"name":{"type":"string"},"k)" +
               std::to_string(i) + R"(":{"type":"integer"}},"required":["name","k)" + std::to_string(i) + "\"]}";
  }
  std::string many = "root ::= many many*\nmany ::= ";
  for (int i = 0; i < 300; ++i) many += (i ? " | a" : "a") + std::to_string(i);
  for (int i = 0; i < 300; ++i) many += "\na" + std::to_string(i) + " ::= [a-z ] many? \"!\"?";
  const std::pair<char, std::string> grammars[] = {
      {'g', "root ::= s\ns ::= [a-z ] s s | [a-z ] | [a-z ] s | [a-z ] s s s"},
      {'g', "root ::= (([a-z]+ \" \"?)+ \",\"?)+"},
      {'g', "root ::= s\ns ::= \"a\" s \"b\"? | \"a\" s s | \"ab\" | \"a\""},
      {'g', "root ::= (a? a? a? a? b?){0,60}\na ::= [a-z] | [a-z] a\nb ::= a a"},
      {'g', many},
      {'r', "((a|b|ab|ba)*(a|aa|aab)*)*"},
      {'s', R"({"anyOf":[)" + members + "]}"},
  };
  const Tokenizer tokenizer = tokenizer_for_test();
  for (const auto& [kind, text] : grammars) {
    Grammar grammar;
    auto root = kind == 'g'   ? parse_gbnf(text, grammar)
                : kind == 'r' ? parse_regex(text, grammar)
                              : parse_schema(text, grammar);
    ASSERT_TRUE(root) << root.error().message;
    grammar.root = grammar.add_rule("the whole");
    grammar.define(grammar.root, *root);
    auto made = TokenGrammar::create(grammar, vocabulary_for_test());
    if (!made) continue;  // refused, which is as good
    GrammarConstraint constraint(*made);
    std::mt19937 random(9);
    for (int n = 0; n < 24 && !constraint.is_finished(); ++n) {
      uint64_t before = constraint.work();
      std::vector<int32_t> allowed;
      const auto mask = constraint.mask();
      EXPECT_LE(constraint.work() - before, static_cast<uint64_t>(TreeWalk::kBudget + 2 * Recogniser::kMaxClosure))
          << text.substr(0, 60);
      before = constraint.work();
      constraint.prepare(kWholeMask);
      EXPECT_EQ(constraint.work(), before) << "a mask that is known costs nothing";
      for (int32_t id = 0; id < static_cast<int32_t>(mask.size() * 64); ++id) {
        if (is_set(mask, id) && !vocabulary_for_test()->is_end(id)) allowed.push_back(id);
      }
      if (allowed.empty()) break;
      const int32_t id = allowed[random() % allowed.size()];
      const size_t bytes = vocabulary_for_test()->reading(id).text.size();
      before = constraint.work();
      constraint.accept(id);
      EXPECT_LE(constraint.work() - before, (bytes + 1) * 2 * Recogniser::kMaxClosure) << text.substr(0, 60);
      ASSERT_FALSE(constraint.is_finished() && !constraint.may_end()) << text.substr(0, 60) << ", token " << n;
    }
  }
}

TEST(ConstraintTest, AMaskCanBeMadeInPortions) {
  GrammarConstraint constraint(of_gbnf("root ::= s\ns ::= [a-z ] s s | [a-z ] | [a-z ] s | [a-z ] s s s"));
  const Tokenizer tokenizer = tokenizer_for_test();
  for (const char* piece : {"abc", "hello world", "abcd", "name"}) constraint.accept(tokenizer.find_token(piece));
  const uint64_t before = constraint.work();
  EXPECT_FALSE(constraint.prepare(10'000));
  EXPECT_LE(constraint.work() - before, 10'000 + 2 * Recogniser::kMaxClosure);
  EXPECT_TRUE(constraint.prepare(kWholeMask));
  EXPECT_TRUE(constraint.prepare(1)) << "it is known now";
}

// White space between the parts of a document is a new line and an indentation at most, in every form.
TEST(ConstraintTest, WhiteSpaceInStructuresEnds) {
  const char* schemas[] = {"{}", R"({"type":"object"})", R"({"type":"array","items":{"type":"array"}})",
                           R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}},
                               "b":{"type":"object"}},"required":["a","b"]})"};
  const Tokenizer tokenizer = tokenizer_for_test();
  std::mt19937 random(1);
  for (const char* schema : schemas) {
    Grammar grammar;
    GrammarConstraint constraint(token_grammar(grammar, parse_schema(schema, grammar)));
    int in_a_row = 0;
    // As much white space as is allowed; then something else, but no string.
    for (int n = 0; n < 3000 && !constraint.is_finished(); ++n) {
      const auto mask = constraint.mask();
      std::vector<int32_t> blank, other;
      for (int32_t id = 0; id < static_cast<int32_t>(mask.size() * 64); ++id) {
        const std::string_view text = vocabulary_for_test()->reading(id).text;
        if (!is_set(mask, id) || text.size() != 1) continue;
        if (text == " " || text == "\n" || text == "\t")
          blank.push_back(id);
        else
          other.push_back(id);
      }
      if (blank.empty()) {
        if (other.empty()) break;
        constraint.accept(other[random() % other.size()]);
        // Strings are text, not structure: they are closed at once.
        if (constraint.is_in_text()) {
          for (const int32_t id : constraint.completion(TokenConstraint::Part::inner)) constraint.accept(id);
        }
        in_a_row = 0;
        continue;
      }
      constraint.accept(blank[random() % blank.size()]);
      ASSERT_LE(++in_a_row, 82) << schema;  // before a closing bracket, behind an opening one
    }
  }
}

TEST(ConstraintTest, HostileGrammarsAreRefused) {
  const auto refusal = [](const std::string& text, bool is_regex) -> std::string {
    Grammar grammar;
    auto root = is_regex ? parse_regex(text, grammar) : parse_gbnf(text, grammar);
    if (!root) return root.error().message;
    grammar.root = grammar.add_rule("the whole");
    grammar.define(grammar.root, *root);
    auto automaton = compile(grammar);
    return automaton ? "" : automaton.error().message;
  };
  const std::pair<const char*, const char*> grammars[] = {
      {"root ::= root \"a\" | \"b\"", "left recursion"},
      {"root ::= a\na ::= \"\" b\nb ::= root \"x\" | \"y\"", "left recursion"},
      {"root ::= a", "rule a is used but not defined"},
      {"a ::= \"x\"", "expected a rule named root"},
      {"root ::= \"a", "without its closing"},
      {"root ::= [a", "without its closing"},
      {"root ::= (\"a\"", "expected )"},
      {"root ::= \"a\" )", "expected the end of rule root"},
      {"root ::= \"a\"{3,2}", "smallest number"},
      {"root ::= \"a\"{1,9999999}", "more than 1000000"},
      {"root ::= \"a\" root", "no text that fits"},
      {"root ::= (a?){5000}\na ::= root", "may be empty"},
      {"root ::= \"\\q\"", "unknown escape"},
      {"root ::= \"a\"\nroot ::= \"b\"", "defined twice"},
  };
  for (const auto& [text, expected] : grammars) {
    EXPECT_NE(refusal(text, false).find(expected), std::string::npos) << text << " -> " << refusal(text, false);
  }
  const std::pair<const char*, const char*> regexes[] = {
      {"(a|b)*a(a|b){24}", "too large"},
      {"a**", "two repetitions"},
      {"*a", "repetition of nothing"},
      {"(a", "without its )"},
      {"a)", "unmatched )"},
      {"[z-a]", "a range whose end"},
      {"\\bx", "\\b, which"},
      {"(?<!a)b", "looks around"},
      {"a^b", "^, which is understood"},
      {"(a$)", "$ in a group"},
      {"\\1", "\\1, which"},
      {"a{2000000}", "more than"},
  };
  for (const auto& [text, expected] : regexes) {
    EXPECT_NE(refusal(text, true).find(expected), std::string::npos) << text << " -> " << refusal(text, true);
  }
}

}  // namespace
}  // namespace chimere::grammar
