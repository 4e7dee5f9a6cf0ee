// string_methods.cpp  The methods of str.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "jinja/builtins.h"
#include "jinja/format.h"
#include "jinja/strings.h"

namespace chimere::jinja {
namespace {

// What a part of a split text takes until it becomes a value.
constexpr size_t kPartBytes = sizeof(Text);

Result<Value> same_kind(Interpreter& in, const Value& self, Text text) {
  return in.string(std::move(text), self.is_markup());
}

Result<Value> texts_to_list(Interpreter& in, std::vector<Text> texts, Kind kind = Kind::list) {
  std::vector<Value> items;
  items.reserve(texts.size());
  for (Text& text : texts) {
    TRY_ASSIGN(Value item, in.string(std::move(text)));
    items.push_back(std::move(item));
  }
  return in.sequence(kind, std::move(items));
}

template <Side side>
Result<Value> method_strip(Interpreter& in, const Value& self, const CallArgs& args) {
  Value chars;
  TRY(in.bind("strip", args, {"/chars"}, 0, &chars));
  TRY(in.tick(self.text().size() / 64));
  if (chars.is_missing() || chars.is_none()) return same_kind(in, self, strip(self.text(), nullptr, side));
  if (!chars.is_string()) return in.error("strip argument must be None or a string");
  // Work is characters stripped times the size of the set.
  TRY(in.tick(std::min(self.text().size(), size_t{1} << 20) * chars.bytes().size() / 64));
  return same_kind(in, self, strip(self.text(), &chars.bytes(), side));
}

template <Text (*convert)(const Text&)>
Result<Value> method_convert(Interpreter& in, const Value& self, const CallArgs& args) {
  TRY(in.bind("method", args, {}, 0, nullptr));
  TRY(in.check_bytes(self.text().size()));
  return same_kind(in, self, convert(self.text()));
}

template <bool from_right>
Result<Value> method_split(Interpreter& in, const Value& self, const CallArgs& args) {
  Value a[2];
  TRY(in.bind("split", args, {"sep", "maxsplit"}, 0, a));
  int64_t max = -1;
  if (!a[1].is_missing()) {
    if (!a[1].is_integral()) return in.error("maxsplit must be an integer");
    max = a[1].integer();
  }
  TRY(in.tick(self.text().size() / 16));
  if (a[0].is_missing() || a[0].is_none()) {
    TRY(in.check_bytes(count_words(self.bytes()) * kPartBytes));
    return texts_to_list(in, from_right ? rsplit_whitespace(self.text(), max) : split_whitespace(self.text(), max));
  }
  if (!a[0].is_string()) return in.error(std::string("must be str or None, not ") + type_name(a[0]));
  if (a[0].text().empty()) return in.error("empty separator");
  TRY(in.check_bytes(count_occurrences(self.bytes(), a[0].bytes()) * kPartBytes));
  return texts_to_list(in, from_right ? rsplit(self.text(), a[0].bytes(), max) : split(self.text(), a[0].bytes(), max));
}

Result<Value> method_splitlines(Interpreter& in, const Value& self, const CallArgs& args) {
  Value keep;
  TRY(in.bind("splitlines", args, {"keepends"}, 0, &keep));
  TRY(in.check_bytes(count_lines(self.bytes()) * kPartBytes));
  return texts_to_list(in, split_lines(self.text(), in.truth(keep)));
}

template <bool from_right>
Result<Value> method_partition(Interpreter& in, const Value& self, const CallArgs& args) {
  Value separator;
  TRY(in.bind("partition", args, {"/sep"}, 1, &separator));
  if (!separator.is_string() || separator.text().empty()) return in.error("partition needs a separator string");
  const std::string& s = self.bytes();
  TRY(in.tick(s.size() / 16));
  const size_t at = from_right ? rfind_bytes(s, separator.bytes()) : find_bytes(s, separator.bytes(), 0);
  std::vector<Text> parts(3);
  if (at == std::string::npos) {
    parts[from_right ? 2 : 0] = self.text();
  } else {
    parts[0] = self.text().slice(0, at);
    parts[1] = self.text().slice(at, at + separator.bytes().size());
    parts[2] = self.text().slice(at + separator.bytes().size(), s.size());
  }
  return texts_to_list(in, std::move(parts), Kind::tuple);
}

// The part of the text that the optional start and end arguments of find(), startswith() and others select, in bytes.
struct Window {
  size_t begin = 0, end = 0;
  bool is_valid = true;  // false: start lies beyond the end
};

Result<Window> window(Interpreter& in, const Value& self, const Value& start, const Value& stop) {
  const std::string& s = self.bytes();
  Window w{0, s.size(), true};
  const bool has_start = !start.is_missing() && !start.is_none(), has_stop = !stop.is_missing() && !stop.is_none();
  if (!has_start && !has_stop) return w;
  if ((has_start && !start.is_integral()) || (has_stop && !stop.is_integral())) {
    return in.error("slice indices must be integers or None");
  }
  TRY_ASSIGN(const int64_t size, in.length(self));
  const auto clamp = [size](int64_t i) { return std::max<int64_t>(0, i < 0 ? (i < -size ? 0 : i + size) : i); };
  const int64_t first = has_start ? clamp(start.integer()) : 0;
  const int64_t last = has_stop ? std::min(clamp(stop.integer()), size) : size;
  w.is_valid = first <= size && first <= last;
  w.begin = byte_offset(s, static_cast<size_t>(std::min(first, size)));
  w.end = std::max(w.begin, byte_offset(s, static_cast<size_t>(last)));
  return w;
}

template <bool at_end>
Result<Value> method_affix(Interpreter& in, const Value& self, const CallArgs& args) {
  Value a[3];
  TRY(in.bind(at_end ? "endswith" : "startswith", args, {"/affix", "/start", "/end"}, 1, a));
  TRY_ASSIGN(const Window w, window(in, self, a[1], a[2]));
  const std::string_view s = std::string_view(self.bytes()).substr(w.begin, w.end - w.begin);
  const auto matches = [&](const Value& affix) {
    return w.is_valid && (at_end ? s.ends_with(affix.bytes()) : s.starts_with(affix.bytes()));
  };
  if (a[0].is_string()) return Value(matches(a[0]));
  if (!a[0].is(Kind::tuple)) {
    return in.error(std::string(at_end ? "endswith" : "startswith") + " first arg must be str or a tuple of str, not " +
                    type_name(a[0]));
  }
  for (const Value& affix : a[0].items()) {
    if (!affix.is_string()) return in.error("tuple for startswith or endswith must only contain str");
    if (matches(affix)) return Value(true);
  }
  return Value(false);
}

template <bool from_right, bool must_exist>
Result<Value> method_find(Interpreter& in, const Value& self, const CallArgs& args) {
  Value a[3];
  TRY(in.bind("find", args, {"/sub", "/start", "/end"}, 1, a));
  if (!a[0].is_string()) return in.error(std::string("find argument must be str, not ") + type_name(a[0]));
  TRY_ASSIGN(const Window w, window(in, self, a[1], a[2]));
  TRY(in.tick(self.bytes().size() / 16));
  const std::string_view s = std::string_view(self.bytes()).substr(w.begin, w.end - w.begin);
  size_t at = std::string_view::npos;
  if (w.is_valid) at = from_right ? rfind_bytes(s, a[0].bytes()) : find_bytes(s, a[0].bytes(), 0);
  if (at == std::string_view::npos) {
    if (must_exist) return in.error("substring not found");
    return Value(-1);
  }
  return Value(static_cast<int64_t>(count_code_points(std::string_view(self.bytes()).substr(0, w.begin + at))));
}

Result<Value> method_count(Interpreter& in, const Value& self, const CallArgs& args) {
  Value a[3];
  TRY(in.bind("count", args, {"/sub", "/start", "/end"}, 1, a));
  if (!a[0].is_string()) return in.error(std::string("count argument must be str, not ") + type_name(a[0]));
  TRY_ASSIGN(const Window w, window(in, self, a[1], a[2]));
  TRY(in.tick(self.bytes().size() / 16));
  if (!w.is_valid) return Value(0);
  return Value(static_cast<int64_t>(
      count_occurrences(std::string_view(self.bytes()).substr(w.begin, w.end - w.begin), a[0].bytes())));
}

Result<Value> method_replace(Interpreter& in, const Value& self, const CallArgs& args) {
  Value a[3];
  TRY(in.bind("replace", args, {"/old", "/new", "/count"}, 2, a));
  if (!a[0].is_string() || !a[1].is_string()) return in.error("replace arguments must be strings");
  int64_t max = -1;
  if (!a[2].is_missing()) {
    if (!a[2].is_integral()) return in.error("replace count must be an integer");
    max = a[2].integer();
  }
  const auto argument = [&](const Value& v) {
    return self.is_markup() && !v.is_markup() ? escape_html(v.text()) : v.text();
  };
  TRY_ASSIGN(Text text, checked_replace(in, self.text(), argument(a[0]).bytes(), argument(a[1]), max));
  return same_kind(in, self, std::move(text));
}

Result<Value> method_join(Interpreter& in, const Value& self, const CallArgs& args) {
  Value iterable;
  TRY(in.bind("join", args, {"/iterable"}, 1, &iterable));
  TRY_ASSIGN(const std::vector<Value> items, in.iterate(iterable));
  Text text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string()) {
      return in.error("sequence item " + std::to_string(i) + ": expected str instance, " + type_name(items[i]) +
                      " found");
    }
    TRY(in.check_bytes(text.size() + self.text().size() + items[i].text().size()));
    if (i) text.append(self.text());
    text.append(items[i].text());
  }
  return in.string(std::move(text), self.is_markup());
}

