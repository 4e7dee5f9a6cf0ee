// char_set.h  A set of Unicode characters, as sorted ranges that neither touch nor overlap.
#pragma once

#include <string_view>
#include <vector>

namespace chimere::grammar {

inline constexpr char32_t kLastChar = 0x10FFFF;

struct CharRange {
  char32_t first, last;
  bool operator==(const CharRange&) const = default;
};

class CharSet {
 public:
  CharSet() = default;
  CharSet(char32_t first, char32_t last) { add(first, last); }
  static CharSet all() { return CharSet(0, kLastChar); }
  // The characters of an ASCII text.
  static CharSet of(std::string_view ascii);

  void add(char32_t first, char32_t last);
  void add(const CharSet& other);
  CharSet inverted() const;
  CharSet without(const CharSet& other) const;

  bool empty() const { return ranges_.empty(); }
  bool contains(char32_t c) const;
  const std::vector<CharRange>& ranges() const { return ranges_; }

 private:
  std::vector<CharRange> ranges_;
};

// One way to write characters in UTF-8: a run of bytes, each from a range.
struct ByteRange {
  unsigned char first, last;
};
// The byte runs that are exactly the characters of the set; surrogates, which UTF-8 does not have, are left out.
std::vector<std::vector<ByteRange>> utf8_runs(const CharSet& set);

}  // namespace chimere::grammar
