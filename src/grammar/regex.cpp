#include "grammar/regex.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grammar/escapes.h"

namespace chimere::grammar {
namespace {

CharSet digits() { return CharSet('0', '9'); }
CharSet word_chars() {
  CharSet set('a', 'z');
  set.add('A', 'Z');
  set.add('0', '9');
  set.add('_', '_');
  return set;
}
CharSet spaces() {
  CharSet set = CharSet::of("\t\n\v\f\r ");
  for (const char32_t c : {0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF}) set.add(c, c);
  set.add(0x2000, 0x200A);
  return set;
}
CharSet line_chars() {  // what `.` matches
  CharSet ends = CharSet::of("\n\r");
  ends.add(0x2028, 0x2029);
  return ends.inverted();
}

class Parser {
 public:
  Parser(std::string_view text, Grammar& grammar, const RegexOptions& options)
      : text_(text), grammar_(grammar), options_(options) {}

  Result<ExprId> run() {
    TRY_ASSIGN(const ExprId expr, alternatives(0));
    if (pos_ < text_.size()) return error("an unmatched )", pos_);
    return expr;
  }

 private:
  Error error(const std::string& found, size_t at) const {
    return {Code::invalid_argument, "regular expression, byte " + std::to_string(at) + ": found " + found};
  }
  bool at(char c) const { return pos_ < text_.size() && text_[pos_] == c; }
  bool take(std::string_view word) {
    if (!text_.substr(pos_).starts_with(word)) return false;
    pos_ += word.size();
    return true;
  }
  ExprId written(const CharSet& set) { return options_.write ? options_.write(grammar_, set) : grammar_.chars(set); }

  Result<ExprId> alternatives(int depth) {
    std::vector<ExprId> parts;
    do {
      TRY_ASSIGN(const ExprId part, alternative(depth));
      parts.push_back(part);
    } while (take("|"));
    return grammar_.choice(std::move(parts));
  }

  Result<ExprId> alternative(int depth) {
    std::vector<ExprId> parts;
    const bool is_outer = depth == 0;
    const bool starts = is_outer && take("^");
    bool ends = false;
    if (is_outer && options_.is_search && !starts) parts.push_back(anything());
    while (pos_ < text_.size() && !at('|') && !at(')')) {
      if (ends) return error("something behind $", pos_);
      if (at('^')) return error("^, which is understood at the beginning alone", pos_);
      if (at('$')) {
        if (!is_outer) return error("$ in a group, which is understood at the end alone", pos_);
        ++pos_;
        ends = true;
        continue;
      }
      TRY_ASSIGN(const ExprId part, quantified(depth));
      parts.push_back(part);
      TRY(grammar_.check_size());
    }
    if (is_outer && options_.is_search && !ends) parts.push_back(anything());
    return grammar_.sequence(std::move(parts));
  }

  ExprId anything() { return grammar_.repeat(written(CharSet::all()), 0, kUnbounded); }

  Result<ExprId> quantified(int depth) {
    TRY_ASSIGN(const ExprId part, atom(depth));
    const size_t begin = pos_;
    int min = 0, max = kUnbounded;
    if (take("*")) {
    } else if (take("+")) {
      min = 1;
    } else if (take("?")) {
      max = 1;
    } else if (at('{') && is_count()) {
      TRY(count(min, max));
    } else {
      return part;
    }
    take("?");
    if (at('*') || at('+') || at('?') || (at('{') && is_count())) return error("two repetitions of one thing", pos_);
    if (max != kUnbounded && max < min) return error("a repetition whose smallest number is the larger", begin);
    return grammar_.repeat(part, min, max);
  }

  // `{` that begins no repetition is a character.
  bool is_count() const {
    size_t p = pos_ + 1;
    const size_t first = p;
    while (p < text_.size() && text_[p] >= '0' && text_[p] <= '9') ++p;
    if (p == first) return false;
    if (p < text_.size() && text_[p] == ',') ++p;
    while (p < text_.size() && text_[p] >= '0' && text_[p] <= '9') ++p;
    return p < text_.size() && text_[p] == '}';
  }
  Status count(int& min, int& max) {
    ++pos_;
    TRY_ASSIGN(min, number());
    max = min;
    if (take(",")) {
      max = kUnbounded;
      if (!at('}')) {
        TRY_ASSIGN(max, number());
      }
    }
    ++pos_;
    return Ok{};
  }
  Result<int> number() {
    const size_t begin = pos_;
    int value = 0;
    for (; pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9'; ++pos_) {
      value = value * 10 + (text_[pos_] - '0');
      if (value > kMaxRepeat) {
        return error("a repetition of more than " + std::to_string(kMaxRepeat) + " times", begin);
      }
    }
    return value;
  }

