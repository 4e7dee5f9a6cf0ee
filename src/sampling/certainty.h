// certainty.h  How sure a model is of what it writes, from the distribution of each token.
//
//   certainty = 0.625 mean(p_max) + 0.375 (1 - mean(H) / ln V)
//
// p_max is the largest probability of a row, H its entropy in nats over the whole distribution, V the number of tokens
// that can be drawn: 1 where one token has all the probability, near 0 where all tokens are alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace chimere {

// `max_entropy` is ln V. NaN when one of the two stats is.
float token_certainty(float max_prob, float entropy, float max_entropy);

// The same over the last tokens. A value: copies go on by themselves.
class CertaintyWindow {
 public:
  CertaintyWindow() = default;
  // REQUIRES: n_tokens >= 1, max_entropy > 0
  CertaintyWindow(int n_tokens, float max_entropy) : size_(static_cast<size_t>(n_tokens)), max_entropy_(max_entropy) {}

  // A token without stats is left out.
  void push(float max_prob, float entropy);
  void clear() { last_.clear(), next_ = 0; }
  bool is_full() const { return size_ > 0 && last_.size() == size_; }
  // REQUIRES: something was pushed. Summed anew each time, so that it depends on the window alone.
  float certainty() const;

 private:
  struct Stats {
    float max_prob, entropy;
  };
  size_t size_ = 0, next_ = 0;  // `next_` is overwritten next once the window is full
  float max_entropy_ = 1;
  std::vector<Stats> last_;
};

}  // namespace chimere
