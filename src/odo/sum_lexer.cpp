#include "odo/sum_lexer.h"

#include <algorithm>
#include <optional>

#include "text/utf8.h"

namespace chimere::odo {
namespace {

using Kind = SumToken::Kind;

constexpr size_t kMaxDigits = 40;  // of a number: longer ones are keys and serial numbers

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
bool is_space(char32_t c) { return c == ' ' || c == '\t' || c == '\r' || c == 0xA0 || c == 0x2009 || c == 0x202F; }
bool is_letter(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (c >= 0xC0 && c < 0x2000 && c != 0xD7 && c != 0xF7);
}
char32_t small(char32_t c) {
  const bool is_capital = (c >= 'A' && c <= 'Z') || (c >= 0xC0 && c <= 0xDE && c != 0xD7);
  return is_capital ? c + 0x20 : c;
}

// The sign of the calculator that a character stands for; empty: none. A dash is no minus where it touches a number:
// people write ranges with it.
std::string_view sign_of(char32_t c) {
  switch (c) {
    case '+': return "+";
    case '-':
    case 0x2212: return "-";
    case '*':
    case 0xD7:
    case 0xB7: return "*";
    case '/':
    case 0xF7: return "/";
    case '^': return "^";
    case '%': return "%";
    case '=': return "=";
    case 0xB2: return "²";
    case 0xB3: return "³";
    case 0x221A: return "√";
    default: return "";
  }
}

class Lexer {
 public:
  Lexer(std::string_view text, bool is_french) : text_(text), is_french_(is_french) {}

  std::vector<SumToken> run() {
    while (pos_ < text_.size()) one();
    return std::move(tokens_);
  }

 private:
  char32_t peek(size_t pos) const { return pos < text_.size() ? decode_at(text_, pos).value : U' '; }
  char32_t before(size_t pos) const {
    if (pos == 0) return U' ';
    size_t at = pos - 1;
    while (at > 0 && (static_cast<unsigned char>(text_[at]) & 0xC0) == 0x80) --at;
    return peek(at);
  }
  size_t width(size_t pos) const { return decode_at(text_, pos).n_bytes; }
  bool is_blank(char32_t c) const { return is_space(c) || c == '\n'; }

  void put(Kind kind, std::string text, size_t end) {
    tokens_.push_back({kind, std::move(text), !is_blank(before(pos_)), !is_blank(peek(end))});
    pos_ = end;
  }

  void one() {
    const char32_t c = peek(pos_);
    if (is_space(c)) {
      pos_ += width(pos_);
    } else if (c == '`') {
      code();
    } else if (is_digit(c)) {
      number();
    } else if (is_times_letter(pos_)) {
      put(Kind::sign, "*", pos_ + 1);
    } else if (is_letter(c)) {
      word();
    } else if (c == '(' || c == ')') {
      put(c == '(' ? Kind::open : Kind::close, std::string(1, static_cast<char>(c)), pos_ + 1);
    } else if (text_.substr(pos_, 2) == "**") {
      put(Kind::sign, "^", pos_ + 2);
    } else if (!sign_of(c).empty()) {
      put(Kind::sign, std::string(sign_of(c)), pos_ + width(pos_));
    } else if (c == 0x2013 && is_blank(before(pos_)) && is_blank(peek(pos_ + width(pos_)))) {
      put(Kind::sign, "-", pos_ + width(pos_));
    } else if (c == '\n' || std::u32string_view(U".?!,;:").find(c) != std::u32string_view::npos) {
      put(Kind::stop, std::string(1, static_cast<char>(c)), pos_ + 1);
    } else {
      put(Kind::word, std::string(text_.substr(pos_, width(pos_))), pos_ + width(pos_));
    }
  }

  // Up to the same number of backquotes, or to the end.
  void code() {
    size_t n = 0;
    while (pos_ + n < text_.size() && text_[pos_ + n] == '`') ++n;
    const size_t close = text_.find(text_.substr(pos_, n), pos_ + n);
    put(Kind::word, "`", close == std::string_view::npos ? text_.size() : close + n);
  }