template <bool at_end>
Result<Value> method_remove_affix(Interpreter& in, const Value& self, const CallArgs& args) {
  Value affix;
  TRY(in.bind("removeprefix", args, {"/affix"}, 1, &affix));
  if (!affix.is_string()) return in.error("the affix to remove must be str");
  const std::string_view s(self.bytes());
  const size_t n = affix.bytes().size();
  const bool matches = at_end ? s.ends_with(affix.bytes()) : s.starts_with(affix.bytes());
  if (!matches) return self;
  return same_kind(in, self, at_end ? self.text().slice(0, s.size() - n) : self.text().slice(n, s.size()));
}

// center, ljust, rjust: `left_share` of the padding goes before the text, in halves.
template <int left_share>
Result<Value> method_justify(Interpreter& in, const Value& self, const CallArgs& args) {
  Value a[2];
  TRY(in.bind("justify", args, {"/width", "/fillchar"}, 1, a));
  if (!a[0].is_integral()) return in.error("width must be an integer");
  Text fill = Text::literal(" ");
  if (!a[1].is_missing()) {
    if (!a[1].is_string() || count_code_points(a[1].bytes()) != 1) {
      return in.error("the fill character must be exactly one character long");
    }
    fill = a[1].text();
  }
  TRY_ASSIGN(const int64_t size, in.length(self));
  if (a[0].integer() <= size) return self;
  const int64_t missing = a[0].integer() - size;
  if (missing > std::numeric_limits<int32_t>::max()) return in.exhausted("width too large");
  TRY(in.check_bytes(self.text().size() + static_cast<size_t>(missing) * fill.size()));
  // center() puts the odd character left when the width is odd.
  const int64_t before = left_share == 0 ? 0 : left_share == 2 ? missing : missing / 2 + (missing & a[0].integer() & 1);
  Text text;
  for (int64_t i = 0; i < before; ++i) text.append(fill);
  text.append(self.text());
  for (int64_t i = before; i < missing; ++i) text.append(fill);
  return same_kind(in, self, std::move(text));
}

