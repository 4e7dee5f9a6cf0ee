// lexer.cpp  The Jinja lexer.
//
// Whitespace control, as the Hugging Face environment sets it:
//   trim_blocks    one newline directly after `%}` or `#}` is dropped
//   lstrip_blocks  blanks before `{%` or `{#` are dropped when nothing else precedes on that line
//   `-`            at a delimiter strips all whitespace on that side; `+` keeps what the two rules would drop
#include "jinja/lexer.h"

#include <cctype>
#include <charconv>
#include <cstdlib>

#include "jinja/unicode.h"

namespace chimere::jinja {
namespace {

// CRLF and CR become LF; one trailing newline is removed.
std::string normalise_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), s_(source_) {}

  Result<std::vector<Token>> run() {
    while (pos_ < s_.size()) TRY(lex_root());
    add(TokenKind::eof, "");
    return std::move(tokens_);
  }

 private:
  Error error(const std::string& what) const { return template_error(line_, what); }

  void add(TokenKind kind, std::string text) { tokens_.push_back(Token{kind, line_, std::move(text)}); }

  void advance(size_t to) {
    for (; pos_ < to; ++pos_) line_ += s_[pos_] == '\n';
  }

  bool at(std::string_view what) const { return s_.substr(pos_, what.size()) == what; }

  size_t skip_space(size_t pos) const {
    while (pos < s_.size()) {
      const CodePoint c = decode_at(s_, pos);
      if (!is_space(c.value)) break;
      pos += c.n_bytes;
    }
    return pos;
  }

  static std::string_view rstrip(std::string_view text) {
    while (!text.empty()) {
      size_t start = text.size() - 1;
      while (start > 0 && is_continuation(text[start])) --start;
      if (!is_space(decode_at(text, start).value)) break;
      text = text.substr(0, start);
    }
    return text;
  }

