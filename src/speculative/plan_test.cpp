#include "speculative/plan.h"

#include <gtest/gtest.h>

#include "speculative/acceptance.h"

namespace chimere::speculative {
namespace {

// A machine bound by memory, where more rows cost little; and one bound by arithmetic (the model in the box on two
// cores).
StepCosts cheap_rows() { return StepCosts({{1, 40e-3}, {2, 42e-3}, {16, 70e-3}}); }
StepCosts dear_rows() { return StepCosts({{1, 0.49e-3}, {2, 0.78e-3}, {4, 1.42e-3}, {8, 2.5e-3}, {16, 5e-3}}); }

TEST(Plan, DraftsAsFarAsItPays) {
  const std::vector<Chances> good{Chances(15, 0.8f)}, bad{Chances(15, 0.1f)}, sure{Chances(15, 0.99f)};
  const int depth = plan_depths(cheap_rows(), 1, 16, good)[0];
  EXPECT_GE(depth, 3);
  EXPECT_LE(depth, 12);
  EXPECT_EQ(plan_depths(dear_rows(), 1, 16, good)[0], 1) << "1.8 tokens in 1.6 times the time";
  EXPECT_GE(plan_depths(dear_rows(), 1, 16, sure)[0], 3);
  EXPECT_EQ(plan_depths(cheap_rows(), 1, 16, bad)[0], 0) << "a tenth of a token for a twentieth of the time";
  EXPECT_EQ(plan_depths(dear_rows(), 1, 16, bad)[0], 0);
  EXPECT_EQ(plan_depths(cheap_rows(), 1, 4, sure)[0], 3) << "rows are bounded";
  EXPECT_EQ(plan_depths(cheap_rows(), 1, 1, sure)[0], 0);
  EXPECT_TRUE(plan_depths(cheap_rows(), 1, 16, {}).empty());
  EXPECT_EQ(plan_depths(cheap_rows(), 1, 16, std::vector<Chances>{{}})[0], 0);
}

// The best of all depths, one by one.
TEST(Plan, IsTheBestOfAllDepths) {
  for (const StepCosts& costs : {cheap_rows(), dear_rows()}) {
    for (float chance = 0.05f; chance < 1; chance += 0.05f) {
      const int depth = plan_depths(costs, 1, 16, std::vector<Chances>{Chances(15, chance)})[0];
      const auto speed = [&](int d) {
        double tokens = 1, next = chance;
        for (int i = 0; i < d; ++i, next *= chance) tokens += next;
        return tokens / costs.step(1 + d);
      };
      for (int d = 0; d <= 15; ++d) EXPECT_GE(speed(depth) * 1.1001, speed(d)) << chance << ": " << depth << ", " << d;
      if (depth > 0) {
        EXPECT_GT(speed(depth), speed(0));
      }
    }
  }
}

TEST(Plan, TheSurestAnswersComeFirst) {
  const std::vector<Chances> chances{{0.5f, 0.5f}, {0.99f, 0.99f, 0.99f}, {}, {0.9f}};
  const std::vector<int> depths = plan_depths(cheap_rows(), 4, 8, chances);
  EXPECT_EQ(depths, (std::vector<int>{0, 3, 0, 1}));
}

TEST(Plan, BacksOffUnderLoad) {
  // Up to 16 rows cost almost nothing more, beyond them each costs as much as the first.
  const StepCosts costs({{1, 10e-3}, {16, 11e-3}, {32, 180e-3}});
  const std::vector<Chances> one{Chances(8, 0.7f)};
  EXPECT_GT(plan_depths(costs, 1, 64, one)[0], 3);
  const std::vector<Chances> many(16, Chances(8, 0.7f));
  for (int depth : plan_depths(costs, 16, 64, many)) EXPECT_EQ(depth, 0);
}

TEST(Plan, GoingBackHasItsPrice) {
  const std::vector<StepCosts::Point> points{{1, 40e-3}, {2, 42e-3}, {16, 70e-3}};
  const std::vector<Chances> half{Chances(8, 0.5f)};
  EXPECT_GT(plan_depths(StepCosts(points), 1, 16, half)[0], 0);
  EXPECT_EQ(plan_depths(StepCosts(points, 0, 100e-3), 1, 16, half)[0], 0);
  EXPECT_EQ(plan_depths(StepCosts(points, 100e-3), 1, 16, half)[0], 0);
}

// Whatever depths are chosen for sure guesses, it was known that there are some; where there is nothing to look for, the
// surest give none.
TEST(Plan, KnowsWhereNoGuessCouldPay) {
  const std::vector<StepCosts::Point> nano{{1, 0.27e-3}, {2, 0.43e-3}, {4, 0.85e-3}, {8, 1.5e-3}, {16, 2.58e-3}};
  const StepCosts on_cpu(nano, 0.01e-3, 0.03e-3), dear_to_open(nano, 1),
      flat_then_steep({{1, 1.0}, {16, 1.1}, {32, 17.1}});
  EXPECT_TRUE(could_pay(on_cpu, 1, 1, 512, 15));
  EXPECT_TRUE(could_pay(on_cpu, 4, 4, 512, 15));
  EXPECT_FALSE(could_pay(on_cpu, 32, 32, 512, 15)) << "a row costs there what it brings";
  EXPECT_FALSE(could_pay(on_cpu, 1, 1, 1, 15)) << "no room";
  EXPECT_FALSE(could_pay(dear_to_open, 1, 1, 512, 15));
  EXPECT_TRUE(could_pay(flat_then_steep, 4, 4, 512, 15));
  EXPECT_FALSE(could_pay(flat_then_steep, 16, 16, 512, 15));
  for (const StepCosts& costs : {on_cpu, flat_then_steep, cheap_rows(), dear_rows()}) {
    for (const int n : {1, 2, 3, 5, 8, 12, 16, 24, 32}) {
      for (const int most_each : {1, 4, 15}) {
        for (const float chance : {0.7f, 0.9f, 0.99f}) {
          const auto answers = static_cast<size_t>(n);
          const std::vector<Chances> chances(answers, Chances(static_cast<size_t>(most_each), chance));
          int deepest = 0;
          for (const int depth : plan_depths(costs, n, 96, chances)) deepest = std::max(deepest, depth);
          if (deepest == 0) continue;
          EXPECT_TRUE(could_pay(costs, n, n, 96, most_each)) << n << " answers, " << most_each << ", " << chance;
        }
      }
    }
  }
}

// Of one answer, against all depths; and others share its passes.
TEST(Plan, PassesHaveTheirPrice) {
  const StepCosts costs = cheap_rows(), cheap({{1, 1e-3}, {16, 2e-3}}), dear({{1, 30e-3}, {16, 31e-3}});
  const auto depth_of = [&](const StepCosts& pass, float chance) {
    const DraftPasses passes{{&pass}};
    return plan_depths(costs, 1, 16, std::vector<Chances>{Chances(15, chance)}, &passes)[0];
  };
  for (const StepCosts& pass : {cheap, dear}) {
    for (float chance = 0.05f; chance < 1; chance += 0.05f) {
      const int depth = depth_of(pass, chance);
      const auto speed = [&](int d) {
        double tokens = 1, next = chance, seconds = costs.step(1 + d);
        for (int i = 0; i < d; ++i, next *= chance) {
          tokens += next;
          seconds += pass.step(i == 0 ? 2 : 1);
        }
        return tokens / seconds;
      };
      for (int d = 0; d <= 15; ++d) EXPECT_GE(speed(depth) * 1.1001, speed(d)) << chance << ": " << depth << ", " << d;
      if (depth > 0) {
        EXPECT_GT(speed(depth), speed(0));
      }
    }
  }
  EXPECT_GT(depth_of(cheap, 0.8f), depth_of(dear, 0.8f));
  double gain = 0;
  const DraftPasses one{{&cheap}};
  EXPECT_EQ(plan_depths(costs, 1, 2, std::vector<Chances>{{0.9f}}, &one, &gain)[0], 1);
  EXPECT_NEAR(gain, 1.9 / (costs.step(2) + cheap.step(2)) * costs.step(1), 1e-6);
  EXPECT_EQ(plan_depths(costs, 1, 2, std::vector<Chances>{{0.1f}}, &one, &gain)[0], 0);
  EXPECT_EQ(gain, 1);
  EXPECT_EQ(depth_of(dear, 0.6f), 0);
  // What is not worth a pass of its own goes along with one.
  const StepCosts flat({{1, 40e-3}, {16, 41e-3}}), pass({{1, 5e-3}, {16, 5.1e-3}});
  const DraftPasses shared{{&pass, &pass}};
  EXPECT_EQ(plan_depths(flat, 2, 16, std::vector<Chances>{{}, {0.4f}}, &shared), (std::vector<int>{0, 0}));
  EXPECT_EQ(plan_depths(flat, 2, 16, std::vector<Chances>{{0.95f}, {0.4f}}, &shared), (std::vector<int>{1, 1}));
  // An answer whose guesses come from elsewhere pays for none.
  const DraftPasses others{{nullptr}};
  const std::vector<Chances> free{Chances(15, 0.6f)};
  EXPECT_EQ(plan_depths(costs, 1, 16, free, &others), plan_depths(costs, 1, 16, free));
}

// All guesses of a block are made in one pass: the first pays for it, and blocks of others have their price, too.
TEST(Plan, ABlockIsPaidForOnce) {
  const StepCosts costs = cheap_rows(), block({{1, 10e-3}, {2, 16e-3}});
  constexpr double kGuess = 0.5e-3;
  const DraftPasses passes{{&block}, &block, kGuess};
  for (float chance = 0.05f; chance < 1; chance += 0.05f) {
    const int depth = plan_depths(costs, 1, 8, std::vector<Chances>{Chances(7, chance)}, &passes)[0];
    const auto speed = [&](int d) {
      double tokens = 1, next = chance;
      for (int i = 0; i < d; ++i, next *= chance) tokens += next;
      return tokens / (costs.step(1 + d) + (d > 0 ? block.step(1) + (d - 1) * kGuess : 0));
    };
    for (int d = 0; d <= 7; ++d) EXPECT_GE(speed(depth) * 1.1001, speed(d)) << chance << ": " << depth << ", " << d;
  }
  double gain = 0;
  const DraftPasses two{{&block, &block}, &block, kGuess};
  const auto depths = plan_depths(costs, 2, 6, std::vector<Chances>{{0.9f, 0.9f}, {0.9f, 0.9f}}, &two, &gain);
  EXPECT_EQ(depths, (std::vector<int>{2, 2}));
  EXPECT_NEAR(gain, (2 + 2 * 0.9 + 2 * 0.81) / 2 / (costs.step(6) + block.step(2) + 2 * kGuess) * costs.step(2), 1e-6);
}

TEST(StepCosts, AreStraightBetweenWhatWasMeasured) {
  const StepCosts costs({{1, 1.0}, {3, 2.0}, {5, 6.0}});
  EXPECT_DOUBLE_EQ(costs.step(1), 1);
  EXPECT_DOUBLE_EQ(costs.step(2), 1.5);
  EXPECT_DOUBLE_EQ(costs.step(3), 2);
  EXPECT_DOUBLE_EQ(costs.step(4), 4);
  EXPECT_DOUBLE_EQ(costs.step(7), 10);
  EXPECT_DOUBLE_EQ(StepCosts({{1, 2.0}}).step(4), 8) << "nothing is known: rows are dear";
  EXPECT_DOUBLE_EQ(StepCosts({{1, 2.0}, {2, 1.0}, {4, 3.0}}).step(2), 2) << "noise";
}

TEST(StepCosts, FollowWhatStepsTake) {
  StepCosts costs({{1, 1.0}, {8, 2.0}, {16, 6.0}});
  for (int i = 0; i < 600; ++i) costs.observe(1, 1.5);
  EXPECT_NEAR(costs.step(1), 1.5, 1e-2);
  EXPECT_NEAR(costs.step(8), 3.0, 5e-2) << "what did not occur moves along";
  EXPECT_NEAR(costs.step(16), 9.0, 2e-1);
  for (int i = 0; i < 100; ++i) costs.observe(8, 5.0);
  EXPECT_NEAR(costs.step(8), 5.0, 1e-1);
  EXPECT_NEAR(costs.step(1), 1.5, 1e-1) << "what occurred lately hardly does";
  for (int i = 0; i < 200; ++i) costs.observe(12, 6.0);
  EXPECT_NEAR(costs.step(12), 6.0, 1e-1) << "between what was timed";
  for (int i = 0; i < 300; ++i) costs.observe(40, 100.0);
  EXPECT_NEAR(costs.step(40), 100.0, 5.0) << "beyond it";
  const double before = costs.step(1);
  costs.observe(1, 1e6);
  EXPECT_LT(costs.step(1), before * 1.1) << "it was interrupted";
  for (int rows = 1; rows < 100; ++rows) EXPECT_GT(costs.step(rows), 0);
}

constexpr double kTrueMs[] = {0.49, 0.78, 1.42, 2.5, 5};
StepCosts true_costs() {
  return StepCosts({{1, kTrueMs[0]}, {2, kTrueMs[1]}, {4, kTrueMs[2]}, {8, kTrueMs[3]}, {16, kTrueMs[4]}});
}

// Timed while others had the machine, when all steps took as long as their turns: some steps later it is known.
TEST(StepCosts, RecoverFromABadBeginning) {
  StepCosts costs({{1, 7.0}, {2, 7.0}, {4, 7.1}, {8, 7.2}, {16, 7.3}});
  const StepCosts truth = true_costs();
  const std::vector<Chances> fair{Chances(15, 0.5f)};
  EXPECT_GT(plan_depths(costs, 1, 16, fair)[0], 3);
  int n_drafts = 0;
  for (int i = 0; i < 4000; ++i) {
    const int rows = 1 + plan_depths(costs, 1, 16, fair)[0];
    n_drafts += rows > 1;
    costs.observe(rows, truth.step(rows));
    costs.observe(1, truth.step(1));  // steps without a guess
  }
  EXPECT_LT(n_drafts, 400) << "tried again now and then";
}

// Steps of many rows were interrupted again and again, and nothing was drafted since: they are tried again.
TEST(StepCosts, ForgetWhatWasDear) {
  StepCosts costs = true_costs();
  const StepCosts truth = true_costs();
  const std::vector<Chances> sure{Chances(15, 0.97f)};
  ASSERT_GT(plan_depths(costs, 1, 16, sure)[0], 3);
  for (int rows = 2; rows <= 16; ++rows) {
    for (int i = 0; i < 60; ++i) {
      costs.observe(rows, 10 * truth.step(rows));
      costs.observe(1, truth.step(1));
    }
  }
  ASSERT_EQ(plan_depths(costs, 1, 16, sure)[0], 0);
  int n_steps = 0;
  while (plan_depths(costs, 1, 16, sure)[0] == 0 && n_steps < 5000) {
    costs.observe(1, truth.step(1));
    ++n_steps;
  }
  EXPECT_LT(n_steps, 2500);
}

TEST(Acceptance, GoesFromTheUsualToWhatWasSeen) {
  Acceptance all, mine(64, &all);
  const float usual = mine.chance(5);
  EXPECT_GT(usual, 0.1f);
  EXPECT_LT(usual, 0.9f);
  for (int i = 0; i < 50; ++i) all.learn(5, false);
  EXPECT_LT(mine.chance(5), 0.15f) << "others' experience";
  for (int i = 0; i < 50; ++i) mine.learn(5, true);
  EXPECT_GT(mine.chance(5), 0.8f) << "its own";
  EXPECT_FLOAT_EQ(mine.chance(6), Acceptance().chance(6)) << "kinds are apart";
  for (int i = 0; i < 100; ++i) mine.learn(5, false);
  EXPECT_LT(mine.chance(5), 0.4f) << "what was long ago fades";
}

TEST(Acceptance, StandsOnRequestsLikeItBeforeAllOthers) {
  Acceptance all(512), like_it(512, &all), mine(64, &like_it);
  for (int i = 0; i < 200; ++i) {
    all.learn(5, true);
    if (i % 4 != 0) continue;
    all.learn(5, false);
    like_it.learn(5, false);
  }
  EXPECT_GT(all.chance(5), 0.75f);
  EXPECT_LT(mine.chance(5), 0.2f) << "a form that repeats says little of prose";
}

TEST(Acceptance, IsCautiousUntilMuchWasSeen) {
  Acceptance mine(1000);
  EXPECT_LT(mine.cautious_chance(5), mine.chance(5) - 0.1f);
  for (int i = 0; i < 6; ++i) mine.learn(5, i > 0);
  const float after_few = mine.chance(5) - mine.cautious_chance(5);
  for (int i = 0; i < 600; ++i) mine.learn(5, i % 6 > 0);
  EXPECT_LT(mine.chance(5) - mine.cautious_chance(5), after_few / 4);
  EXPECT_NEAR(mine.cautious_chance(5), 5.0f / 6, 0.03f);
  EXPECT_FLOAT_EQ(mine.cautious_chance(kForced), mine.chance(kForced));
  for (int i = 0; i < 600; ++i) mine.learn(6, false);
  EXPECT_GE(mine.cautious_chance(6), 0.0f);
}

}  // namespace
}  // namespace chimere::speculative