Result<Value> method_zfill(Interpreter& in, const Value& self, const CallArgs& args) {
  Value width;
  TRY(in.bind("zfill", args, {"/width"}, 1, &width));
  if (!width.is_integral()) return in.error("width must be an integer");
  TRY_ASSIGN(const int64_t size, in.length(self));
  if (width.integer() <= size) return self;
  if (width.integer() > std::numeric_limits<int32_t>::max()) return in.exhausted("width too large");
  const auto missing = static_cast<size_t>(width.integer() - size);
  TRY(in.check_bytes(self.text().size() + missing));
  const size_t sign = !self.bytes().empty() && (self.bytes()[0] == '+' || self.bytes()[0] == '-') ? 1 : 0;
  Text text = self.text().slice(0, sign);
  text.append_literal(std::string(missing, '0'));
  text.append(self.text(), sign, self.text().size());
  return same_kind(in, self, std::move(text));
}

Result<Value> method_format(Interpreter& in, const Value& self, const CallArgs& args) {
  return brace_format(in, self.text(), args);
}

// True when every character satisfies the property and there is at least one.
template <bool (*property)(char32_t)>
Result<Value> method_all(Interpreter& in, const Value& self, const CallArgs& args) {
  TRY(in.bind("method", args, {}, 0, nullptr));
  TRY(in.tick(self.bytes().size() / 64));
  const std::string_view s(self.bytes());
  for (size_t i = 0; i < s.size();) {
    const CodePoint c = decode_at(s, i);
    if (!property(c.value)) return Value(false);
    i += c.n_bytes;
  }
  return Value(!s.empty());
}

bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c) || is_digit(c); }

Result<Value> method_isascii(Interpreter& in, const Value& self, const CallArgs& args) {
  TRY(in.bind("isascii", args, {}, 0, nullptr));
  return Value(std::all_of(self.bytes().begin(), self.bytes().end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

// islower, isupper: at least one cased character and none of the other case.
template <bool upper_wanted>
Result<Value> method_iscase(Interpreter& in, const Value& self, const CallArgs& args) {
  TRY(in.bind("method", args, {}, 0, nullptr));
  TRY(in.tick(self.bytes().size() / 64));
  const std::string_view s(self.bytes());
  bool found = false;
  for (size_t i = 0; i < s.size();) {
    const CodePoint c = decode_at(s, i);
    if (is_title(c.value) || (upper_wanted ? is_lower(c.value) : is_upper(c.value))) return Value(false);
    found = found || (upper_wanted ? is_upper(c.value) : is_lower(c.value));
    i += c.n_bytes;
  }
  return Value(found);
}

}  // namespace

Result<Text> checked_replace(Interpreter& in, const Text& text, const std::string& from, const Text& to, int64_t max) {
  TRY(in.tick(text.size() / 16));
  size_t n = count_occurrences(text.bytes(), from);
  if (max >= 0) n = std::min(n, static_cast<size_t>(max));
  TRY(in.check_bytes(text.memory_bytes()));
  size_t added = 0;
  if (__builtin_mul_overflow(n, to.memory_bytes() + 2 * sizeof(Span), &added))
    added = std::numeric_limits<size_t>::max();
  if (!to.empty()) TRY(in.check_bytes(added));
  return replace(text, from, to, max);
}

Builtin find_string_method(std::string_view name) {
  static const std::unordered_map<std::string_view, Builtin> kMethods = {
      {"strip", method_strip<Side::both>},
      {"lstrip", method_strip<Side::left>},
      {"rstrip", method_strip<Side::right>},
      {"upper", method_convert<upper>},
      {"lower", method_convert<lower>},
      {"capitalize", method_convert<capitalize>},
      {"title", method_convert<title>},
      {"split", method_split<false>},
      {"rsplit", method_split<true>},
      {"splitlines", method_splitlines},
      {"partition", method_partition<false>},
      {"rpartition", method_partition<true>},
      {"startswith", method_affix<false>},
      {"endswith", method_affix<true>},
      {"find", method_find<false, false>},
      {"rfind", method_find<true, false>},
      {"index", method_find<false, true>},
      {"rindex", method_find<true, true>},
      {"count", method_count},
      {"replace", method_replace},
      {"join", method_join},
      {"removeprefix", method_remove_affix<false>},
      {"removesuffix", method_remove_affix<true>},
      {"center", method_justify<1>},
      {"ljust", method_justify<0>},
      {"rjust", method_justify<2>},
      {"zfill", method_zfill},
      {"format", method_format},
      {"isalpha", method_all<is_alpha>},
      {"isalnum", method_all<is_alnum>},
      {"isdigit", method_all<is_digit>},
      {"isspace", method_all<is_space>},
      {"isascii", method_isascii},
      {"islower", method_iscase<false>},
      {"isupper", method_iscase<true>},
  };
  const auto it = kMethods.find(name);
  return it == kMethods.end() ? nullptr : it->second;
}

}  // namespace chimere::jinja
