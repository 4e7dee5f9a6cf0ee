// encode_books.h  The entry of a codebook that is nearest under weights, without looking at most of them.
//
// With values x, weights w and a scale s the entry g to find is that of the least sum w (x - s g)^2, so of the largest
// u A - B with u = 2 / s, A = sum w x g, B = sum w g^2. Both sums are those of the two halves of the entry, and a half
// takes only 64 or 81 patterns of levels: tables of them cost a few additions, and serve all scales. A pattern is out
// when it, with the best of all patterns as other half, does not reach an entry that is known. What is left are entries
// with both halves among the few others: a handful of up to 2048.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "quantizer/encode_lanes.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {

// An entry, and the patterns of its halves.
struct BookChoice {
  int entry = -1;
  int first = 0, second = 0;
  float score = -INFINITY;
};

template <int kDimensions, int kLevelCount, int kEntries>
class Book {
 public:
  static constexpr int kDims = kDimensions, kLevels = kLevelCount;
  static constexpr int kQuarter = kDims == 8 ? kLevels * kLevels : kLevels;  // patterns of a quarter of an entry
  static constexpr int kPatterns = kQuarter * kQuarter;                      // of a half
  static constexpr int kPadded = (kPatterns + kLanes - 1) / kLanes * kLanes;
  using Levels = std::array<float, kLevels>;

  // A and B of every pattern of both halves.
  struct Sums {
    alignas(32) float a[2][kPadded], b[2][kPadded];
  };

  // `values`: what the numbers of the grid are, in the order of the levels.
  Book(const int8_t (&grid)[kEntries][kDims], const std::array<int, kLevels>& values) {
    const auto pattern = [&](const int8_t* half) {
      int digits = 0;
      for (int e = 0; e < kDims / 2; ++e) {
        int level = 0;
        while (values[static_cast<size_t>(level)] != half[e]) ++level;
        digits = digits * kLevels + level;
      }
      return digits;
    };
    uint16_t sorted[kPatterns][kPatterns];
    for (int entry = 0; entry < kEntries; ++entry) {
      const int first = pattern(grid[entry]), second = pattern(grid[entry] + kDims / 2);
      seconds_[first][second / 64] |= uint64_t{1} << (second % 64);
      sorted[first][second] = static_cast<uint16_t>(entry);
    }
    int at = 0;
    for (int first = 0; first < kPatterns; ++first) {
      start_[first] = static_cast<uint16_t>(at);
      stand_in_[first] = static_cast<uint8_t>(nearest_with_entries(first));
      for (int second = 0; second < kPatterns; ++second) {
        if (seconds_[first][second / 64] >> (second % 64) & 1) entry_[at++] = sorted[first][second];
      }
    }
  }

  static void sum_patterns(const float* x, const float* w, const Levels& levels, Sums& out) {
    constexpr int kPaddedQuarter = (kQuarter + kLanes - 1) / kLanes * kLanes;
    for (int half = 0; half < 2; ++half) {
      alignas(32) float a[2][kPaddedQuarter] = {}, b[2][kPaddedQuarter] = {};
      for (int part = 0; part < 2; ++part) sum_quarter(x, w, levels, 2 * half + part, a[part], b[part]);
      // Rows are written in whole vectors; what reaches into the next row is overwritten by it.
      for (int i = 0; i < kQuarter; ++i) {
        for (int j = 0; j < kPaddedQuarter; j += kLanes) {
          store_lanes(out.a[half] + kQuarter * i + j, load_lanes(a[1] + j) + a[0][i]);
          store_lanes(out.b[half] + kQuarter * i + j, load_lanes(b[1] + j) + b[0][i]);
        }
      }
      for (int i = kPatterns; i < kPadded; ++i) {
        out.a[half][i] = 0.0f;
        out.b[half][i] = INFINITY;  // never the best, whatever the scale
      }
    }
  }

