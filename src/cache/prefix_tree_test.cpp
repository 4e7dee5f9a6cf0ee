// prefix_tree_test.cpp  The tree against a plain map of prefixes.
#include "cache/prefix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace chimere {
namespace {

using Tokens = std::vector<int32_t>;

size_t common(const Tokens& a, const Tokens& b) {
  size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return n;
}

TEST(PrefixTree, AgreesWithAMapOfPrefixes) {
  std::mt19937 random(7);
  PrefixTree tree;
  std::map<Tokens, PrefixPoint*> twin;
  // Two letters and short texts: edges part, join and end everywhere.
  auto text = [&](int longest) {
    Tokens t(1 + random() % longest);
    for (int32_t& token : t) token = static_cast<int32_t>(random() % 2);
    return t;
  };
  for (int step = 0; step < 4000; ++step) {
    const Tokens t = text(step % 3 == 0 ? 14 : 7);
    if (random() % 3 != 0) {
      PrefixPoint& point = tree.put(t);
      EXPECT_EQ(point.length, static_cast<int32_t>(t.size()));
      const auto known = twin.emplace(t, &point);
      EXPECT_EQ(known.first->second, &point) << "the same text is the same point";
    } else if (!twin.empty()) {
      auto victim = twin.lower_bound(t);
      if (victim == twin.end()) victim = twin.begin();
      tree.erase(*victim->second);
      twin.erase(victim);
    }
    tree.check_integrity();

    const Tokens asked = text(16);
    const PrefixTree::Match match = tree.match(asked, true);
    size_t longest = 0;
    std::vector<PrefixPoint*> on_path, beyond;
    for (const auto& [known, point] : twin) longest = std::max(longest, common(known, asked));
    for (const auto& [known, point] : twin) {
      if (common(known, asked) == known.size()) on_path.push_back(point);
      if (longest > 0 && known.size() > longest && common(known, asked) == longest) beyond.push_back(point);
    }
    std::sort(on_path.begin(), on_path.end(), [](auto* a, auto* b) { return a->length < b->length; });
    ASSERT_EQ(match.length, static_cast<int32_t>(longest));
    ASSERT_EQ(match.on_path, on_path);
    std::vector<PrefixPoint*> found = match.beyond;
    std::sort(found.begin(), found.end());
    std::sort(beyond.begin(), beyond.end());
    ASSERT_EQ(found, beyond);
    if (!twin.empty()) {
      const auto any = std::next(twin.begin(), static_cast<std::ptrdiff_t>(random() % twin.size()));
      ASSERT_EQ(tree.tokens(*any->second), any->first);
    }
  }
  size_t n = 0;
  tree.for_each([&](PrefixPoint&) { ++n; });
  EXPECT_EQ(n, twin.size());
  for (const auto& [known, point] : twin) tree.erase(*point);
  EXPECT_TRUE(tree.is_empty());
}

TEST(PrefixTree, KnowsHowPointsStandToEachOther) {
  PrefixTree tree;
  PrefixPoint& system = tree.put(Tokens{1, 2, 3});
  PrefixPoint& turn = tree.put(Tokens{1, 2, 3, 4, 5});
  PrefixPoint& tip = tree.put(Tokens{1, 2, 3, 4, 5, 6});
  EXPECT_FALSE(tree.has_point_before(system));
  EXPECT_TRUE(tree.has_point_before(tip));
  EXPECT_EQ(tree.points_before(tip), (std::vector<PrefixPoint*>{&turn, &system}));
  EXPECT_EQ(tree.points_behind(system, 10), 2);
  EXPECT_EQ(tree.points_behind(system, 1), 1);
  EXPECT_FALSE(tree.is_fork(system));
  tree.put(Tokens{1, 2, 3, 7});
  EXPECT_TRUE(tree.is_fork(system));
  EXPECT_FALSE(tree.is_fork(turn));
  EXPECT_EQ(tree.points_behind(system, 10), 0) << "behind it there is more than one way";
  EXPECT_EQ(tree.points_behind(turn, 10), 1);
}

TEST(PrefixTree, ALongChainIsNoDeepRecursion) {
  PrefixTree tree;
  Tokens text;
  for (int i = 0; i < 6000; ++i) {
    text.push_back(i);
    if (i % 3 == 0) tree.put(text);
  }
  EXPECT_EQ(tree.match(text, true).length, 5998);
}

}  // namespace
}  // namespace chimere
