#include "retrieval/matcher.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "retrieval/matcher_file_for_test.h"
#include "retrieval/search_terms.h"

namespace chimere::retrieval {
namespace {

constexpr const char* kShippedMatcher = CHIMERE_TESTS_DIR "/../assets/chimere-matcher.gguf";

Result<Matcher> matcher_of(const fixture::MatcherParts& parts) {
  const std::vector<std::byte> bytes = fixture::matcher_bytes(parts);
  TRY_ASSIGN(const gguf::File file, gguf::File::parse(bytes));
  return Matcher::of(file);
}

std::vector<std::string> stems_of(store::Stemmer& stemmer, std::string_view text) {
  std::vector<std::string> stems;
  EXPECT_TRUE(stemmer.each(text, [&](std::string_view stem) { stems.emplace_back(stem); }));
  return stems;
}

Matcher::Text text_of(const Matcher& matcher, const MatchQuestion& question, store::Stemmer& stemmer,
                      std::string_view text, double points) {
  Matcher::Text read{{}, points};
  for (const std::string& stem : stems_of(stemmer, text)) {
    const auto asked = question.numbers.find(stem);
    read.words.push_back({asked == question.numbers.end() ? -1 : asked->second, matcher.vector_of(stem)});
  }
  return read;
}

TEST(Stemmer, GivesTheWordsOfAnIndex) {
  auto stemmer = store::Stemmer::open();
  ASSERT_TRUE(stemmer) << stemmer.error().message;
  EXPECT_EQ(stems_of(*stemmer, "Caf\u00e9s, running kings' RELATIONAL 12"),
            (std::vector<std::string>{"cafe", "run", "king", "relat", "12"}));
  EXPECT_TRUE(stems_of(*stemmer, "").empty());
  EXPECT_TRUE(stems_of(*stemmer, " .,\xff ").empty());
}

TEST(Matcher, CountsWordsCloseTogether) {
  auto stemmer = store::Stemmer::open();
  ASSERT_TRUE(stemmer);
  const auto question = MatchQuestion::of("Who saw the old king?", {"saw", "old", "king"}, {1, 2, 4}, *stemmer);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->kind, 1u);
  EXPECT_EQ(question->asked.size(), 5u);
  const auto words = [&](std::string_view text) {
    std::vector<MatchedWord> found;
    for (const std::string& stem : stems_of(*stemmer, text)) {
      const auto asked = question->numbers.find(stem);
      found.push_back({asked == question->numbers.end() ? -1 : asked->second, -1});
    }
    return found;
  };
  const auto row = word_features(*question, words("Nobody saw the old king."), 3);
  EXPECT_FLOAT_EQ(row[0], 3);
  EXPECT_FLOAT_EQ(row[1], 7);
  EXPECT_NEAR(row[2], 1, 1e-5);
  EXPECT_FLOAT_EQ(row[3], 1);
  EXPECT_FLOAT_EQ(row[5], 7) << "all within six words";
  EXPECT_FLOAT_EQ(row[17], 9) << "saw the, the old, old king: 1 + 2 + 2 + 4";
  EXPECT_FLOAT_EQ(row[18], 9) << "saw the old, the old king: 1 + 2 + 2 + 4";
  EXPECT_FLOAT_EQ(row[19], 9) << "saw before old, old before king";
  EXPECT_FLOAT_EQ(row[21], 0.2f);
  const auto apart = word_features(*question, words("king a b c d e f g h i saw j k l m n o p q r s old"), 3);
  EXPECT_FLOAT_EQ(apart[5], 4);
  EXPECT_FLOAT_EQ(apart[17], 0);
  EXPECT_FLOAT_EQ(apart[20], 0);
  const auto none = word_features(*question, {}, 0);
  EXPECT_FLOAT_EQ(none[21], 1);
  EXPECT_FLOAT_EQ(none[22], 0.5f);
}

TEST(Matcher, ALongQuestionKeepsItsRarestWords) {
  auto stemmer = store::Stemmer::open();
  ASSERT_TRUE(stemmer);
  std::vector<std::string> terms;
  std::vector<double> rarity;
  std::string question;
  for (int i = 0; i < 60; ++i) {
    terms.push_back("w" + std::to_string(i));
    rarity.push_back(i);
    question += terms.back() + " and ";
  }
  const auto made = MatchQuestion::of(question, terms, rarity, *stemmer);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->asked.size(), 64u);
  ASSERT_EQ(made->rarity.size(), 16u);
  EXPECT_EQ(made->rarity.front(), 44);
  EXPECT_EQ(made->kind, kQuestionKinds - 1);
}

