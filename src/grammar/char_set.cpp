#include "grammar/char_set.h"

#include <algorithm>
#include <string>

#include "text/utf8.h"

namespace chimere::grammar {
namespace {

// Of one character, which is no surrogate.
std::string utf8(char32_t c) {
  std::string bytes;
  append_utf8(c, bytes);
  return bytes;
}

// A range whose two ends have the same number of bytes. It is cut until, behind the first byte that differs, all
// continuation bytes are free.
void split(char32_t first, char32_t last, std::vector<std::vector<ByteRange>>& runs) {
  const std::string low = utf8(first), high = utf8(last);
  const size_t n = low.size();
  for (size_t i = 0; i + 1 < n; ++i) {
    if (low[i] == high[i]) continue;
    const char32_t tail = (char32_t{1} << (6 * (n - 1 - i))) - 1;
    if ((first & tail) != 0) {
      split(first, first | tail, runs);
      return split((first | tail) + 1, last, runs);
    }
    if ((last & tail) != tail) {
      split(first, (last & ~tail) - 1, runs);
      return split(last & ~tail, last, runs);
    }
    break;
  }
  std::vector<ByteRange> run(n);
  for (size_t i = 0; i < n; ++i) {
    run[i] = {static_cast<unsigned char>(low[i]), static_cast<unsigned char>(high[i])};
  }
  runs.push_back(std::move(run));
}

}  // namespace

CharSet CharSet::of(std::string_view ascii) {
  CharSet set;
  for (const char c : ascii) set.add(static_cast<unsigned char>(c), static_cast<unsigned char>(c));
  return set;
}

void CharSet::add(char32_t first, char32_t last) {
  if (first > last) return;
  auto at = std::find_if(ranges_.begin(), ranges_.end(), [&](const CharRange& r) { return r.last + 1 >= first; });
  auto end = at;
  while (end != ranges_.end() && end->first <= last + 1) {
    first = std::min(first, end->first);
    last = std::max(last, end->last);
    ++end;
  }
  at = ranges_.erase(at, end);
  ranges_.insert(at, {first, last});
}

void CharSet::add(const CharSet& other) {
  for (const CharRange& r : other.ranges_) add(r.first, r.last);
}

CharSet CharSet::inverted() const {
  CharSet result;
  char32_t next = 0;
  for (const CharRange& r : ranges_) {
    if (r.first > next) result.ranges_.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= kLastChar) result.ranges_.push_back({next, kLastChar});
  return result;
}

CharSet CharSet::without(const CharSet& other) const {
  CharSet outside = inverted();
  outside.add(other);
  return outside.inverted();
}

bool CharSet::contains(char32_t c) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const CharRange& r) { return r.first <= c && c <= r.last; });
}

std::vector<std::vector<ByteRange>> utf8_runs(const CharSet& set) {
  static constexpr CharRange kSameLength[] = {
      {0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, kLastChar}};
  std::vector<std::vector<ByteRange>> runs;
  for (const CharRange& r : set.ranges()) {
    for (const CharRange& piece : kSameLength) {
      const char32_t first = std::max(r.first, piece.first), last = std::min(r.last, piece.last);
      if (first <= last) split(first, last, runs);
    }
  }
  return runs;
}

}  // namespace chimere::grammar