  static bool all_space(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
      const CodePoint c = decode_at(text, i);
      if (!is_space(c.value)) return false;
      i += c.n_bytes;
    }
    return true;
  }

  // What remains of the text before a tag once its strip rules are applied.
  std::string_view strip_before_tag(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return rstrip(text);
    if (sign == '+' || is_variable) return text;
    const size_t newline = text.rfind('\n');
    const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
    if (line_start == 0 && !line_starting_) return text;
    return line_start < text.size() && all_space(text.substr(line_start)) ? text.substr(0, line_start) : text;
  }

  char sign_at(size_t pos) const { return pos < s_.size() && (s_[pos] == '-' || s_[pos] == '+') ? s_[pos] : '\0'; }

  // `{% raw %}` with optional signs: the position after it, or npos.
  size_t match_word_tag(size_t pos, std::string_view word, char* end_sign) const {
    size_t i = pos + 2 + (sign_at(pos + 2) ? 1 : 0);
    i = skip_space(i);
    if (s_.substr(i, word.size()) != word) return std::string_view::npos;
    i = skip_space(i + word.size());
    *end_sign = sign_at(i);
    if (*end_sign) ++i;
    return s_.substr(i, 2) == "%}" ? i + 2 : std::string_view::npos;
  }

  Status lex_root() {
    size_t tag = pos_;
    for (;; ++tag) {
      tag = s_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= s_.size()) {
        add(TokenKind::data, std::string(s_.substr(pos_)));
        advance(s_.size());
        return Ok{};
      }
      if (s_[tag + 1] == '{' || s_[tag + 1] == '%' || s_[tag + 1] == '#') break;
    }
    const char type = s_[tag + 1];
    const char sign = sign_at(tag + 2);
    const std::string_view data = strip_before_tag(s_.substr(pos_, tag - pos_), sign, type == '{');
    if (!data.empty()) add(TokenKind::data, std::string(data));
    advance(tag);
    if (type == '%') {
      char end_sign = 0;
      const size_t raw = match_word_tag(tag, "raw", &end_sign);
      if (raw != std::string_view::npos && end_sign != '+') return lex_raw(end_sign == '-' ? skip_space(raw) : raw);
    }
    advance(tag + 2 + (sign ? 1 : 0));
    line_starting_ = false;
    if (type == '#') return lex_comment();
    add(type == '{' ? TokenKind::variable_begin : TokenKind::block_begin, "");
    return lex_tag(type == '{');
  }

  // Moves past a tag end and applies trim_blocks or `-`.
  void finish_tag(size_t end, char sign, bool trim_newline) {
    if (sign == '-') {
      end = skip_space(end);
    } else if (trim_newline && sign != '+' && end < s_.size() && s_[end] == '\n') {
      ++end;
    }
    line_starting_ = end > 0 && s_[end - 1] == '\n';
    advance(end);
  }

  Status lex_comment() {
    const size_t end = s_.find("#}", pos_);
    if (end == std::string_view::npos) return error("missing end of comment tag");
    const char before = end > pos_ ? s_[end - 1] : '\0';
    finish_tag(end + 2, before == '-' || before == '+' ? before : '\0', true);
    return Ok{};
  }

  Status lex_raw(size_t body) {
    advance(body);
    line_starting_ = body > 0 && s_[body - 1] == '\n';
    for (size_t tag = s_.find("{%", body); tag != std::string_view::npos; tag = s_.find("{%", tag + 1)) {
      char end_sign = 0;
      const size_t end = match_word_tag(tag, "endraw", &end_sign);
      if (end == std::string_view::npos) continue;
      const std::string_view data = strip_before_tag(s_.substr(body, tag - body), sign_at(tag + 2), false);
      if (!data.empty()) add(TokenKind::data, std::string(data));
      finish_tag(end, end_sign, true);
      return Ok{};
    }
    return error("missing end of raw directive");
  }

  // Tokens up to `}}` or `%}`. Inside brackets those two are operators, so `{{ {'a': {}} }}` works.
  Status lex_tag(bool is_variable) {
    const std::string_view close = is_variable ? "}}" : "%}";
    std::string brackets;
    while (true) {
      advance(skip_space(pos_));
      if (pos_ >= s_.size()) {
        return error(is_variable ? "unexpected end of template, expected '}}'"
                                 : "unexpected end of template, expected '%}'");
      }
      if (brackets.empty()) {
        const char sign = at(close) ? '\0' : s_[pos_];
        const bool signed_end = (sign == '-' || (sign == '+' && !is_variable)) && s_.substr(pos_ + 1, 2) == close;
        if (at(close) || signed_end) {
          add(is_variable ? TokenKind::variable_end : TokenKind::block_end, "");
          finish_tag(pos_ + 2 + (signed_end ? 1 : 0), signed_end ? sign : '\0', !is_variable);
          return Ok{};
        }
      }
      TRY(lex_token(brackets));
    }
  }

  Status lex_token(std::string& brackets) {
    const char c = s_[pos_];
    if (is_ascii_digit(c)) return lex_number();
    if (c == '\'' || c == '"') return lex_string(c);
    const CodePoint first = decode_at(s_, pos_);
    if (is_identifier_start(first.value)) {
      size_t end = pos_ + first.n_bytes;
      while (end < s_.size()) {
        const CodePoint next = decode_at(s_, end);
        if (!is_identifier_part(next.value)) break;
        end += next.n_bytes;
      }
      add(TokenKind::name, std::string(s_.substr(pos_, end - pos_)));
      advance(end);
      return Ok{};
    }
    for (const std::string_view two : {"//", "**", "==", "!=", ">=", "<="}) {
      if (at(two)) return add_operator(two);
    }
    if (std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos) {
      return error("unexpected character '" + std::string(s_.substr(pos_, first.n_bytes)) + "'");
    }
    if (c == '(' || c == '[' || c == '{') {
      brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (brackets.empty()) return error(std::string("unexpected '") + c + "'");
      if (brackets.back() != c) {
        return error(std::string("unexpected '") + c + "', expected '" + brackets.back() + "'");
      }
      brackets.pop_back();
    }
    return add_operator(s_.substr(pos_, 1));
  }

  Status add_operator(std::string_view op) {
    add(TokenKind::op, std::string(op));
    advance(pos_ + op.size());
    return Ok{};
  }

  // Digits with single underscores between them; returns the position after them.
  size_t digits(size_t pos, bool (*accept)(char)) const {
    while (pos < s_.size() && (accept(s_[pos]) || (s_[pos] == '_' && pos + 1 < s_.size() && accept(s_[pos + 1])))) {
      ++pos;
    }
    return pos;
  }

  Status lex_number() {
    const char kind = pos_ + 1 < s_.size() ? static_cast<char>(s_[pos_ + 1] | 0x20) : '\0';
    if (s_[pos_] == '0' && (kind == 'x' || kind == 'o' || kind == 'b')) {
      const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : 2;
      bool (*accept)(char) = kind == 'x'   ? +[](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
                             : kind == 'o' ? +[](char c) { return c >= '0' && c <= '7'; }
                                           : +[](char c) { return c == '0' || c == '1'; };
      const size_t end = digits(pos_ + 2, accept);
      if (end > pos_ + 2) return add_integer(pos_ + 2, end, base);
    }
    size_t end = digits(pos_, is_ascii_digit);
    bool is_real = false;
    const bool after_dot = pos_ > 0 && s_[pos_ - 1] == '.';  // `a.0.5`: subscripts, not a real
    if (!after_dot) {
      if (end + 1 < s_.size() && s_[end] == '.' && is_ascii_digit(s_[end + 1])) {
        end = digits(end + 1, is_ascii_digit);
        is_real = true;
      }
      if (end < s_.size() && (s_[end] == 'e' || s_[end] == 'E')) {
        size_t exponent = end + 1;
        if (exponent < s_.size() && (s_[exponent] == '+' || s_[exponent] == '-')) ++exponent;
        if (exponent < s_.size() && is_ascii_digit(s_[exponent])) {
          end = digits(exponent, is_ascii_digit);
          is_real = true;
        }
      }
    }
    if (!is_real) {
      // A leading zero ends the number, as in Python: `012` is `0` and `12`.
      if (s_[pos_] == '0') {
        end = pos_ + 1;
        while (end < s_.size() && (s_[end] == '0' || (s_[end] == '_' && end + 1 < s_.size() && s_[end + 1] == '0'))) {
          ++end;
        }
      }
      return add_integer(pos_, end, 10);
    }
    std::string plain;
    for (const char c : s_.substr(pos_, end - pos_)) {
      if (c != '_') plain += c;
    }
    add(TokenKind::real, plain);
    tokens_.back().real = std::strtod(plain.c_str(), nullptr);
    advance(end);
    return Ok{};
  }

  Status add_integer(size_t begin, size_t end, int base) {
    std::string plain;
    for (const char c : s_.substr(begin, end - begin)) {
      if (c != '_') plain += c;
    }
    int64_t value = 0;
    const auto parsed = std::from_chars(plain.data(), plain.data() + plain.size(), value, base);
    if (parsed.ec != std::errc()) return error("integer " + plain.substr(0, 40) + " does not fit in 64 bits");
    add(TokenKind::integer, plain);
    tokens_.back().integer = value;
    advance(end);
    return Ok{};
  }

  Status lex_string(char quote) {
    size_t end = pos_ + 1;
    while (end < s_.size() && s_[end] != quote) end += s_[end] == '\\' ? 2 : 1;
    if (end >= s_.size()) return error("string without closing quote");
    TRY_ASSIGN(std::string text, unescape(s_.substr(pos_ + 1, end - pos_ - 1)));
    add(TokenKind::string, std::move(text));
    advance(end + 1);
    return Ok{};
  }

  // Python's "unicode-escape". Unknown escapes keep their backslash.
  Result<std::string> unescape(std::string_view raw) const {
    std::string out;
    for (size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\') {
        out += raw[i];
        continue;
      }
      const char c = raw[++i];
      switch (c) {
        case '\n': break;
        case '\\': out += '\\'; break;
        case '\'': out += '\''; break;
        case '"': out += '"'; break;
        case 'a': out += '\a'; break;
        case 'b': out += '\b'; break;
        case 'f': out += '\f'; break;
        case 'n': out += '\n'; break;
        case 'r': out += '\r'; break;
        case 't': out += '\t'; break;
        case 'v': out += '\v'; break;
        case 'x':
        case 'u':
        case 'U': {
          const size_t n_digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
          const std::string hex(raw.substr(i + 1, n_digits));
          uint32_t code = 0;
          const auto parsed = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
          if (hex.size() != n_digits || parsed.ptr != hex.data() + hex.size()) {
            return error(std::string("truncated \\") + c + " escape in a string");
          }
          if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
            return error("\\" + std::string(1, c) + hex + " is not a character");
          }
          append_utf8(code, out);
          i += n_digits;
          break;
        }
        default:
          if (c >= '0' && c <= '7') {
            int code = 0;
            size_t n = 0;
            for (; n < 3 && i + n < raw.size() && raw[i + n] >= '0' && raw[i + n] <= '7'; ++n) {
              code = code * 8 + (raw[i + n] - '0');
            }
            append_utf8(static_cast<char32_t>(code), out);
            i += n - 1;
          } else if (c == 'N') {
            return error("\\N escapes (characters by name) are not supported");
          } else {
            out += '\\';
            out += c;
          }
      }
    }
    return out;
  }

  std::string source_;
  std::string_view s_;
  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
};

}  // namespace

Error template_error(int line, const std::string& what) {
  return Error{Code::invalid_argument, "chat template, line " + std::to_string(line) + ": " + what};
}

Result<std::vector<Token>> tokenize(std::string_view source) {
  if (!is_valid_utf8(source)) return Error{Code::corrupt, "chat template is not valid UTF-8"};
  return Lexer(normalise_newlines(source)).run();
}

}  // namespace chimere::jinja
