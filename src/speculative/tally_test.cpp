// tally_test.cpp  Every kind of guess belongs to one source, and is counted at its place.
#include "speculative/tally.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace chimere::speculative {
namespace {

TEST(Tally, KindsBelongToTheirSources) {
  EXPECT_EQ(source_of(kForced), Source::forced);
  EXPECT_EQ(source_of(kFirstRepeat), Source::text);
  EXPECT_EQ(source_of(kFirstOwn - 1), Source::text);
  EXPECT_EQ(source_of(kFirstOwn), Source::own);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(source_of(pass_kind(i)), Source::mtp) << i;
    EXPECT_EQ(source_of(engram_kind(i + kShortestEngram)), Source::engram) << i;
    EXPECT_EQ(source_of(draft_model_kind(i)), Source::draft_model) << i;
    EXPECT_EQ(source_of(dflash_kind(i)), Source::dflash) << i;
  }
  std::set<std::string> names;
  for (int kind = 0; kind < kKinds; ++kind) names.insert(name(source_of(static_cast<Kind>(kind))));
  EXPECT_EQ(names.size(), static_cast<size_t>(kSources));
}

TEST(Tally, CountsByPlace) {
  Tally tally;
  for (int place = 0; place < 3; ++place) tally.tried(engram_kind(4), place);
  tally.taken(engram_kind(4), 0);
  tally.tried(kForced, 99);
  EXPECT_EQ(tally.of(Source::engram)[0].taken, 1u);
  EXPECT_EQ(tally.of(Source::engram)[2].tried, 1u);
  EXPECT_EQ(tally.of(Source::engram)[2].taken, 0u);
  EXPECT_EQ(tally.total(Source::engram).tried, 3u);
  EXPECT_EQ(tally.total(Source::engram).taken, 1u);
  EXPECT_EQ(tally.of(Source::forced)[kPlaces - 1].tried, 1u);
  EXPECT_EQ(tally.total(Source::text).tried, 0u);
}

}  // namespace
}  // namespace chimere::speculative