  // The x of 3 x 4 and 3x(4 + 1).
  bool is_times_letter(size_t pos) const {
    const bool is_x = peek(pos) == 'x' || peek(pos) == 'X';
    const bool is_behind_value =
        !tokens_.empty() && (tokens_.back().kind == Kind::number || tokens_.back().kind == Kind::close);
    return is_x && is_behind_value && begins_value(pos + 1);
  }
  bool begins_value(size_t pos) const {
    while (pos < text_.size() && is_space(peek(pos))) pos += width(pos);
    return is_digit(peek(pos)) || peek(pos) == '(';
  }

  // Letters, and what is tied to them: what's, v1.2-3, est-ce.
  void word() {
    std::string letters;
    size_t at = pos_;
    for (; at < text_.size(); at += width(at)) {
      const char32_t c = peek(at);
      const bool joins = (c == '-' || c == '.') && (is_letter(peek(at + 1)) || is_digit(peek(at + 1)));
      if (c == '\'' || c == 0x2019) {
        letters += '\'';
      } else if (is_letter(c) || is_digit(c) || joins) {
        append_utf8(small(c), letters);
      } else {
        break;
      }
    }
    put(Kind::word, std::move(letters), at);
  }

  size_t end_of_digits(size_t at) const {
    while (at < text_.size() && is_digit(peek(at))) ++at;
    return at;
  }

  void number() {
    std::vector<std::string> parts;  // digits
    std::string separators;          // one of , . and space behind each part but the last
    size_t at = pos_;
    for (;;) {
      const size_t end = end_of_digits(at);
      parts.emplace_back(text_.substr(at, end - at));
      at = end;
      const char32_t c = peek(at);
      const size_t next = at < text_.size() ? at + width(at) : at;
      if ((c == ',' || c == '.') && is_digit(peek(next))) {
        separators += static_cast<char>(c);
      } else if (at < text_.size() && is_space(c) && is_group(parts, next)) {
        separators += ' ';
      } else {
        break;
      }
      at = next;
    }
    const bool is_tied = is_letter(peek(at)) && !((peek(at) == 'x' || peek(at) == 'X') && begins_value(at + 1));
    while (is_tied && at < text_.size() && (is_letter(peek(at)) || is_digit(peek(at)))) at += width(at);
    const std::optional<std::string> plain = is_tied ? std::nullopt : value_of(parts, separators);
    put(plain ? Kind::number : Kind::word, plain ? *plain : std::string(text_.substr(pos_, at - pos_)), at);
  }

  // Three digits behind a space, as in 1 000 000.
  bool is_group(const std::vector<std::string>& parts, size_t pos) const {
    const bool may_follow = parts.size() == 1 ? parts[0].size() <= 3 && parts[0][0] != '0' : parts.back().size() == 3;
    return may_follow && is_digit(peek(pos)) && end_of_digits(pos) == pos + 3;
  }

  std::optional<std::string> value_of(const std::vector<std::string>& parts, const std::string& separators) const {
    const auto n_commas = std::count(separators.begin(), separators.end(), ',');
    const auto n_points = std::count(separators.begin(), separators.end(), '.');
    const bool has_groups = parts[0].size() <= 3 && parts[0][0] != '0';
    const bool is_decimal_comma = n_commas == 1 && n_points == 0 && separators.back() == ',' &&
                                  (is_french_ || parts.back().size() != 3 || !has_groups);
    if (n_points > 1 || (n_points == 1 && separators.back() != '.')) return std::nullopt;
    std::string value;
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool is_decimals = i > 0 && (separators[i - 1] == '.' || (is_decimal_comma && separators[i - 1] == ','));
      const bool is_thousands = i > 0 && !is_decimals;
      if (is_thousands && (parts[i].size() != 3 || !has_groups)) return std::nullopt;
      value += (is_decimals ? "." : "") + parts[i];
    }
    const bool has_leading_zero = value.size() > 1 && value[0] == '0' && value[1] != '.';
    if (has_leading_zero || value.size() > kMaxDigits) return std::nullopt;
    return value;
  }

  std::string_view text_;
  const bool is_french_;
  size_t pos_ = 0;
  std::vector<SumToken> tokens_;
};

}  // namespace

std::vector<SumToken> sum_tokens(std::string_view text, bool is_french) { return Lexer(text, is_french).run(); }

}  // namespace chimere::odo
