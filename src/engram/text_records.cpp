#include "engram/text_records.h"

#include <algorithm>

#include "base/check.h"
#include "engram/table_format.h"

namespace chimere::engram {

TextRecords::TextRecords(int min_order, int max_order)
    : min_order_(static_cast<uint32_t>(min_order)), max_order_(static_cast<uint32_t>(max_order)) {
  CHECK(min_order >= 1 && min_order <= max_order && max_order <= kMaxOrder);
}

void TextRecords::add(std::span<const int32_t> tokens, uint32_t source) {
  CHECK(order_ == 0);
  CHECK(tokens_.size() + tokens.size() < UINT32_MAX);
  const auto begin = static_cast<uint32_t>(tokens_.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    CHECK(tokens[i] >= 0);
    tokens_.push_back(static_cast<uint32_t>(tokens[i]));
    context_.push_back(static_cast<uint8_t>(std::min<size_t>(i, max_order_)));
  }
  texts_.push_back({begin, static_cast<uint32_t>(tokens_.size()), source});
}

uint32_t TextRecords::source_of(uint32_t position) const {
  const auto after = std::upper_bound(texts_.begin(), texts_.end(), position,
                                      [](uint32_t p, const Text& text) { return p < text.begin; });
  return std::prev(after)->source;
}

uint32_t TextRecords::shared_length(uint32_t a, uint32_t b) const {
  const uint32_t limit = std::min(context_length(a), context_length(b));
  uint32_t n = 0;
  while (n < limit && tokens_[a - 1 - n] == tokens_[b - 1 - n]) ++n;
  return n;
}

void TextRecords::sort_positions() {
  for (uint32_t p = 0; p < tokens_.size(); ++p) {
    if (context_length(p) >= min_order_) sorted_.push_back(p);
  }
  std::sort(sorted_.begin(), sorted_.end(), [&](uint32_t a, uint32_t b) {
    const uint32_t n = shared_length(a, b);
    const bool a_ends = n == context_length(a), b_ends = n == context_length(b);
    if (a_ends || b_ends) return a_ends && !b_ends;
    return tokens_[a - 1 - n] < tokens_[b - 1 - n];
  });
  shared_.assign(sorted_.size(), 0);
  for (size_t i = 1; i < sorted_.size(); ++i) {
    shared_[i] = static_cast<uint8_t>(shared_length(sorted_[i - 1], sorted_[i]));
  }
}

Result<bool> TextRecords::next(Record& record) {
  if (order_ == 0) {
    sort_positions();
    order_ = min_order_;
  }
  while (at_ == sorted_.size() || context_length(sorted_[at_]) < order_) {
    if (at_ < sorted_.size()) {
      ++at_;
      continue;
    }
    if (order_ == max_order_) return false;
    ++order_;
    at_ = 0;
  }
  key_.resize(order_);
  for (uint32_t i = 0; i < order_; ++i) key_[i] = tokens_[sorted_[at_] - 1 - i];
  seen_.clear();
  do {
    const uint32_t p = sorted_[at_];
    seen_.push_back((static_cast<uint64_t>(tokens_[p]) << 32) | source_of(p));
    ++at_;
  } while (at_ < sorted_.size() && shared_[at_] >= order_);
  std::sort(seen_.begin(), seen_.end());
  entries_.clear();
  for (size_t i = 0; i < seen_.size();) {
    size_t end = i;
    while (end < seen_.size() && seen_[end] == seen_[i]) ++end;
    const auto count = static_cast<uint32_t>(std::min<size_t>(end - i, Entry::kMaxCount));
    entries_.push_back(Entry{static_cast<uint32_t>(seen_[i] >> 32), count, static_cast<uint32_t>(seen_[i])}.pack());
    i = end;
  }
  record = {key_, static_cast<uint32_t>(seen_.size()), entries_};
  return true;
}

}  // namespace chimere::engram