TEST(Matcher, RarityIsThatOfBm25) {
  EXPECT_NEAR(rarity_of_word(100, 3), std::log(97.5 / 3.5), 1e-12);
  EXPECT_EQ(rarity_of_word(100, 100), 1e-6);
  EXPECT_EQ(rarity_of_word(0, 12'000), 1e-6) << "more than there are";
}

// training/tests/test_matcher.py has the same question, texts, points and scores.
TEST(Matcher, ScoresAsTrainingDoes) {
  auto matcher = Matcher::open(kShippedMatcher);
  ASSERT_TRUE(matcher) << matcher.error().message;
  auto stemmer = store::Stemmer::open();
  ASSERT_TRUE(stemmer);
  const std::vector<double> n_with = {3, 20, 9, 2};
  std::vector<double> rarity;
  for (const double n : n_with) rarity.push_back(rarity_of_word(100, n));
  const auto question =
      MatchQuestion::of("Why did the widow call her son a thief?", {"widow", "call", "son", "thief"}, rarity, *stemmer);
  ASSERT_TRUE(question);
  const std::pair<const char*, double> given[] = {
      {"The widow wept all day. \"My son,\" she said, \"is a thief, for he took the golden goose of the king.\"", 6.5},
      {"The king had a son, and the son had a goose. Nobody called him anything.", 2.25},
      {"Because of the rain the road was closed, and the old woman cried that her boy had stolen the bread.", 0},
      {"", 0}};
  const float expected[] = {2.6774f, -3.9105f, -9.2818f, -6.8591f};
  std::vector<Matcher::Text> texts;
  for (const auto& [text, points] : given) texts.push_back(text_of(*matcher, *question, *stemmer, text, points));
  const std::vector<float> scores = matcher->scores(*question, texts);
  ASSERT_EQ(scores.size(), 4u);
  for (size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], expected[i], 2e-3) << i;
  EXPECT_EQ(matcher->scores(*question, texts), scores) << "the same each time";
  EXPECT_TRUE(matcher->scores(*question, {}).empty());
}

TEST(Matcher, NearWordsCountByTheirVectors) {
  fixture::MatcherParts parts = fixture::matcher_parts(0);
  parts.tensors["direct"].second[81] = 1;  // the best window of the smallest scale
  auto matcher = matcher_of(parts);
  ASSERT_TRUE(matcher) << matcher.error().message;
  auto stemmer = store::Stemmer::open();
  ASSERT_TRUE(stemmer);
  const auto question = MatchQuestion::of("the king", {"king"}, {2}, *stemmer);
  ASSERT_TRUE(question);
  std::vector<Matcher::Text> texts;
  for (const char* text : {"a king", "a queen", "a table"})
    texts.push_back(text_of(*matcher, *question, *stemmer, text, 0));
  const std::vector<float> scores = matcher->scores(*question, texts);
  EXPECT_NEAR(scores[0], 0.25 * (0.8 + 0.65 + 0.5 + 0.35 + 0.2), 1e-5);
  EXPECT_NEAR(scores[1], 0.25 * (0.56 + 0.41 + 0.26 + 0.11), 1e-5) << "a cosine of 0.8, of which 0.95";
  EXPECT_EQ(scores[2], 0);
}

TEST(Matcher, RefusesFilesThatAreNone) {
  const auto refusal = [](const std::function<void(fixture::MatcherParts&)>& change) {
    fixture::MatcherParts parts = fixture::matcher_parts();
    change(parts);
    const auto matcher = matcher_of(parts);
    return matcher ? std::string("accepted") : matcher.error().message;
  };
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  EXPECT_EQ(refusal([](auto& parts) { parts.architecture = "bert"; }),
            "memory: expected a matcher ('chimere-matcher'), found 'bert'");
  EXPECT_NE(refusal([](auto& parts) { parts.version = 2; }), "accepted");
  EXPECT_NE(refusal([](auto& parts) { parts.power = -1; }), "accepted");
  EXPECT_NE(refusal([](auto& parts) { parts.cosine_weight = 1e9; }), "accepted");
  EXPECT_EQ(refusal([](auto& parts) { parts.stems[1] = "king"; }),
            "memory: stem 1: expected one of 1 to 80 bytes that is not there twice");
  EXPECT_NE(refusal([](auto& parts) { parts.stems[1].assign(81, 'a'); }), "accepted");
  EXPECT_EQ(refusal([](auto& parts) { parts.stems.push_back("third"); }),
            "memory: tensor 'vectors': expected 3 rows of 32, found 2 of 32");
  EXPECT_EQ(refusal([](auto& parts) { parts.tensors.erase("steps"); }), "memory: tensor 'steps': expected, found none");
  EXPECT_NE(refusal([](auto& parts) { parts.tensors["output"].first = {1, 2, 1, 1}; }), "accepted");
  EXPECT_EQ(refusal([](auto& parts) { parts.tensors["direct"].second[7] = std::nanf(""); }),
            "memory: tensor 'direct': expected finite numbers");
}

}  // namespace
}  // namespace chimere::retrieval
