// score_row.h  One row of scores over the vocabulary, with the largest score of each block of 64.
//
// The block maxima are what makes selection cheap: the k-th largest block maximum is a lower bound of the k-th largest
// score, and a block whose maximum lies below a threshold is skipped without a look. 64 is also one word of a mask.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace chimere {

inline constexpr int kScoreBlock = 64;
inline constexpr float kNoScore = -std::numeric_limits<float>::infinity();
inline constexpr float kMaxScore = 1e30f;  // larger scores are cut to it, scores below its negative become kNoScore

struct Candidate {
  std::int32_t id;
  float score;
};

// The order of every selection: the better score first, among equals the lower id.
inline bool better(const Candidate& a, const Candidate& b) {
  return a.score > b.score || (a.score == b.score && a.id < b.id);
}

// Sums of exp(scale * (score - max)) over the row.
struct Mass {
  double total = 0;     // exact sum of weights (weight.h)
  double weighted = 0;  // sum of weight * scale * (score - max), for the entropy
};

class ScoreRow {
 public:
  explicit ScoreRow(std::int32_t n_vocab);

  std::int32_t n_vocab() const { return n_vocab_; }
  float operator[](std::int32_t id) const { return scores_[id]; }
  std::span<const float> block(std::int32_t index) const {
    return {scores_.data() + index * kScoreBlock, static_cast<std::size_t>(kScoreBlock)};
  }
  std::span<const float> block_maxima() const { return maxima_; }
  float max() const { return max_; }

  // What a row keeps of a number: NaN and what lies below -kMaxScore become kNoScore.
  static float cleaned(float score) {
    const float capped = score < kMaxScore ? score : (score >= kMaxScore ? kMaxScore : kNoScore);
    return capped >= -kMaxScore ? capped : kNoScore;
  }

  void load(std::span<const float> logits);
  // The maxima are stale after a set; call refresh() once before the next question.
  void set(std::int32_t id, float score);
  void refresh();
  // Takes the score of every token whose bit is 0. Keeps the maxima fresh. An empty mask allows all.
  void keep_only(std::span<const std::uint64_t> mask);

  // The best token, or -1 when none has a score.
  std::int32_t best() const;
  // All tokens with a score of at least the threshold, in order of id.
  void collect(float threshold, std::vector<Candidate>& out) const;
  // The k best tokens (fewer when fewer have a score), in no particular order.
  void top_k(int k, std::vector<Candidate>& out) const;
  Mass mass(float scale) const;

 private:
  std::int32_t n_vocab_;
  std::vector<float> scores_;  // [n_vocab rounded up to whole blocks], the rest is kNoScore
  std::vector<float> maxima_;  // [blocks]
  float max_ = kNoScore;
};

}  // namespace chimere