  // `seed`: a good entry, if one is known, such as that of a scale nearby.
  BookChoice nearest(const Sums& sums, float u, BookChoice seed) const {
    alignas(32) float first[kPadded], second[kPadded];
    Lanes most_first = all_lanes(-INFINITY), most_second = most_first;
    for (int i = 0; i < kPadded; i += kLanes) {
      const Lanes score_first = load_lanes(sums.a[0] + i) * u - load_lanes(sums.b[0] + i);
      const Lanes score_second = load_lanes(sums.a[1] + i) * u - load_lanes(sums.b[1] + i);
      store_lanes(first + i, score_first);
      store_lanes(second + i, score_second);
      most_first = larger(most_first, score_first);
      most_second = larger(most_second, score_second);
    }
    const float best_first = largest_of(most_first), best_second = largest_of(most_second);
    BookChoice best = seed.entry < 0 ? any_good(first, best_first, second) : seed;
    best.score = first[best.first] + second[best.second];
    uint64_t open_first[kWords] = {}, open_second[kWords] = {};
    for (int i = 0; i < kPadded; i += kLanes) {
      open_first[i / 64] |= static_cast<uint64_t>(lanes_above(load_lanes(first + i) + best_second, best.score))
                            << (i % 64);
      open_second[i / 64] |= static_cast<uint64_t>(lanes_above(load_lanes(second + i) + best_first, best.score))
                             << (i % 64);
    }
    int found_first = -1, found_second = -1;
    for (int word = 0; word < kWords; ++word) {
      for (uint64_t rest = open_first[word]; rest; rest &= rest - 1) {
        const int f = 64 * word + std::countr_zero(rest);
        if (!(first[f] + best_second > best.score)) continue;  // a better one was found since
        for (int other = 0; other < kWords; ++other) {
          for (uint64_t both = seconds_[f][other] & open_second[other]; both; both &= both - 1) {
            const int s = 64 * other + std::countr_zero(both);
            const float score = first[f] + second[s];
            if (score > best.score) {
              best.score = score;
              found_first = f;
              found_second = s;
            }
          }
        }
      }
    }
    if (found_first >= 0) best = {entry_at(found_first, found_second), found_first, found_second, best.score};
    return best;
  }

  static float a_of(const Sums& sums, const BookChoice& c) { return sums.a[0][c.first] + sums.a[1][c.second]; }
  static float b_of(const Sums& sums, const BookChoice& c) { return sums.b[0][c.first] + sums.b[1][c.second]; }

 private:
  static void sum_quarter(const float* x, const float* w, const Levels& levels, int quarter, float* a, float* b) {
    constexpr int kWidth = kDims / 4;
    x += kWidth * quarter;
    w += kWidth * quarter;
    for (int i = 0; i < kLevels; ++i) {
      const float v = levels[static_cast<size_t>(i)];
      if constexpr (kWidth == 1) {
        a[i] = w[0] * x[0] * v;
        b[i] = w[0] * v * v;
      } else {
        for (int j = 0; j < kLevels; ++j) {
          const float v2 = levels[static_cast<size_t>(j)];
          a[kLevels * i + j] = w[0] * x[0] * v + w[1] * x[1] * v2;
          b[kLevels * i + j] = w[0] * v * v + w[1] * v2 * v2;
        }
      }
    }
  }

  // The best first half, or one that is near to it and has entries, with the best second half it has.
  BookChoice any_good(const float* first, float best_first, const float* second) const {
    int f = 0;
    for (int i = 0; i < kPadded; i += kLanes) {
      if (const unsigned same = lanes_equal(load_lanes(first + i), best_first)) f = i + std::countr_zero(same);
    }
    f = stand_in_[f];
    int best = -1;
    for (int word = 0; word < kWords; ++word) {
      for (uint64_t rest = seconds_[f][word]; rest; rest &= rest - 1) {
        const int s = 64 * word + std::countr_zero(rest);
        if (best < 0 || second[s] > second[best]) best = s;
      }
    }
    return {entry_at(f, best), f, best, 0.0f};
  }

  int entry_at(int first, int second) const {
    int rank = 0;
    for (int word = 0; word < second / 64; ++word) rank += std::popcount(seconds_[first][word]);
    rank += std::popcount(seconds_[first][second / 64] & ((uint64_t{1} << (second % 64)) - 1));
    return entry_[start_[first] + rank];
  }

  int nearest_with_entries(int pattern) const {
    int best = -1, least = 0;
    for (int f = 0; f < kPatterns; ++f) {
      if (!seconds_[f][0] && !seconds_[f][kWords - 1]) continue;
      int distance = 0;
      for (int p = pattern, q = f; p || q; p /= kLevels, q /= kLevels) {
        distance += (p % kLevels - q % kLevels) * (p % kLevels - q % kLevels);
      }
      if (best < 0 || distance < least) {
        best = f;
        least = distance;
      }
    }
    return best;
  }

  static constexpr int kWords = (kPadded + 63) / 64;
  uint64_t seconds_[kPatterns][kWords] = {};  // the second halves of a first, one bit each
  uint16_t start_[kPatterns];                 // of the entries of a first half
  uint8_t stand_in_[kPatterns];               // a first half that has entries, near to one that may have none
  uint16_t entry_[kEntries];                  // by first, then second half
};

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
