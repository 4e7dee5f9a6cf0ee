#include "speculative/repeats.h"

#include <algorithm>
#include <array>

#include "base/hash.h"

namespace chimere::speculative {
namespace {

constexpr int kMaxPlaces = 16;
constexpr size_t kFirstHeads = 256;

size_t place_hash(std::span<const int32_t> text, int n_tokens) {
  uint64_t h = 0;
  for (const int32_t id : text.last(static_cast<size_t>(n_tokens))) h = hash_mix(h ^ static_cast<uint32_t>(id));
  return static_cast<size_t>(h);
}

// How many tokens before `place` equal the last ones of the text.
int equal_before(std::span<const int32_t> text, int32_t place) {
  const int most = std::min<int>(kMaxMatch, place);
  const auto* a = text.data() + text.size();
  const auto* b = text.data() + place;
  int n = 0;
  while (n < most && *--a == *--b) ++n;
  return n;
}

}  // namespace

Kind repeat_kind(int length) {
  constexpr std::array<int, 8> kLongest{2, 3, 4, 6, 8, 12, 20, 32};
  int kind = 0;
  while (kind < static_cast<int>(kLongest.size()) && length > kLongest[kind]) ++kind;
  return static_cast<Kind>(kFirstRepeat + kind);
}

void Repeats::propose(std::span<const int32_t> tokens, int most, std::vector<Guess>& guesses) {
  follow(tokens);
  if (place_ == 0) return;
  const size_t begin = guesses.size();
  for (int i = 0; i < most; ++i) {
    // A place so near that the guesses themselves follow it: the text goes round.
    const auto at = static_cast<size_t>(place_) + static_cast<size_t>(i);
    const int32_t id = at < tokens.size() ? tokens[at] : guesses[begin + at - tokens.size()].id;
    guesses.push_back({id, repeat_kind(length_ + i)});
  }
}

void Repeats::follow(std::span<const int32_t> tokens) {
  const auto n_tokens = static_cast<int32_t>(tokens.size());
  if (n_known_ == n_tokens) return;
  if (heads_.size() < 2 * tokens.size()) grow(tokens);
  while (n_known_ < n_tokens) {
    const auto text = tokens.first(static_cast<size_t>(++n_known_));
    if (place_ > 0 && tokens[static_cast<size_t>(place_)] == text.back()) {
      ++place_;
      length_ = std::min(length_ + 1, kMaxMatch);
    } else {
      place_ = 0;
      if (n_known_ == n_tokens) find(text);
    }
    insert(text);
  }
  if (place_ == 0) length_ = 0;
}

// The latest of the longest.
void Repeats::find(std::span<const int32_t> text) {
  const size_t mask = heads_.size() - 1;
  length_ = kMinMatch - 1;
  const auto look = [&](int32_t place) {
    const int n = equal_before(text, place);
    if (n <= length_) return;
    length_ = n;
    place_ = place;
  };
  if (text.size() >= 3) {
    int32_t place = heads_[place_hash(text, 3) & mask];
    for (int i = 0; i < kMaxPlaces && place > 0 && length_ < kMaxMatch; ++i) {
      look(place);
      place = before_[static_cast<size_t>(place)];
    }
  }
  if (place_ == 0 && text.size() >= 2) look(pairs_[place_hash(text, 2) & mask]);
}

void Repeats::insert(std::span<const int32_t> text) {
  const size_t mask = heads_.size() - 1;
  const auto place = static_cast<int32_t>(text.size());
  before_.resize(text.size() + 1);
  if (text.size() >= 2) pairs_[place_hash(text, 2) & mask] = place;
  if (text.size() < 3) return;
  int32_t& head = heads_[place_hash(text, 3) & mask];
  before_[text.size()] = head;
  head = place;
}

void Repeats::grow(std::span<const int32_t> tokens) {
  size_t size = std::max(kFirstHeads, heads_.size());
  while (size < 4 * tokens.size()) size *= 2;
  heads_.assign(size, 0);
  pairs_.assign(size, 0);
  before_.clear();
  for (int32_t n = 1; n <= n_known_; ++n) insert(tokens.first(static_cast<size_t>(n)));
}

}  // namespace chimere::speculative
