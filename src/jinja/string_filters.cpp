// string_filters.cpp  Filters on text and numbers.
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <unordered_map>

#include "jinja/builtins.h"
#include "jinja/format.h"
#include "jinja/json.h"
#include "jinja/strings.h"

namespace chimere::jinja {
namespace {

template <Text (*convert)(const Text&)>
Result<Value> filter_convert(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("filter", args, {}, 0, nullptr));
  TRY_ASSIGN(const Text text, in.to_text(value));
  TRY(in.check_bytes(text.size()));
  return in.string(convert(text), value.is_markup());
}

Result<Value> filter_string(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("string", args, {}, 0, nullptr));
  if (value.is_string()) return value;
  TRY_ASSIGN(Text text, in.to_text(value));
  return in.string(std::move(text));
}

Result<Value> filter_safe(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("safe", args, {}, 0, nullptr));
  TRY_ASSIGN(Text text, in.to_text(value));
  return in.string(std::move(text), true);
}

Result<Value> filter_escape(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("escape", args, {}, 0, nullptr));
  if (value.is_markup()) return value;
  TRY_ASSIGN(const Text text, in.to_text(value));
  TRY(in.check_bytes(text.size()));
  return in.string(escape_html(text), true);
}

Result<Value> filter_trim(Interpreter& in, const Value& value, const CallArgs& args) {
  Value chars;
  TRY(in.bind("trim", args, {"chars"}, 0, &chars));
  TRY_ASSIGN(const Text text, in.to_text(value));
  TRY(in.tick(text.size() / 64));
  if (chars.is_missing() || chars.is_none()) return in.string(strip(text, nullptr, Side::both), value.is_markup());
  if (!chars.is_string()) return in.error("trim argument must be None or a string");
  TRY(in.tick(std::min(text.size(), size_t{1} << 20) * chars.bytes().size() / 64));
  return in.string(strip(text, &chars.bytes(), Side::both), value.is_markup());
}

Result<Value> filter_replace(Interpreter& in, const Value& value, const CallArgs& args) {
  Value a[3];
  TRY(in.bind("replace", args, {"old", "new", "count"}, 2, a));
  TRY_ASSIGN(const Text text, in.to_text(value));
  TRY_ASSIGN(const Text from, in.to_text(a[0]));
  TRY_ASSIGN(const Text to, in.to_text(a[1]));
  if (!a[2].is_missing() && !a[2].is_none() && !a[2].is_integral()) return in.error("replace count must be an integer");
  const int64_t max = a[2].is_integral() ? a[2].integer() : -1;
  TRY_ASSIGN(Text result, checked_replace(in, text, from.bytes(), to, max));
  return in.string(std::move(result));
}

Result<Value> filter_indent(Interpreter& in, const Value& value, const CallArgs& args) {
  Value a[3];
  TRY(in.bind("indent", args, {"width", "first", "blank"}, 0, a));
  if (value.is_undefined()) return in.error(value.as<UndefinedObject>().message);
  if (!value.is_string()) return in.error("indent needs a string");
  Text indention = Text::literal("    ");
  if (a[0].is_string()) {
    indention = a[0].text();
  } else if (a[0].is_integral()) {
    constexpr int64_t kMaxIndent = 10'000;
    if (a[0].integer() > kMaxIndent) return in.exhausted("indent larger than 10000");
    indention = Text::literal(std::string(static_cast<size_t>(std::max<int64_t>(0, a[0].integer())), ' '));
  } else if (!a[0].is_missing()) {
    return in.error("indent width must be an integer or a string");
  }
  Text source = value.text();
  source.append_literal("\n");
  TRY(in.check_bytes(source.memory_bytes() +
                     count_lines(source.bytes()) * (indention.memory_bytes() + sizeof(Text) + 2 * sizeof(Span))));
  const std::vector<Text> lines = split_lines(source, false);
  Text out;
  if (in.truth(a[1])) out.append(indention);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i) {
      out.append_literal("\n");
      if (!lines[i].empty() || in.truth(a[2])) out.append(indention);
    }
    out.append(lines[i]);
  }
  return in.string(std::move(out), value.is_markup());
}

Result<Value> filter_format(Interpreter& in, const Value& value, const CallArgs& args) {
  if (!args.positional.empty() && !args.keyword.empty()) {
    return in.error("format cannot handle positional and keyword arguments at the same time");
  }
  TRY_ASSIGN(const Text format, in.to_text(value));
  Value arguments;
  if (!args.keyword.empty()) {
    std::vector<std::pair<Value, Value>> entries;
    for (const auto& [key, argument] : args.keyword) {
      TRY_ASSIGN(Value name, in.literal(key));
      entries.emplace_back(std::move(name), argument);
    }
    TRY_ASSIGN(arguments, in.dict(std::move(entries)));
  } else {
    TRY_ASSIGN(arguments, in.sequence(Kind::tuple, args.positional));
  }
  return percent_format(in, format, arguments);
}

// int(text): optional blanks, sign, digits with single underscores.
bool parse_integer(std::string_view text, int base, int64_t* out) {
  const Text stripped = strip(Text::literal(std::string(text)), nullptr, Side::both);
  std::string digits;
  std::string_view s(stripped.bytes());
  if (!s.empty() && (s[0] == '+' || s[0] == '-')) {
    if (s[0] == '-') digits = "-";
    s.remove_prefix(1);
  }
  if (base == 16 && (s.starts_with("0x") || s.starts_with("0X"))) s.remove_prefix(2);
  if (base == 8 && (s.starts_with("0o") || s.starts_with("0O"))) s.remove_prefix(2);
  if (base == 2 && (s.starts_with("0b") || s.starts_with("0B"))) s.remove_prefix(2);
  if (s.empty() || s.front() == '_' || s.back() == '_' || s.front() == '-') return false;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '_' && s[i - 1] == '_') return false;
    if (s[i] != '_') digits += s[i];
  }
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), *out, base);
  return parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
}

