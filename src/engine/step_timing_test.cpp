// step_timing_test.cpp  What steps cost is timed for every number of rows, and quickly where somebody waits.
#include "engine/step_timing.h"

#include <gtest/gtest.h>

#include "models/fixture_for_test.h"

namespace chimere::engine {
namespace {

TEST(StepTiming, EndsAfterOneRoundOfAllRowsWhereSomebodyWaits) {
  const auto model =
      fixture::load(fixture::kept("qwen3_5-A"), models::BackendKind::cpu, false, {DType::F16, DType::F16, false}, 1);
  ASSERT_TRUE(model);
  const auto asked_by = [&](bool waits, const auto& timed) {
    int n_asked = 0;
    const auto costs = timed([&] {
      ++n_asked;
      return waits;
    });
    EXPECT_TRUE(costs);
    for (const int rows : {1, 2, 4, 8, 16}) EXPECT_GT(costs->step(rows), 0) << rows;
    return n_asked;
  };
  const auto steps = [&](const InAHurry& hurry) {
    auto costs = time_steps(*model, false, hurry);
    EXPECT_TRUE(costs);
    return costs ? std::make_optional(*costs) : std::nullopt;
  };
  EXPECT_EQ(asked_by(true, steps), 1);
  // A round takes a few milliseconds of processor time and many fit into a quarter of a second.
  EXPECT_GT(asked_by(false, steps), 1);
}

}  // namespace
}  // namespace chimere::engine
