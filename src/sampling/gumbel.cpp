// gumbel.cpp  The draw, over a list and over the whole vocabulary, with exact pruning.
//
// Two bounds keep the logarithms away from all but a handful of tokens, without changing the winner. First, noise is at
// most kMaxGumbel: a token (or a block, by its best score) that cannot reach the leader even so is skipped before its
// random numbers are made. Second, -log1p(-v) >= v, hence g <= -ln v; and log2(m * 2^e) >= e + m - 1 for m in [1, 2),
// so that the bits of a float give an upper bound of g by one multiplication.
#include "sampling/gumbel.h"

#include <bit>

#include "base/check.h"

namespace chimere {
namespace {

constexpr int kGroups = kScoreBlock / 4;

// The random words of one block: words[w][g] belongs to token 4 * g + w of the block. The loop over groups is the outer
// one: so the compiler unrolls the rounds and multiplies several groups at once.
void philox_block(const DrawKey& key, std::uint32_t first_group, std::uint32_t (&words)[4][kGroups]) {
  for (int g = 0; g < kGroups; ++g) {
    const PhiloxWords drawn = gumbel_words(key, first_group + static_cast<std::uint32_t>(g));
    for (int w = 0; w < 4; ++w) words[w][g] = drawn[w];
  }
}

// An upper bound of gumbel_of_bits(x), by at most 0.07 (x < 256 aside, where it is far above: too rare to matter).
inline float gumbel_bound(std::uint32_t x) {
  const float top = static_cast<float>(static_cast<std::int32_t>(x >> 8));
  const float log2_scaled = static_cast<float>(std::bit_cast<std::int32_t>(top));
  return 0.69314718f * (24.0f + 127.0f - log2_scaled * 0x1p-23f) + 1e-3f;
}

inline double tempered(float score, float max, float scale) { return static_cast<double>((score - max) * scale); }

// What a bound must reach to be worth the logarithms: the leader's sum, lowered by more than floats may round.
inline float hurdle_of(const GumbelRace& race) {
  return static_cast<float>(race.sum - 1e-3 - std::abs(race.sum) * 1e-6);
}

}  // namespace

std::int32_t draw(std::span<const Candidate> candidates, float max, float scale, const DrawKey& key) {
  CHECK(!candidates.empty());
  GumbelRace race;
  for (const Candidate& candidate : candidates) {
    const float t = (candidate.score - max) * scale;
    if (static_cast<double>(t) + kMaxGumbel < race.sum) continue;
    const std::uint32_t bits = gumbel_bits(key, candidate.id);
    if (t + gumbel_bound(bits) < hurdle_of(race)) continue;
    race.offer(candidate.id, static_cast<double>(t) + gumbel_of_bits(bits));
  }
  return race.id;
}

std::int32_t draw_from_all(const ScoreRow& row, float scale, const DrawKey& key) {
  CHECK(row.max() != kNoScore);
  const float max = row.max();
  GumbelRace race;
  // The best token first: it is a strong leader, which makes the bounds bite from the start.
  const std::int32_t leader = row.best();
  race.offer(leader, tempered(row[leader], max, scale) + gumbel_of_bits(gumbel_bits(key, leader)));
  const std::span<const float> maxima = row.block_maxima();
  for (std::size_t b = 0; b < maxima.size(); ++b) {
    if (tempered(maxima[b], max, scale) + kMaxGumbel < race.sum) continue;
    const std::int32_t first = static_cast<std::int32_t>(b) * kScoreBlock;
    const std::span<const float> scores = row.block(static_cast<std::int32_t>(b));
    std::uint32_t words[4][kGroups];
    philox_block(key, static_cast<std::uint32_t>(first) / 4, words);
    const float hurdle = hurdle_of(race);
    float bounds[kScoreBlock];
    for (int w = 0; w < 4; ++w) {
      for (int g = 0; g < kGroups; ++g) bounds[w * kGroups + g] = gumbel_bound(words[w][g]);
    }
    std::int32_t reached = 0;
    for (int g = 0; g < kGroups; ++g) {
      for (int w = 0; w < 4; ++w) {
        const float sum = (scores[4 * g + w] - max) * scale + bounds[w * kGroups + g];
        reached |= sum >= hurdle ? 1 : 0;
      }
    }
    if (reached == 0) continue;
    for (int i = 0; i < kScoreBlock; ++i) {
      const float t = (scores[i] - max) * scale;
      if (scores[i] == kNoScore || t + bounds[(i & 3) * kGroups + i / 4] < hurdle) continue;
      race.offer(first + i, static_cast<double>(t) + gumbel_of_bits(words[i & 3][i / 4]));
    }
  }
  return race.id;
}

}  // namespace chimere