bool parse_real(std::string_view text, double* out) {
  const Text stripped = strip(Text::literal(std::string(text)), nullptr, Side::both);
  const std::string& s = stripped.bytes();
  if (s.empty() || s.find_first_of("xXpP()") != std::string::npos) return false;
  char* end = nullptr;
  *out = std::strtod(s.c_str(), &end);
  return end == s.c_str() + s.size() && !std::isspace(static_cast<unsigned char>(s.front()));
}

Result<Value> filter_int(Interpreter& in, const Value& value, const CallArgs& args) {
  Value a[2];
  TRY(in.bind("int", args, {"default", "base"}, 0, a));
  const Value fallback = !a[0].is_missing() ? a[0] : Value(0);
  const int base =
      a[1].is_integral() && a[1].integer() >= 2 && a[1].integer() <= 36 ? static_cast<int>(a[1].integer()) : 10;
  if (value.is_undefined()) return in.error(value.as<UndefinedObject>().message);
  if (value.is_integral()) return Value(value.integer());
  double real = 0;
  if (value.is(Kind::real)) {
    real = value.real();
  } else if (value.is_string()) {
    int64_t parsed = 0;
    if (parse_integer(value.bytes(), base, &parsed)) return Value(parsed);
    if (!parse_real(value.bytes(), &real)) return fallback;
  } else if (value.is(Kind::big_integer)) {
    return value;
  } else {
    return fallback;
  }
  if (std::isnan(real)) return fallback;
  if (std::isinf(real)) return in.error("cannot convert float infinity to integer");
  if (!(std::fabs(real) < 9.2e18)) return in.error("number does not fit in 64 bits");
  return Value(static_cast<int64_t>(real));
}

Result<Value> filter_float(Interpreter& in, const Value& value, const CallArgs& args) {
  Value fallback;
  TRY(in.bind("float", args, {"default"}, 0, &fallback));
  if (value.is_undefined()) return in.error(value.as<UndefinedObject>().message);
  if (value.is_integral() || value.is(Kind::real)) return Value(value.real());
  double real = 0;
  if (value.is_string() && parse_real(value.bytes(), &real)) return Value(real);
  return fallback.is_missing() ? Value(0.0) : fallback;
}

Result<Value> filter_abs(Interpreter& in, const Value& value, const CallArgs& args) {
  TRY(in.bind("abs", args, {}, 0, nullptr));
  if (value.is(Kind::real)) return Value(std::fabs(value.real()));
  if (!value.is_integral()) return in.error(std::string("bad operand type for abs(): '") + type_name(value) + "'");
  if (value.integer() == std::numeric_limits<int64_t>::min()) return in.error("integer overflow");
  return Value(value.integer() < 0 ? -value.integer() : value.integer());
}

Result<Value> filter_round(Interpreter& in, const Value& value, const CallArgs& args) {
  Value a[2];
  TRY(in.bind("round", args, {"precision", "method"}, 0, a));
  if (!value.is_integral() && !value.is(Kind::real)) return in.error("round needs a number");
  if (!a[0].is_missing() && !a[0].is_integral()) return in.error("round precision must be an integer");
  const int64_t precision = !a[0].is_missing() ? a[0].integer() : 0;
  if (precision < -20 || precision > 20) return in.error("round precision out of range");
  const std::string method = a[1].is_string() ? a[1].bytes() : "common";
  if (method == "common") {
    if (value.is_integral() && precision >= 0) return Value(value.integer());
    // The decimal text of the number is rounded, half to even on the exact binary value, as Python does.
    if (precision >= 0) {
      TRY_ASSIGN(const Text text, format_value(in, value, "." + std::to_string(precision) + "f", false));
      return Value(std::strtod(text.bytes().c_str(), nullptr));
    }
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    const double rounded = std::nearbyint(value.real() / scale) * scale;
    if (value.is_integral()) return Value(static_cast<int64_t>(rounded));
    return Value(rounded);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return Value(std::ceil(value.real() * scale) / scale);
  if (method == "floor") return Value(std::floor(value.real() * scale) / scale);
  return in.error("round method must be common, ceil or floor");
}

Result<Value> filter_default(Interpreter& in, const Value& value, const CallArgs& args) {
  Value a[2];
  TRY(in.bind("default", args, {"default_value", "boolean"}, 0, a));
  const bool use_default = value.is_undefined() || (in.truth(a[1]) && !in.truth(value));
  if (!use_default) return value;
  if (!a[0].is_missing()) return a[0];
  return in.literal("");
}

}  // namespace

Builtin find_string_filter(std::string_view name) {
  static const std::unordered_map<std::string_view, Builtin> kFilters = {
      {"upper", filter_convert<upper>},
      {"lower", filter_convert<lower>},
      {"capitalize", filter_convert<capitalize>},
      {"title", filter_convert<filter_title>},
      {"string", filter_string},
      {"safe", filter_safe},
      {"e", filter_escape},
      {"escape", filter_escape},
      {"trim", filter_trim},
      {"replace", filter_replace},
      {"indent", filter_indent},
      {"format", filter_format},
      {"int", filter_int},
      {"float", filter_float},
      {"abs", filter_abs},
      {"round", filter_round},
      {"default", filter_default},
      {"d", filter_default},
      {"tojson", filter_tojson},
  };
  const auto it = kFilters.find(name);
  return it == kFilters.end() ? nullptr : it->second;
}

}  // namespace chimere::jinja
