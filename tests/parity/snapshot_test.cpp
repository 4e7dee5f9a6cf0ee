// Snapshots of a sequence: whoever starts from one goes on as the sequence did, to the last bit.
#include "exactness.h"

namespace chimere::parity {
namespace {

class Snapshots : public HybridTest {};

TEST_P(Snapshots, EachContinuesAsTheStraightRun) {
  constexpr int kAhead = 5;
  const int prompt = many_or_few(50, 17), n_steps = many_or_few(30, 1);
  const ExecutablePtr e = compile(1);
  ASSERT_TRUE(e);
  Sequence straight = new_sequence(*e);
  go_on(*e, straight, prompt);
  std::vector<Snapshot> kept;
  std::vector<float> expected;
  for (int at = 0; at < n_steps + kAhead; ++at) {
    auto snapshot = straight.snapshot();
    ASSERT_TRUE(snapshot);
    kept.push_back(*snapshot);
    append_rows(expected, go_on(*e, straight, 1));
  }
  Sequence again = new_sequence(*e);
  for (int at = n_steps - 1; at >= 0; --at) {
    ASSERT_TRUE(again.restore(kept[at]));
    ASSERT_EQ(again.length(), prompt + at);
    ASSERT_TRUE(same_logits(run_in_slices(*e, again, prompt + at, prompt + at + kAhead, 1), rows(expected, at, kAhead)))
        << "at " << at;
    // A draft from a snapshot goes back to it.
    ASSERT_TRUE(again.restore(kept[at]));
    EXPECT_EQ(again.rollback_reach(), 0);
    step(*e, {Part::draft(&again, text(prompt + at + 7, 4))});
    ASSERT_TRUE(again.rollback(4));
    ASSERT_TRUE(same_logits(go_on(*e, again, 4), rows(expected, at, 4))) << "at " << at;
  }
}

// Two sequences that start from one snapshot write their own pages.
TEST_P(Snapshots, DoNotAliasWhenShared) {
  const ExecutablePtr e = compile(1);
  ASSERT_TRUE(e);
  const int n_steps = many_or_few(6, 1);
  for (int length : backend_under_test().is_emulated ? std::vector{17} : std::vector{37, 64, 100}) {
    Sequence first = new_sequence(*e);
    go_on(*e, first, length);
    auto snapshot = first.snapshot();
    ASSERT_TRUE(snapshot);
    Sequence a = new_sequence(*e), b = new_sequence(*e);
    ASSERT_TRUE(a.restore(*snapshot));
    ASSERT_TRUE(b.restore(*snapshot));
    // All three go on with texts of their own, in turns.
    std::vector<float> of_first, of_a, of_b;
    for (int i = 0; i < n_steps; ++i) {
      for (auto [s, out, script] : {std::tuple{&first, &of_first, 0}, {&a, &of_a, 1}, {&b, &of_b, 2}}) {
        append_rows(*out, go_on(*e, *s, 1, script));
      }
    }
    for (auto [out, script] : {std::pair{&of_first, 0}, {&of_a, 1}, {&of_b, 2}}) {
      Sequence alone = new_sequence(*e);
      go_on(*e, alone, length);
      std::vector<float> expected;
      for (int i = 0; i < n_steps; ++i) append_rows(expected, go_on(*e, alone, 1, script));
      EXPECT_TRUE(same_logits(*out, expected)) << "length " << length << ", script " << script;
    }
    // Nor did the snapshot change.
    Sequence late = new_sequence(*e);
    ASSERT_TRUE(late.restore(*snapshot));
    EXPECT_TRUE(same_logits(go_on(*e, late, 1), rows(of_first, 0, 1)));
  }
}

TEST_P(Snapshots, ContinueExactlyAfterSerializing) {
  const ExecutablePtr e = compile(2), other = compile(3);
  ASSERT_TRUE(e && other);
  for (int length : backend_under_test().is_emulated ? std::vector{18} : std::vector{0, 1, 63, 64, 65, 130}) {
    Sequence s = new_sequence(*e);
    if (length > 0) go_on(*e, s, length);
    auto snapshot = s.snapshot();
    ASSERT_TRUE(snapshot);
    auto bytes = serialize(*snapshot, *e, 77);
    ASSERT_TRUE(bytes);
    auto parsed = parse_snapshot(*bytes, *other, 77);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*serialize(*parsed, *other, 77), *bytes);
    Sequence t = new_sequence(*other);
    ASSERT_TRUE(t.restore(*parsed));
    EXPECT_EQ(t.length(), length);
    EXPECT_TRUE(same_logits(go_on(*other, t, 9), go_on(*e, s, 9))) << length;
    const auto foreign = parse_snapshot(*bytes, *e, 78);
    ASSERT_FALSE(foreign);
    EXPECT_NE(foreign.error().message.find("key"), std::string::npos) << foreign.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Kv, Snapshots, testing::ValuesIn(variants()), variant_name);

}  // namespace
}  // namespace chimere::parity
