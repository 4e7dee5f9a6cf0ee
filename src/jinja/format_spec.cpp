// format_spec.cpp  `"%d of %s" % (1, x)` and `"{} of {name:>8}".format(1, name=x)`.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "jinja/format.h"
#include "jinja/unicode.h"

namespace chimere::jinja {
namespace {

constexpr int kMaxPrecision = 100;
constexpr int64_t kMaxWidth = 10'000;

struct Spec {
  std::string fill = " ";
  bool fill_is_input = false;
  char align = '\0';
  char sign = '-';
  bool zero = false;
  bool thousands = false;
  int64_t width = 0;
  int precision = -1;
  char type = '\0';
};

bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

// Digits at `pos`; -1 when there are none or the number is beyond the limit.
int64_t read_number(std::string_view s, size_t& pos, int64_t limit) {
  if (pos >= s.size() || !is_digit_char(s[pos])) return -1;
  int64_t n = 0;
  for (; pos < s.size() && is_digit_char(s[pos]); ++pos) n = std::min<int64_t>(n * 10 + (s[pos] - '0'), limit + 1);
  return n > limit ? -1 : n;
}

Result<Spec> parse_spec(Interpreter& in, std::string_view s) {
  Spec spec;
  size_t i = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!s.empty()) {
    const size_t n = decode_at(s, 0).n_bytes;
    if (n < s.size() && is_align(s[n])) {
      spec.fill = std::string(s.substr(0, n));
      spec.align = s[n];
      i = n + 1;
    } else if (is_align(s[0])) {
      spec.align = s[0];
      i = 1;
    }
  }
  if (i < s.size() && (s[i] == '+' || s[i] == '-' || s[i] == ' ')) spec.sign = s[i++];
  if (i < s.size() && s[i] == '0') {
    spec.zero = ++i > 0;
  }
  if (i < s.size() && is_digit_char(s[i])) {
    spec.width = read_number(s, i, kMaxWidth);
    if (spec.width < 0) return in.exhausted("format width beyond " + std::to_string(kMaxWidth));
  }
  if (i < s.size() && s[i] == ',') spec.thousands = ++i > 0;
  if (i < s.size() && s[i] == '.') {
    ++i;
    spec.precision = static_cast<int>(read_number(s, i, kMaxWidth));
    if (spec.precision < 0) return in.error("format specifier missing precision");
  }
  if (i < s.size()) spec.type = s[i++];
  if (i != s.size()) return in.error("invalid format specifier '" + std::string(s.substr(0, 40)) + "'");
  return spec;
}

std::string group_thousands(const std::string& digits) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i && (whole - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out + digits.substr(whole);
}

// The digits of |value| by type; false when the type does not fit a number.
bool number_digits(const Value& value, const Spec& spec, std::string* digits) {
  const bool is_real_type = spec.type && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (value.is_integral() && !is_real_type) {
    const int64_t n = value.integer();
    const uint64_t magnitude = n < 0 ? uint64_t{0} - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
    switch (spec.type) {
      case '\0':
      case 'n':
      case 'd': *digits = std::to_string(magnitude); return true;
      default: return false;
    }
  }
  double magnitude = std::fabs(value.real());
  if (spec.type == '\0' && spec.precision < 0) {
    *digits = format_real(magnitude);
    return true;
  }
  if (spec.type != '\0' && !is_real_type && spec.type != 'n') return false;
  if (spec.type == '%') magnitude *= 100;
  const char conversion = spec.type == '%' ? 'f' : (spec.type == '\0' || spec.type == 'n') ? 'g' : spec.type;
  const char format[] = {'%', '.', '*', conversion, '\0'};
  char buffer[512];
  std::snprintf(buffer, sizeof(buffer), format, std::min(spec.precision < 0 ? 6 : spec.precision, kMaxPrecision),
                magnitude);
  *digits = std::string(buffer) + (spec.type == '%' ? "%" : "");
  return true;
}

Text pad(const Text& text, const Spec& spec, char default_align, size_t sign_bytes) {
  const auto n = static_cast<int64_t>(count_code_points(text.bytes()));
  if (n >= spec.width) return text;
  const int64_t missing = spec.width - n;
  const char align = spec.align ? spec.align : default_align;
  const int64_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  const auto fill = [&](Text& out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) out.append(spec.fill, spec.fill_is_input);
  };
  Text out;
  if (align == '=') out.append(text, 0, sign_bytes);
  fill(out, before);
  out.append(text, align == '=' ? sign_bytes : 0, text.size());
  fill(out, missing - before);
  return out;
}

