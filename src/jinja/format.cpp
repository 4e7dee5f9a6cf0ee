// format.cpp  str() and repr().
#include "jinja/format.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "jinja/unicode.h"

namespace chimere::jinja {
namespace {

// Writes a value with the size limit in force: a small shared structure can print as a huge text.
class ReprWriter {
 public:
  explicit ReprWriter(Interpreter& in) : in_(in) {}

  Status write(const Value& v) {
    TRY(in_.tick());
    switch (v.kind()) {
      case Kind::missing:
      case Kind::undefined: return literal("Undefined");
      case Kind::none: return literal("None");
      case Kind::boolean: return literal(v.integer() ? "True" : "False");
      case Kind::integer: return literal(std::to_string(v.integer()));
      case Kind::big_integer: return literal(v.as<BigIntegerObject>().digits);
      case Kind::real: return literal(format_real(v.real()));
      case Kind::string: {
        const std::string quoted =
            (v.is_markup() ? "Markup(" : "") + quote_python(v.bytes()) + (v.is_markup() ? ")" : "");
        return add(quoted, v.text().any_input());
      }
      case Kind::list: return sequence(v, "[", "]");
      case Kind::tuple: return sequence(v, "(", v.items().size() == 1 ? ",)" : ")");
      case Kind::dict_keys: return sequence(v, "dict_keys([", "])");
      case Kind::dict_values: return sequence(v, "dict_values([", "])");
      case Kind::dict_items: return sequence(v, "dict_items([", "])");
      case Kind::range: return range(v);
      case Kind::dict: return dict(v.dict());
      case Kind::iterator: return literal(v.as<IteratorObject>().description);
      case Kind::name_space: {
        constexpr int kMaxNameSpaces = 32;  // they can contain each other
        if (++n_name_spaces_ > kMaxNameSpaces) return in_.exhausted("namespaces nested too deep to print");
        TRY(literal("<Namespace "));
        TRY(dict(v.as<DictObject>()));
        --n_name_spaces_;
        return literal(">");
      }
      case Kind::function: return literal("<function " + std::string(v.as<FunctionObject>().name) + ">");
      case Kind::macro: return literal("<Macro>");
      case Kind::loop: return literal("<LoopContext>");
    }
    return Ok{};
  }

  Text take() { return std::move(text_); }

 private:
  Status add(std::string_view bytes, bool is_input) {
    TRY(in_.check_bytes(text_.size() + bytes.size()));
    text_.append(bytes, is_input);
    return Ok{};
  }
  Status literal(std::string_view bytes) { return add(bytes, false); }

  Status sequence(const Value& v, const char* open, const char* close) {
    TRY(literal(open));
    bool first = true;
    for (const Value& item : v.items()) {
      if (!first) TRY(literal(", "));
      first = false;
      TRY(write(item));
    }
    return literal(close);
  }

  Status range(const Value& v) {
    const auto& items = v.items();
    const int64_t start = items.empty() ? 0 : items.front().integer();
    const int64_t step = items.size() < 2 ? 1 : items[1].integer() - items[0].integer();
    const int64_t stop = items.empty() ? 0 : items.back().integer() + (step > 0 ? 1 : -1);
    const std::string head = "range(" + std::to_string(start) + ", " + std::to_string(stop);
    return literal(step == 1 ? head + ")" : head + ", " + std::to_string(step) + ")");
  }

  Status dict(const DictObject& object) {
    TRY(literal("{"));
    bool first = true;
    for (const auto& [key, value] : object.entries) {
      if (!first) TRY(literal(", "));
      first = false;
      TRY(write(key));
      TRY(literal(": "));
      TRY(write(value));
    }
    return literal("}");
  }

  Interpreter& in_;
  Text text_;
  int n_name_spaces_ = 0;
};

}  // namespace

std::string format_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  std::string_view s(buffer, static_cast<size_t>(end - buffer));
  std::string sign;
  if (s.front() == '-') {
    sign = "-";
    s.remove_prefix(1);
  }
  const size_t e = s.find('e');
  std::string digits(1, s[0]);
  if (e > 1) digits += s.substr(2, e - 2);
  int exponent = 0;
  const char* exponent_begin = s.data() + e + (s[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_begin, s.data() + s.size(), exponent);
  constexpr int kMinFixed = -4, kMaxFixed = 16;
  if (exponent < kMinFixed || exponent >= kMaxFixed) {
    std::string mantissa = digits.substr(0, 1);
    if (digits.size() > 1) mantissa += "." + digits.substr(1);
    const int magnitude = std::abs(exponent);
    return sign + mantissa + (exponent < 0 ? "e-" : "e+") + (magnitude < 10 ? "0" : "") + std::to_string(magnitude);
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto n_whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= n_whole) return sign + digits + std::string(n_whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, n_whole) + "." + digits.substr(n_whole);
}

std::string quote_python(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  const auto hex = [&](const char* format, unsigned value) {
    char buffer[16];
    std::snprintf(buffer, sizeof(buffer), format, value);
    out += buffer;
  };
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decode_at(text, i);
    if (c.value == kInvalidChar) {
      hex("\\x%02x", static_cast<unsigned char>(text[i]));
    } else if (c.value == static_cast<char32_t>(quote) || c.value == '\\') {
      out += '\\';
      out += static_cast<char>(c.value);
    } else if (c.value == '\n') {
      out += "\\n";
    } else if (c.value == '\r') {
      out += "\\r";
    } else if (c.value == '\t') {
      out += "\\t";
    } else if (is_printable(c.value)) {
      out.append(text.substr(i, c.n_bytes));
    } else {
      const char* format = c.value < 0x100 ? "\\x%02x" : c.value < 0x10000 ? "\\u%04x" : "\\U%08x";
      hex(format, static_cast<unsigned>(c.value));
    }
    i += c.n_bytes;
  }
  out += quote;
  return out;
}

Result<Text> Interpreter::to_text(const Value& v) {
  if (v.is_string()) return v.text();
  if (v.is_undefined() || v.is_missing()) return Text();
  return repr(v);
}

Result<Text> Interpreter::repr(const Value& v) {
  ReprWriter writer(*this);
  TRY(writer.write(v));
  return writer.take();
}

}  // namespace chimere::jinja
