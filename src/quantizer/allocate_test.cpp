#include "quantizer/allocate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace chimere::quantizer {
namespace {

using Table = std::vector<std::vector<Option>>;

// Every choice of every item.
double best_by_trying_all(const Table& items, double limit) {
  std::vector<size_t> chosen(items.size(), 0);
  double best = INFINITY;
  for (;;) {
    double value = 0, cost = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      value += items[i][chosen[i]].value;
      cost += items[i][chosen[i]].cost;
    }
    if (cost <= limit && value < best) best = value;
    size_t i = 0;
    while (i < items.size() && ++chosen[i] == items[i].size()) chosen[i++] = 0;
    if (i == items.size()) return best;
  }
}

Table random_table(std::mt19937& random, size_t n_items, size_t n_options, bool integers) {
  std::uniform_real_distribution<double> share(0.0, 1.0);
  Table items(n_items);
  for (auto& options : items) {
    const size_t n = 1 + random() % n_options;
    for (size_t j = 0; j < n; ++j) {
      options.push_back(integers ? Option{double(random() % 20), double(random() % 20)}
                                 : Option{share(random), share(random)});
    }
  }
  return items;
}

TEST(Allocate, IsOptimalOnEverySmallCase) {
  std::mt19937 random(1);
  int solved = 0;
  for (int round = 0; round < 3000; ++round) {
    const Table items = random_table(random, 1 + random() % 7, 4, round % 2 == 0);
    double least = 0, most = 0;
    for (const auto& options : items) {
      double low = INFINITY, high = 0;
      for (const Option& o : options) {
        low = std::min(low, o.cost);
        high = std::max(high, o.cost);
      }
      least += low;
      most += high;
    }
    const double limit = least + (most - least) * double(random() % 101) / 100 + (round % 7 == 0 ? -0.5 : 0);
    const double best = best_by_trying_all(items, limit);
    const auto found = allocate(items, limit);
    if (std::isinf(best)) {
      EXPECT_FALSE(found) << "round " << round;
      continue;
    }
    ASSERT_TRUE(found) << "round " << round << ": " << found.error().message;
    EXPECT_TRUE(found->proven);
    EXPECT_LE(found->cost, limit);
    EXPECT_NEAR(found->value, best, 1e-9) << "round " << round;
    const auto greedy = allocate_greedy(items, limit);
    ASSERT_TRUE(greedy);
    EXPECT_LE(greedy->cost, limit);
    EXPECT_GE(greedy->value, best - 1e-9);
    ++solved;
  }
  EXPECT_GT(solved, 2000);
}

// As a model has them: dozens of tensors in a few shapes, a dozen types, losses that fall by four with each bit.
Table model_like(std::mt19937& random, size_t n_items) {
  const double bits[] = {2.0625, 2.3125, 2.625, 3.0625, 3.4375, 4.25, 4.5, 5.5, 6.5625, 8.5, 16};
  const double shapes[] = {65536, 131072, 262144, 786432, 2097152};
  std::uniform_real_distribution<double> spread(-3, 3);
  Table items(n_items);
  for (auto& options : items) {
    const double elems = shapes[random() % 5], slope = std::exp(spread(random));
    for (const double b : bits) options.push_back({slope * std::pow(4, -b), std::floor(elems * b / 8)});
  }
  return items;
}

TEST(Allocate, FillsTheSizeAskedForAndNeverMore) {
  std::mt19937 random(2);
  for (const size_t n : {60, 400}) {
    const Table items = model_like(random, n);
    double elems = 0;
    for (const auto& options : items) elems += options.back().cost / 2;
    for (const double bpw : {2.6, 3.0, 3.5, 4.0, 4.5, 5.5}) {
      const double limit = std::floor(elems * bpw / 8);
      const auto found = allocate(items, limit);
      ASSERT_TRUE(found);
      EXPECT_LE(found->cost, limit);
      EXPECT_GE(found->cost, 0.995 * limit) << n << " tensors at " << bpw;
      EXPECT_LE((found->value - found->bound) / found->value, 1e-3) << n << " tensors at " << bpw;
      const auto evolved = allocate_by_evolution(items, limit, 3);
      ASSERT_TRUE(evolved);
      EXPECT_LE(evolved->cost, limit);
      EXPECT_GE(evolved->value, found->bound);
    }
  }
}

TEST(Allocate, SaysWhatTheLeastIs) {
  const Table items = {{{1, 10}, {0, 20}}, {{1, 5}}};
  const auto found = allocate(items, 14);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("15"), std::string::npos);
}

}  // namespace
}  // namespace chimere::quantizer
