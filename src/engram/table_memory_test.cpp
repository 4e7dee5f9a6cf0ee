// table_memory_test.cpp  How tables become a share of the distribution, and drafts.
#include "engram/table_memory.h"

#include <cmath>

#include "engram/longest_match.h"
#include "engram/tables_for_test.h"

namespace chimere::engram {
namespace {

const Ids kSentence = {11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

double share(std::span<const MemoryEntry> entries, int32_t token) {
  double sum = 0;
  for (const MemoryEntry& entry : entries) {
    if (entry.id == token) sum += static_cast<double>(entry.probability) * static_cast<double>(entry.weight);
  }
  return sum;
}

double all(std::span<const MemoryEntry> entries) {
  double sum = 0;
  for (const MemoryEntry& entry : entries) {
    sum += static_cast<double>(entry.probability) * static_cast<double>(entry.weight);
  }
  return sum;
}

class TableMemoryTest : public TablesTest {
 protected:
  std::shared_ptr<const Table> table(const std::string& name, std::vector<Ids> texts) {
    EXPECT_TRUE(build_table(path(name), kTestShape, {lesson(name, std::move(texts))}));
    return open(path(name));
  }
};

TEST_F(TableMemoryTest, MoreAndSurerEvidenceClaimsMore) {
  const auto once = table("once.engram", {kSentence});
  const auto thrice = table("thrice.engram", {kSentence, kSentence, kSentence});
  Ids fork = kSentence;
  fork[8] = 99;
  const auto torn = table("torn.engram", {kSentence, fork, kSentence, fork});
  const auto claim = [](const std::shared_ptr<const Table>& t, const Ids& tokens, int32_t token) {
    TableMemory memory({{t, 1}}, {});
    return share(memory.expect(tokens, false), token);
  };
  const Ids key(kSentence.begin(), kSentence.begin() + 8);
  EXPECT_GT(claim(once, key, 19), 0);
  EXPECT_GT(claim(thrice, key, 19), claim(once, key, 19));
  EXPECT_GT(claim(thrice, key, 19), 0.5);  // three times is enough to change an answer
  EXPECT_LT(claim(torn, key, 19), claim(thrice, key, 19));
  EXPECT_GT(claim(thrice, key, 19), claim(thrice, {17, 18}, 19));
  EXPECT_EQ(claim(thrice, {18, 17}, 19), 0);
  EXPECT_EQ(claim(thrice, {}, 19), 0);
}

TEST_F(TableMemoryTest, NothingIsSaidWithoutAlphaOrInsideAThought) {
  const auto t = table("a.engram", {kSentence, kSentence});
  const Ids key(kSentence.begin(), kSentence.begin() + 6);
  EXPECT_TRUE(TableMemory({{t, 1}}, {.alpha = 0}).expect(key, false).empty());
  TableMemory answers({{t, 1}}, {});
  EXPECT_TRUE(answers.expect(key, true).empty());
  EXPECT_FALSE(answers.expect(key, false).empty());
  EXPECT_FALSE(TableMemory({{t, 1}}, {.in_thoughts = true}).expect(key, true).empty());
  TableMemory half({{t, 1}}, {.alpha = 0.5f}), full({{t, 1}}, {});
  EXPECT_NEAR(all(half.expect(key, false)), all(full.expect(key, false)) / 2, 1e-6);
}

TEST_F(TableMemoryTest, SeveralTablesClaimTogetherNeverTooMuch) {
  const auto a = table("a.engram", {kSentence, kSentence, kSentence, kSentence});
  Ids fork = kSentence;
  fork[8] = 99;
  const auto b = table("b.engram", {fork, fork, fork, fork});
  const Ids key(kSentence.begin(), kSentence.begin() + 8);
  TableMemory both({{a, 1}, {b, 1}}, {.alpha = 2}), first({{a, 1}, {b, 0}}, {.alpha = 2}),
      alone({{a, 1}}, {.alpha = 2});
  const auto entries = both.expect(key, false);
  EXPECT_NEAR(share(entries, 19), share(entries, 99), 1e-6);
  EXPECT_LE(all(entries), 1.0);
  EXPECT_GT(all(entries), all(alone.expect(key, false)) - 1e-6);
  EXPECT_NEAR(share(first.expect(key, false), 19), share(alone.expect(key, false), 19), 1e-6);
}

// Text where memory is wrong again and again turns it down; text where it is right keeps it up.
TEST_F(TableMemoryTest, ItsStandingFollowsWhatHappens) {
  const auto t = table("a.engram", {kSentence, kSentence, kSentence});
  const Ids key(kSentence.begin(), kSentence.begin() + 8);
  TableMemory right({{t, 1}}, {}), wrong({{t, 1}}, {});
  const double start = all(right.expect(key, false));
  for (int i = 0; i < 20; ++i) {
    right.expect(key, false);
    wrong.expect(key, false);
    Sampled good, bad;
    good.id = 19;
    bad.id = 500;
    good.logprob = bad.logprob = std::log(0.2f);
    good.entropy = bad.entropy = 2;
    right.accept(good);
    wrong.accept(bad);
  }
  EXPECT_LT(all(wrong.expect(key, false)), 0.25 * start);
  EXPECT_GE(all(right.expect(key, false)), 0.5 * start);
  const auto clone = wrong.clone();
  const double before = all(wrong.expect(key, false));
  EXPECT_EQ(all(clone->expect(key, false)), before);
}

// What the sampler makes of the entries is what mixed_logprob says: the sampled frequencies need no test here, the
// probabilities of a distribution of three tokens do.
TEST(MixedLogprob, IsTheMixtureOfTheSampler) {
  const std::vector<MemoryEntry> entries = {{0, 0.5f, 0.4f}, {0, 1.0f, 0.1f}, {2, 0.5f, 0.4f}};
  const double p[3] = {0.2, 0.5, 0.3}, expected[3] = {0.5 * 0.2 + 0.3, 0.5 * 0.5, 0.5 * 0.3 + 0.2};
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(mixed_logprob(std::log(p[i]), i, entries), std::log(expected[i]), 1e-6);
  EXPECT_EQ(mixed_logprob(-1.5, 1, {}), -1.5);
  const std::vector<MemoryEntry> greedy = {{0, 1.0f, 1.0f}, {1, 1.0f, 1.0f}};
  EXPECT_TRUE(std::isfinite(mixed_logprob(std::log(0.3), 2, greedy)));
}

TEST_F(TableMemoryTest, TheLongestMatchDrafts) {
  Ids longer = {50, 12, 13, 14, 77};
  const auto general = table("general.engram", {kSentence, kSentence});
  const auto own = table("own.engram", {longer});
  const std::shared_ptr<const NgramSource> both[] = {general, own};
  const auto ids = [](const std::vector<Expected>& expected) {
    Ids all;
    for (const Expected& e : expected) all.push_back(e.token);
    return all;
  };
  EXPECT_EQ(ids(longest_match(both, Ids{11, 12, 13, 14}, {})), (Ids{15, 16, 17, 18, 19, 20}));
  EXPECT_EQ(longest_match(both, Ids{11, 12, 13, 14}, {.max_tokens = 2}), (std::vector<Expected>{{15, 4}, {16, 5}}));
  // Four tokens of ours, three of theirs.
  EXPECT_EQ(longest_match(both, Ids{50, 12, 13, 14}, {}), (std::vector<Expected>{{77, 4}}));
  EXPECT_TRUE(longest_match(both, Ids{13, 14}, {}).empty());  // two are chance
  EXPECT_TRUE(longest_match(both, {}, {}).empty());
  Ids fork = kSentence;
  fork[3] = 99;
  const std::shared_ptr<const NgramSource> torn = table("torn.engram", {kSentence, fork});
  EXPECT_TRUE(longest_match(std::span(&torn, 1), Ids{11, 12, 13}, {.min_share = 0.6f}).empty());
}

}  // namespace
}  // namespace chimere::engram
