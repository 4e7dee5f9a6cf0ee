#include "speculative/draft_times.h"

#include <gtest/gtest.h>

namespace chimere::speculative {
namespace {

TEST(DraftTimes, SayWhatDraftsCostAndBrought) {
  DraftTimes times;
  EXPECT_EQ(times.share(), 0) << "nothing ran";
  EXPECT_EQ(times.gain(), 1);
  times.add({10, 2, 7});
  EXPECT_DOUBLE_EQ(times.share(), 0.2);
  EXPECT_DOUBLE_EQ(times.gain(), 1.5) << "8 seconds without drafts gave what 15 would have";
  times.add({10, 3, 0});
  EXPECT_DOUBLE_EQ(times.share(), 0.25);
  EXPECT_DOUBLE_EQ(times.gain(), 1.1);
}

}  // namespace
}  // namespace chimere::speculative
