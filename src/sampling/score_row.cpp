// score_row.cpp  Loops over the whole vocabulary: written block by block, without branches, for the vectoriser.
#include "sampling/score_row.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "sampling/weight.h"

namespace chimere {
namespace {

inline float max_of_block(const float* scores) {
  float lanes[8];
  for (int j = 0; j < 8; ++j) lanes[j] = scores[j];
  for (int i = 8; i < kScoreBlock; i += 8) {
    for (int j = 0; j < 8; ++j) lanes[j] = scores[i + j] > lanes[j] ? scores[i + j] : lanes[j];
  }
  float best = lanes[0];
  for (int j = 1; j < 8; ++j) best = std::max(best, lanes[j]);
  return best;
}

// Adds a block, seen as 8 rows of 8, to 8 column sums. Eight sums are enough to keep the adders busy.
inline void add_columns(const double (&block)[kScoreBlock], double (&sums)[8]) {
  for (int j = 0; j < 8; ++j) {
    sums[j] += ((block[j] + block[j + 8]) + (block[j + 16] + block[j + 24])) +
               ((block[j + 32] + block[j + 40]) + (block[j + 48] + block[j + 56]));
  }
}

}  // namespace

ScoreRow::ScoreRow(std::int32_t n_vocab) : n_vocab_(n_vocab) {
  CHECK(n_vocab > 0 && n_vocab <= kMaxVocab);
  const std::size_t n_blocks = (static_cast<std::size_t>(n_vocab) + kScoreBlock - 1) / kScoreBlock;
  scores_.assign(n_blocks * kScoreBlock, kNoScore);
  maxima_.assign(n_blocks, kNoScore);
}

void ScoreRow::load(std::span<const float> logits) {
  CHECK(logits.size() == static_cast<std::size_t>(n_vocab_));
  const float* in = logits.data();
  float* out = scores_.data();
  for (std::int32_t i = 0; i < n_vocab_; ++i) out[i] = cleaned(in[i]);
  refresh();
}

void ScoreRow::set(std::int32_t id, float score) { scores_[id] = cleaned(score); }

void ScoreRow::refresh() {
  max_ = kNoScore;
  for (std::size_t b = 0; b < maxima_.size(); ++b) {
    maxima_[b] = max_of_block(scores_.data() + b * kScoreBlock);
    max_ = std::max(max_, maxima_[b]);
  }
}

void ScoreRow::keep_only(std::span<const std::uint64_t> mask) {
  if (mask.empty()) return;
  CHECK(mask.size() >= maxima_.size());
  max_ = kNoScore;
  for (std::size_t b = 0; b < maxima_.size(); ++b) {
    float* scores = scores_.data() + b * kScoreBlock;
    const std::uint64_t word = mask[b];
    if (word != ~std::uint64_t{0}) {
      for (int i = 0; i < kScoreBlock; ++i) {
        if (((word >> i) & 1) == 0) scores[i] = kNoScore;
      }
      maxima_[b] = max_of_block(scores);
    }
    max_ = std::max(max_, maxima_[b]);
  }
}

std::int32_t ScoreRow::best() const {
  if (max_ == kNoScore) return -1;
  const auto found = std::find(maxima_.begin(), maxima_.end(), max_);
  const float* scores = scores_.data() + (found - maxima_.begin()) * kScoreBlock;
  return static_cast<std::int32_t>(std::find(scores, scores + kScoreBlock, max_) - scores_.data());
}

void ScoreRow::collect(float threshold, std::vector<Candidate>& out) const {
  threshold = std::max(threshold, -kMaxScore);
  out.clear();
  for (std::size_t b = 0; b < maxima_.size(); ++b) {
    if (maxima_[b] < threshold) continue;
    const float* scores = scores_.data() + b * kScoreBlock;
    const std::size_t before = out.size();
    out.resize(before + kScoreBlock);
    Candidate* end = out.data() + before;
    for (int i = 0; i < kScoreBlock; ++i) {
      *end = {static_cast<std::int32_t>(b) * kScoreBlock + i, scores[i]};
      end += scores[i] >= threshold;
    }
    out.resize(static_cast<std::size_t>(end - out.data()));
  }
}

void ScoreRow::top_k(int k, std::vector<Candidate>& out) const {
  const std::size_t n = static_cast<std::size_t>(k);
  float threshold = kNoScore;
  if (n <= maxima_.size()) {
    std::vector<float> sorted = maxima_;
    std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<float>());
    threshold = sorted[n - 1];
  }
  collect(threshold, out);
  if (out.size() > n) {
    std::nth_element(out.begin(), out.begin() + (k - 1), out.end(), better);
    out.resize(n);
  }
}

Mass ScoreRow::mass(float scale) const {
  if (max_ == kNoScore) return {};
  double totals[8] = {}, terms[8] = {};
  const float floor = kWeightlessBelow;
  for (std::size_t b = 0; b < maxima_.size(); ++b) {
    if ((maxima_[b] - max_) * scale < floor) continue;
    const float* scores = scores_.data() + b * kScoreBlock;
    float tempered[kScoreBlock], exponentials[kScoreBlock];
    double weights[kScoreBlock], products[kScoreBlock];
    for (int i = 0; i < kScoreBlock; ++i) {
      const float t = (scores[i] - max_) * scale;
      tempered[i] = t < floor ? floor : t;
    }
    for (int i = 0; i < kScoreBlock; ++i) exponentials[i] = exp_in_range(tempered[i]);
    for (int i = 0; i < kScoreBlock; ++i) {
      weights[i] = rounded_weight(exponentials[i]);
      products[i] = weights[i] * static_cast<double>(tempered[i]);
    }
    add_columns(weights, totals);
    add_columns(products, terms);
  }
  Mass mass;
  for (int j = 0; j < 8; ++j) {
    mass.total += totals[j];
    mass.weighted += terms[j];
  }
  return mass;
}

}  // namespace chimere