  Result<ExprId> atom(int depth) {
    const size_t begin = pos_;
    if (take("(")) return group(begin, depth);
    if (take("[")) {
      TRY_ASSIGN(const CharSet set, char_class(begin));
      return written(set);
    }
    if (take(".")) return written(line_chars());
    if (at('*') || at('+') || at('?')) return error("a repetition of nothing", begin);
    if (at('{') && is_count()) return error("a repetition of nothing", begin);
    if (take("\\")) {
      TRY_ASSIGN(const CharSet set, escape(begin, false));
      return written(set);
    }
    const char32_t c = next_char(text_, pos_);
    if (c == kInvalidChar) return error("bytes that are no UTF-8", begin);
    return written(CharSet(c, c));
  }

  Result<ExprId> group(size_t begin, int depth) {
    if (depth >= kMaxNesting) return error("more than " + std::to_string(kMaxNesting) + " nested groups", begin);
    if (take("?")) {
      const bool is_named = at('<') && !text_.substr(pos_).starts_with("<=") && !text_.substr(pos_).starts_with("<!");
      if (is_named) {
        pos_ = std::min(text_.find('>', pos_), text_.size());
        if (!take(">")) return error("a group name without its >", begin);
      } else if (!take(":")) {
        return error("a group that looks around or sets flags, which is not supported", begin);
      }
    }
    TRY_ASSIGN(const ExprId inner, alternatives(depth + 1));
    if (!take(")")) return error("a ( without its )", begin);
    return inner;
  }

  Result<CharSet> char_class(size_t begin) {
    const bool is_negated = take("^");
    CharSet set;
    while (!at(']')) {
      if (pos_ >= text_.size()) return error("a [ without its ]", begin);
      TRY_ASSIGN(const CharSet first, class_char());
      const bool is_range = at('-') && pos_ + 1 < text_.size() && text_[pos_ + 1] != ']' && is_single(first);
      if (!is_range) {
        set.add(first);
        continue;
      }
      const size_t range_at = pos_++;
      TRY_ASSIGN(const CharSet last, class_char());
      if (!is_single(last) || last.ranges()[0].first < first.ranges()[0].first) {
        return error("a range whose end is no character behind its beginning", range_at);
      }
      set.add(first.ranges()[0].first, last.ranges()[0].first);
    }
    ++pos_;
    return is_negated ? set.inverted() : set;
  }
  static bool is_single(const CharSet& set) {
    return set.ranges().size() == 1 && set.ranges()[0].first == set.ranges()[0].last;
  }
  Result<CharSet> class_char() {
    const size_t begin = pos_;
    if (take("\\")) return escape(begin, true);
    const char32_t c = next_char(text_, pos_);
    if (c == kInvalidChar) return error("bytes that are no UTF-8", begin);
    return CharSet(c, c);
  }

  // Behind the backslash.
  Result<CharSet> escape(size_t begin, bool in_class) {
    if (pos_ >= text_.size()) return error("a \\ at the end", begin);
    const char c = text_[pos_++];
    switch (c) {
      case 'd': return digits();
      case 'D': return digits().inverted();
      case 'w': return word_chars();
      case 'W': return word_chars().inverted();
      case 's': return spaces();
      case 'S': return spaces().inverted();
      case 't': return CharSet('\t', '\t');
      case 'n': return CharSet('\n', '\n');
      case 'r': return CharSet('\r', '\r');
      case 'f': return CharSet('\f', '\f');
      case 'v': return CharSet('\v', '\v');
      case '0': return CharSet(0, 0);
      case 'b':
        if (in_class) return CharSet('\b', '\b');
        break;
      case 'x': return coded(hex_number(text_, pos_, 2), begin);
      case 'u': return coded(unicode(), begin);
      default: break;
    }
    const bool is_name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_name) return error(std::string("\\") + c + ", which is not supported", begin);
    --pos_;
    const char32_t literal = next_char(text_, pos_);
    if (literal == kInvalidChar) return error("bytes that are no UTF-8", begin);
    return CharSet(literal, literal);
  }
  char32_t unicode() {
    if (!take("{")) return hex_number(text_, pos_, 4);
    const size_t end = text_.find('}', pos_);
    if (end == std::string_view::npos || end == pos_ || end - pos_ > 6) return kInvalidChar;
    const char32_t value = hex_number(text_, pos_, end - pos_);
    ++pos_;
    return value;
  }
  Result<CharSet> coded(char32_t c, size_t begin) const {
    if (c > kLastChar) return error("an escape that is no character", begin);
    return CharSet(c, c);
  }

  std::string_view text_;
  size_t pos_ = 0;
  Grammar& grammar_;
  const RegexOptions& options_;
};

}  // namespace

Result<ExprId> parse_regex(std::string_view text, Grammar& grammar, const RegexOptions& options) {
  if (text.size() > kMaxTextBytes) {
    return Error{Code::invalid_argument, "regular expression: expected at most " + std::to_string(kMaxTextBytes) +
                                             " bytes, found " + std::to_string(text.size())};
  }
  return Parser(text, grammar, options).run();
}

}  // namespace chimere::grammar