Result<Text> layout(Interpreter& in, const Value& value, Spec spec) {
  if (value.is_string() || !value.is_number() || value.is(Kind::big_integer)) {
    if (spec.type != '\0' && spec.type != 's') {
      return in.error(std::string("format code '") + spec.type + "' does not fit a value of type " + type_name(value));
    }
    TRY_ASSIGN(Text text, in.to_text(value));
    if (spec.precision >= 0) {
      size_t end = 0;
      for (int i = 0; i < spec.precision && end < text.size(); ++i) end += decode_at(text.bytes(), end).n_bytes;
      text = text.slice(0, end);
    }
    return pad(text, spec, '<', 0);
  }
  std::string digits;
  if (!number_digits(value, spec, &digits)) {
    return in.error(std::string("format code '") + spec.type + "' does not fit a value of type " + type_name(value));
  }
  if (spec.thousands) digits = group_thousands(digits);
  const bool negative = value.is_integral() ? value.integer() < 0 : std::signbit(value.real());
  const std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  if (spec.zero && !spec.align) {
    spec.fill = "0";
    spec.align = '=';
  }
  return pad(Text::literal(sign + digits), spec, '>', sign.size());
}

}  // namespace

Result<Text> format_value(Interpreter& in, const Value& value, std::string_view text, bool is_input) {
  TRY_ASSIGN(Spec spec, parse_spec(in, text));
  spec.fill_is_input = is_input;
  if (text.empty()) return in.to_text(value);
  return layout(in, value, std::move(spec));
}

Result<Value> percent_format(Interpreter& in, const Text& format, const Value& arguments) {
  const std::string_view s(format.bytes());
  Text out;
  size_t next_argument = 0;
  bool used_mapping = false;
  const auto take = [&]() -> Result<Value> {
    if (arguments.is(Kind::tuple)) {
      if (next_argument < arguments.items().size()) return arguments.items()[next_argument++];
    } else if (next_argument++ == 0) {
      return arguments;
    }
    return in.error("not enough arguments for format string");
  };
  size_t i = 0;
  while (i < s.size()) {
    const size_t percent = std::min(s.find('%', i), s.size());
    TRY(in.check_bytes(out.size() + (percent - i)));
    out.append(format, i, percent);
    if (percent == s.size()) break;
    i = percent + 1;
    Value value = Value::missing();
    if (i < s.size() && s[i] == '(') {
      const size_t close = s.find(')', i);
      if (close == std::string_view::npos) return in.error("incomplete format key");
      if (!arguments.is(Kind::dict)) return in.error("format requires a mapping");
      const Value* found = arguments.dict().find(s.substr(i + 1, close - i - 1));
      if (!found) return in.error("format key '" + std::string(s.substr(i + 1, close - i - 1)) + "' not found");
      value = *found;
      used_mapping = true;
      i = close + 1;
    }
    Spec spec;
    for (; i < s.size() && std::string_view("-+ 0").find(s[i]) != std::string_view::npos; ++i) {
      if (s[i] == '-') spec.align = '<';
      if (s[i] == '0') spec.zero = true;
      if (s[i] == '+' || s[i] == ' ') spec.sign = s[i];
    }
    if (i < s.size() && is_digit_char(s[i])) {
      spec.width = read_number(s, i, kMaxWidth);
      if (spec.width < 0) return in.exhausted("format width beyond " + std::to_string(kMaxWidth));
    }
    if (i < s.size() && s[i] == '.') {
      ++i;
      const bool has_digits = i < s.size() && is_digit_char(s[i]);
      spec.precision = has_digits ? static_cast<int>(read_number(s, i, kMaxWidth)) : 0;
      if (spec.precision < 0) return in.exhausted("format precision beyond " + std::to_string(kMaxWidth));
    }
    if (i >= s.size()) return in.error("incomplete format");
    const char type = s[i++];
    if (type == '%') {
      out.append(format, i - 1, i);
      continue;
    }
    if (value.is_missing()) {
      TRY_ASSIGN(value, take());
    }
    if (type == 's' || type == 'r' || type == 'a') {
      Result<Text> text = type == 's' ? in.to_text(value) : in.repr(value);
      if (!text) return std::move(text.error());
      TRY_ASSIGN(value, in.string(std::move(*text)));
      if (!spec.align) spec.align = '>';
      spec.type = 's';
    } else if (std::string_view("diueEfFgG").find(type) != std::string_view::npos) {
      if (!value.is_number() || value.is(Kind::big_integer)) {
        return in.error(std::string("%") + type + " format: a number is required, not " + type_name(value));
      }
      const bool is_integer_type = std::string_view("diu").find(type) != std::string_view::npos;
      if (is_integer_type && value.is(Kind::real)) {
        if (!(std::fabs(value.real()) < 9e18)) return in.error("number does not fit in 64 bits");
        value = Value(static_cast<int64_t>(value.real()));
      }
      spec.type = type == 'i' || type == 'u' ? 'd' : type;
      if (is_integer_type) spec.precision = -1;
    } else {
      return in.error(std::string("unsupported format character '") + type + "'");
    }
    TRY_ASSIGN(const Text piece, layout(in, value, std::move(spec)));
    TRY(in.check_bytes(out.size() + piece.size()));
    out.append(piece);
  }
  const bool consumed = arguments.is(Kind::tuple) ? next_argument == arguments.items().size()
                                                  : next_argument > 0 || used_mapping || arguments.is(Kind::dict);
  if (!consumed) return in.error("not all arguments converted during string formatting");
  return in.string(std::move(out));
}

