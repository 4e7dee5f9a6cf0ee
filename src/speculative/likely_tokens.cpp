#include "speculative/likely_tokens.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace chimere::speculative {
namespace {

// Chosen anew after so many tokens.
constexpr uint32_t kOften = 512;
// When so many were counted, all counts are halved: what was frequent once gives way.
constexpr uint32_t kLongAgo = 1 << 17;

}  // namespace

LikelyTokens::LikelyTokens(int32_t n_vocab, int32_t block_tokens) : block_tokens_(block_tokens) {
  if (n_vocab < kFewTokens) return;
  counts_.assign(static_cast<size_t>((n_vocab + block_tokens - 1) / block_tokens), 0);
  n_chosen_ = static_cast<size_t>(std::max(kLeastTokens, n_vocab / 8) / block_tokens);
  choose();
}

void LikelyTokens::learn(std::span<const int32_t> tokens) {
  if (counts_.empty()) return;
  for (const int32_t id : tokens) {
    const auto block = static_cast<size_t>(id / block_tokens_);
    if (id >= 0 && block < counts_.size()) ++counts_[block];
  }
  n_new_ += static_cast<uint32_t>(tokens.size());
  n_all_ += static_cast<uint32_t>(tokens.size());
  if (n_all_ >= kLongAgo) {
    for (uint32_t& count : counts_) count /= 2;
    n_all_ /= 2;
  }
  if (n_new_ >= kOften) choose();
}

void LikelyTokens::choose() {
  std::vector<int32_t> order(counts_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](int32_t a, int32_t b) {
    const uint32_t of_a = counts_[static_cast<size_t>(a)], of_b = counts_[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  };
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n_chosen_), order.end(), likelier);
  order.resize(n_chosen_);
  std::sort(order.begin(), order.end());
  blocks_ = std::move(order);
  n_new_ = 0;
  is_changed_ = true;
}

bool LikelyTokens::take_changed() { return std::exchange(is_changed_, false); }

}  // namespace chimere::speculative
