// scoreboard_test.cpp  Figures against ones that were worked out by hand.
#include "odo/routing/scoreboard.h"

#include <gtest/gtest.h>

namespace chimere::odo {
namespace {

TEST(Scoreboard, CountsWhatIsRight) {
  // Three of route 0, one of them taken for 1; two of route 1, both right. Route 2 is nowhere.
  const std::vector<JudgedChoice> choices = {
      {0, 0, 0.9, 1}, {0, 0, 0.9, 2}, {0, 1, 0.9, 3}, {1, 1, 0.9, 4}, {1, 1, 0.9, 100}};
  const Scoreboard board = score_choices(choices, 3);
  EXPECT_NEAR(board.accuracy.value, 0.8, 1e-12);
  EXPECT_NEAR(board.f1[0], 0.8, 1e-12);  // 2 * 2 / (3 + 2)
  EXPECT_NEAR(board.f1[1], 0.8, 1e-12);  // 2 * 2 / (2 + 3)
  EXPECT_NEAR(board.macro_f1.value, 0.8, 1e-12);
  EXPECT_EQ(board.confusion[0][1], 1);
  EXPECT_NEAR(board.calibration_error, 0.1, 1e-12);
  EXPECT_EQ(board.median_ms, 3);
  EXPECT_EQ(board.p99_ms, 100);
  EXPECT_LT(board.accuracy.low, 0.8);
  EXPECT_GT(board.accuracy.high, 0.8);
}

TEST(Scoreboard, IntervalsNarrowWithMoreChoices) {
  std::vector<JudgedChoice> few, many;
  for (size_t i = 0; i < 4000; ++i) {
    const JudgedChoice choice{i % 2, i % 10 == 0 ? 1 - i % 2 : i % 2, 0.9, 1};
    if (i < 40) few.push_back(choice);
    many.push_back(choice);
  }
  const Figure a = score_choices(few, 2, 200).accuracy, b = score_choices(many, 2, 200).accuracy;
  EXPECT_GT(a.high - a.low, 4 * (b.high - b.low));
  // Twice the standard error of 0.9 in 4000, and some room.
  EXPECT_NEAR(b.high - b.low, 4 * 0.00474, 0.006);
  EXPECT_LE(b.low, 0.9);
  EXPECT_GE(b.high, 0.9);
}

}  // namespace
}  // namespace chimere::odo