Result<Value> brace_format(Interpreter& in, const Text& format, const CallArgs& args) {
  const std::string_view s(format.bytes());
  Text out;
  size_t next_argument = 0;
  for (size_t i = 0; i < s.size();) {
    const char c = s[i];
    if (c != '{' && c != '}') {
      const size_t end = std::min(s.find_first_of("{}", i), s.size());
      TRY(in.check_bytes(out.size() + (end - i)));
      out.append(format, i, end);
      i = end;
      continue;
    }
    if (i + 1 < s.size() && s[i + 1] == c) {
      out.append(format, i, i + 1);
      i += 2;
      continue;
    }
    if (c == '}') return in.error("single '}' encountered in format string");
    size_t close = i + 1;
    for (int depth = 1; close < s.size(); ++close) {
      if (s[close] == '{') ++depth;
      if (s[close] == '}' && --depth == 0) break;
    }
    if (close >= s.size()) return in.error("expected '}' before end of format string");
    std::string_view field = s.substr(i + 1, close - i - 1);
    i = close + 1;
    std::string_view spec;
    if (const size_t colon = field.find(':'); colon != std::string_view::npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    if (spec.find('{') != std::string_view::npos) return in.error("nested format fields are not supported");
    const std::string name(field);
    if (name.find_first_of(".[!") != std::string::npos) {
      return in.error("format field '" + name.substr(0, 40) + "': expected a name or a number, without .[! behind it");
    }
    Value value = Value::missing();
    if (name.empty() || is_digit_char(name[0])) {
      size_t pos = 0;
      const int64_t given = name.empty() ? static_cast<int64_t>(next_argument++) : read_number(name, pos, kMaxWidth);
      if (given >= 0 && static_cast<size_t>(given) < args.positional.size()) {
        value = args.positional[static_cast<size_t>(given)];
      }
    } else {
      for (const auto& [key, argument] : args.keyword) {
        if (key == name) value = argument;
      }
    }
    if (value.is_missing()) return in.error("no argument for format field '" + name + "'");
    TRY_ASSIGN(const Text piece, format_value(in, value, spec, format.any_input()));
    TRY(in.check_bytes(out.size() + piece.size()));
    out.append(piece);
  }
  return in.string(std::move(out));
}

}  // namespace chimere::jinja
