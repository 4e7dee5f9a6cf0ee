// engram_guesses_test.cpp  Guesses from tables: what stood there, with the length of what it follows.
#include "speculative/engram_guesses.h"

#include <gtest/gtest.h>

#include "engram/text_ngrams.h"

namespace chimere::speculative {
namespace {

std::shared_ptr<engram::TextNgrams> text(std::vector<int32_t> tokens, float weight = 1) {
  auto ngrams = std::make_shared<engram::TextNgrams>();
  ngrams->add(tokens, weight);
  return ngrams;
}

std::vector<Guess> guesses_of(EngramGuesses& source, std::vector<int32_t> tokens, int most = 15) {
  std::vector<Guess> guesses;
  source.propose(tokens, most, guesses);
  return guesses;
}

TEST(EngramGuesses, GoOnWithWhatStoodThere) {
  EngramGuesses source({text({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})});
  const std::vector<Guess> behind_two = guesses_of(source, {90, 1, 2}, 3);
  EXPECT_EQ(behind_two, (std::vector<Guess>{{3, engram_kind(2)}, {4, engram_kind(3)}, {5, engram_kind(4)}}));
  const std::vector<Guess> whole = guesses_of(source, {1, 2, 3});
  ASSERT_EQ(whole.size(), 9u) << "to the end of the text";
  EXPECT_EQ(whole.front().kind, engram_kind(3));
  EXPECT_EQ(whole.back(), (Guess{12, engram_kind(8)})) << "a longer key than eight tokens is as one of eight";
  EXPECT_TRUE(guesses_of(source, {90, 91, 2}).empty()) << "one token is chance";
  EXPECT_TRUE(guesses_of(source, {}).empty());
  EXPECT_TRUE(guesses_of(source, {1, 2, 3}, 0).empty());
}

TEST(EngramGuesses, TheLongestKeySpeaksAndOnlyIfItIsSure) {
  EngramGuesses both({text({5, 2, 3, 30}), text({4, 1, 2, 3, 40})});
  EXPECT_EQ(guesses_of(both, {4, 1, 2, 3}).front(), (Guess{40, engram_kind(4)}));
  EXPECT_EQ(guesses_of(both, {9, 2, 3}).front(), (Guess{30, engram_kind(2)})) << "of equal ones the first";
  EngramGuesses torn({text({1, 2, 3, 60, 1, 2, 3, 61, 1, 2, 3, 62})});
  EXPECT_TRUE(guesses_of(torn, {1, 2, 3}).empty());
}

TEST(EngramGuesses, ACloneSaysTheSame) {
  EngramGuesses source({text({1, 2, 3, 4, 5})});
  const std::unique_ptr<DraftSource> clone = source.clone();
  std::vector<Guess> guesses;
  clone->propose(std::vector<int32_t>{1, 2}, 15, guesses);
  EXPECT_EQ(guesses, guesses_of(source, {1, 2}));
}

}  // namespace
}  // namespace chimere::speculative
