// N-grams of growing texts: the same as those of a table made of the same texts.
#include "engram/text_ngrams.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engram/tables_for_test.h"

namespace chimere::engram {
namespace {

std::map<int32_t, float> counts_of(const Hit& hit) {
  std::map<int32_t, float> counts;
  for (const Hit::Next& next : hit.next) counts[next.token] += next.count;
  return counts;
}

TEST(TextNgrams, SayWhatATableOfTheSameTextSays) {
  std::mt19937 random(7);
  std::vector<int32_t> text(3000);
  for (int32_t& token : text) token = static_cast<int32_t>(random() % 40);
  const TableShape shape{{1, 64}, kMinOrder, kMaxOrder};
  const auto table = table_of_text(shape, text);
  ASSERT_TRUE(table) << table.error().message;
  TextNgrams ngrams;
  ngrams.add(text, 1);
  EXPECT_EQ(ngrams.n_tokens(), text.size());
  EXPECT_EQ(ngrams.count_keys(), (*table)->header().n_keys);
  Hit expected, found;
  int n_hits = 0;
  for (size_t end = 2; end < text.size(); end += 3) {
    const auto context = Table::context_of(std::span(text).first(end));
    for (int order = kMinOrder; order <= std::min(kMaxOrder, context.length); ++order) {
      const bool is_known = (*table)->find(context, order, expected);
      ASSERT_EQ(ngrams.find(context, order, found), is_known) << end << " " << order;
      if (!is_known) continue;
      ++n_hits;
      EXPECT_EQ(counts_of(found), counts_of(expected));
      EXPECT_EQ(found.total, expected.total);
      EXPECT_EQ(found.distinct, expected.distinct);
    }
  }
  EXPECT_GT(n_hits, 1000);
}

TEST(TextNgrams, DoNotReachAcrossTextsAndGrowPieceByPiece) {
  TextNgrams ngrams;
  Hit hit;
  EXPECT_FALSE(ngrams.find(Table::context_of(std::vector<int32_t>{1, 2}), 2, hit));
  for (int32_t i = 0; i < 500; ++i) ngrams.add(std::vector<int32_t>{i, i + 1, i + 2}, 1);
  ngrams.add(std::vector<int32_t>{7, 8}, 1);
  ngrams.add(std::vector<int32_t>{9, 9, 9}, 1);
  ASSERT_TRUE(ngrams.find(Table::context_of(std::vector<int32_t>{7, 8}), 2, hit));
  EXPECT_EQ(hit.next.size(), 1u);
  EXPECT_EQ(hit.next[0].token, 9);
  EXPECT_EQ(hit.total, 1);
  EXPECT_FALSE(ngrams.find(Table::context_of(std::vector<int32_t>{8, 9, 9}), 3, hit));
}

TEST(TextNgrams, WhatIsOldCountsLessAndThenNothing) {
  TextNgrams ngrams;
  Hit hit;
  ngrams.add(std::vector<int32_t>{1, 2, 3}, 0.5f);
  ngrams.add(std::vector<int32_t>{1, 2, 4}, 0);
  ASSERT_TRUE(ngrams.find(Table::context_of(std::vector<int32_t>{1, 2}), 2, hit));
  EXPECT_EQ(hit.next.size(), 1u);
  EXPECT_EQ(hit.total, 0.5);
}

}  // namespace
}  // namespace chimere::engram
