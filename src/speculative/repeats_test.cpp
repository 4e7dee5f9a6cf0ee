#include "speculative/repeats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace chimere::speculative {
namespace {

std::vector<int32_t> ids_of(const std::vector<Guess>& guesses) {
  std::vector<int32_t> ids;
  for (const Guess& g : guesses) ids.push_back(g.id);
  return ids;
}

std::vector<Guess> guesses_behind(Repeats& source, const std::vector<int32_t>& tokens, int most) {
  std::vector<Guess> guesses;
  source.propose(tokens, most, guesses);
  return guesses;
}

TEST(Repeats, GuessesWhatFollowedBefore) {
  Repeats source;
  const std::vector<Guess> guesses = guesses_behind(source, {1, 2, 3, 4, 5, 6, 9, 1, 2, 3}, 3);
  EXPECT_EQ(ids_of(guesses), (std::vector<int32_t>{4, 5, 6}));
  EXPECT_EQ(source.match_length(), 3);
  // Each guess that was right makes the next one surer.
  EXPECT_EQ(guesses[0].kind, repeat_kind(3));
  EXPECT_EQ(guesses[2].kind, repeat_kind(5));
}

TEST(Repeats, SaysNothingBehindNewOrShortText) {
  Repeats source;
  EXPECT_TRUE(guesses_behind(source, {}, 4).empty());
  EXPECT_TRUE(guesses_behind(source, {1}, 4).empty());
  EXPECT_TRUE(guesses_behind(source, {1, 2, 3, 4, 3}, 4).empty()) << "one token is chance";
  EXPECT_EQ(source.match_length(), 0);
}

TEST(Repeats, PrefersTheLongestThenTheLatest) {
  Repeats source;
  // 7 8 9 stands in three places; before the first of them stood the 5 that stands before the last.
  EXPECT_EQ(ids_of(guesses_behind(source, {5, 7, 8, 9, 1, 6, 7, 8, 9, 2, 5, 7, 8, 9}, 1)), std::vector<int32_t>{1});
  Repeats other;
  EXPECT_EQ(ids_of(guesses_behind(other, {5, 7, 8, 9, 1, 6, 7, 8, 9, 2, 4, 7, 8, 9}, 1)), std::vector<int32_t>{2});
}

TEST(Repeats, GoesRoundWithATextThatDoes) {
  Repeats source;
  EXPECT_EQ(ids_of(guesses_behind(source, {1, 2, 3, 1, 2, 3}, 8)), (std::vector<int32_t>{1, 2, 3, 1, 2, 3, 1, 2}));
}

TEST(Repeats, PutsItsGuessesBehindOthers) {
  Repeats source;
  std::vector<Guess> guesses{{42, kForced}};
  source.propose(std::vector<int32_t>{1, 2, 1, 2}, 3, guesses);
  EXPECT_EQ(ids_of(guesses), (std::vector<int32_t>{42, 1, 2, 1}));
}

TEST(Repeats, ACloneGoesOnByItself) {
  Repeats source;
  std::vector<int32_t> tokens{1, 2, 3, 4, 1, 2};
  guesses_behind(source, tokens, 1);
  const std::unique_ptr<DraftSource> clone = source.clone();
  std::vector<int32_t> other = tokens;
  tokens.push_back(3);
  other.push_back(9);
  EXPECT_EQ(ids_of(guesses_behind(source, tokens, 1)), std::vector<int32_t>{4});
  std::vector<Guess> guesses;
  clone->propose(other, 1, guesses);
  EXPECT_TRUE(guesses.empty());
}

// The kinds cover all lengths, in order.
TEST(Repeats, LongerMatchesAreNeverOfALesserKind) {
  EXPECT_EQ(repeat_kind(2), kFirstRepeat);
  for (int n = 3; n < 200; ++n) {
    EXPECT_GE(repeat_kind(n), repeat_kind(n - 1));
    EXPECT_LT(repeat_kind(n), kFirstOwn);
  }
}

// Against a search of the whole text, token by token and in leaps, as drafts that were taken bring several at once.
TEST(Repeats, FindsWhatASearchOfTheWholeTextFinds) {
  std::mt19937 random(7);
  for (int n_ids : {3, 12, 400}) {
    Repeats source;
    std::vector<int32_t> tokens;
    int n_found = 0;
    while (tokens.size() < 1500) {
      for (unsigned n = 1 + random() % 4; n > 0; --n) {
        const bool repeats = tokens.size() > 40 && random() % 8 != 0;
        const size_t lag = 17 + tokens.size() / 300;
        tokens.push_back(repeats ? tokens[tokens.size() - lag] : static_cast<int32_t>(random() % n_ids));
      }
      const std::vector<Guess> guesses = guesses_behind(source, tokens, 2);
      int longest = 0;
      for (size_t place = 1; place < tokens.size(); ++place) {
        int n = 0;
        while (n < kMaxMatch && n < static_cast<int>(place) && tokens[place - 1 - n] == tokens[tokens.size() - 1 - n])
          ++n;
        longest = std::max(longest, n);
      }
      if (longest < kMinMatch) {
        ASSERT_TRUE(guesses.empty());
      }
      if (guesses.empty()) continue;
      ++n_found;
      // What it says is true, and with many different tokens, where chains are short, it is the best that can be said.
      ASSERT_GE(source.match_length(), kMinMatch);
      ASSERT_LE(source.match_length(), longest);
      if (n_ids == 400) {
        ASSERT_EQ(source.match_length(), longest) << tokens.size();
      }
      ASSERT_EQ(guesses[0].kind, repeat_kind(source.match_length()));
    }
    EXPECT_GT(n_found, 100);
  }
}

}  // namespace
}  // namespace chimere::speculative
