// gumbel.h  The draw: the token with the largest tempered score plus its own Gumbel noise.
//
// Gumbel-max draws from the softmax of the scores, and the noise of a token is a pure function of (seed, choice,
// position, token id). So the same scores give the same token whatever else was in the batch, whether the row came from
// a verified draft or a plain step, and on every device.
//
//   x = word (id mod 4) of philox(seed, position, choice * 2^32 + id / 4)     32 bits, one Philox call for four tokens
//   v = (x + 0.5) / 2^32                                                      in (0, 1), exact in double
//   g = -log(-log1p(-v))                                                      in (-3.14, 22.88)
//
// Small v make large g, so the noise that decides keeps full relative precision even in float. The host computes g in
// double. A device may use float: its g is off by less than 1e-5, and a draw may differ from the host's only where the
// two largest sums lie closer than twice that.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "base/philox.h"
#include "sampling/score_row.h"

namespace chimere {

// Which random numbers a draw uses.
struct DrawKey {
  std::uint64_t seed;
  std::uint32_t choice;
  std::uint64_t position;
};

inline constexpr double kMaxGumbel = 22.8739;  // the noise of x = 0, rounded up

// The random words of tokens 4 * group to 4 * group + 3.
inline PhiloxWords gumbel_words(const DrawKey& key, std::uint32_t group) {
  return philox(key.seed, key.position, (static_cast<std::uint64_t>(key.choice) << 32) | group);
}

inline std::uint32_t gumbel_bits(const DrawKey& key, std::int32_t id) {
  return gumbel_words(key, static_cast<std::uint32_t>(id) / 4)[id % 4];
}

inline double gumbel_of_bits(std::uint32_t x) {
  const double v = (static_cast<double>(x) + 0.5) * 0x1p-32;
  return -std::log(-std::log1p(-v));
}

// Keeps the winner; equal sums go to the lower id, so the order of offers does not matter.
struct GumbelRace {
  std::int32_t id = -1;
  double sum = -std::numeric_limits<double>::infinity();

  void offer(std::int32_t other, double other_sum) {
    if (other_sum > sum || (other_sum == sum && other < id)) {
      id = other;
      sum = other_sum;
    }
  }
};

// One of the candidates, with probability proportional to exp(scale * (score - max)). REQUIRES: at least one.
std::int32_t draw(std::span<const Candidate> candidates, float max, float scale, const DrawKey& key);

// One token of the whole row; the same token as draw() over all tokens that have a score, found faster.
// REQUIRES: row.max() != kNoScore
std::int32_t draw_from_all(const ScoreRow& row, float scale, const DrawKey& key);

}  // namespace chimere
