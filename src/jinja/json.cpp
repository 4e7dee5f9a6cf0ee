// json.cpp  json.loads and json.dumps.
#include "jinja/json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "jinja/format.h"
#include "jinja/unicode.h"
#include "text/json.h"

namespace chimere::jinja {
namespace {

constexpr JsonLimits kLimits = {.depth = 100};

// Builds values straight from the parser's events, so that nothing is lost on the way: order, 1 versus 1.0, big
// integers.
class ValueBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit ValueBuilder(bool is_input) : is_input_(is_input) {}

  bool null() override { return add(Value()); }
  bool boolean(bool v) override { return add(Value(v)); }
  bool number_integer(number_integer_t v) override { return add(Value(static_cast<int64_t>(v))); }
  bool number_unsigned(number_unsigned_t v) override {
    if (v <= static_cast<number_unsigned_t>(INT64_MAX)) return add(Value(static_cast<int64_t>(v)));
    return add(big_integer(std::to_string(v)));
  }
  bool number_float(number_float_t v, const string_t& text) override {
    if (text.find_first_of(".eE") == string_t::npos) return add(big_integer(text));
    return add(Value(static_cast<double>(v)));
  }
  bool string(string_t& v) override { return add(Value::string(std::move(v), is_input_)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(true); }
  bool start_array(size_t) override { return open(false); }
  bool key(string_t& v) override {
    stack_.back().key = Value::string(std::move(v), is_input_);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    error_at_ = position;
    return false;
  }

  Value take() { return std::move(result_); }
  size_t error_at() const { return error_at_; }

 private:
  struct Level {
    bool is_object;
    Value key;
    std::vector<Value> items;
    std::vector<std::pair<Value, Value>> entries;
  };

  static Value big_integer(std::string digits) {
    auto object = std::make_shared<BigIntegerObject>();
    object->digits = std::move(digits);
    return Value(Kind::big_integer, std::move(object));
  }

  bool open(bool is_object) {
    stack_.push_back(Level{is_object, {}, {}, {}});
    return true;
  }

  bool close() {
    Level level = std::move(stack_.back());
    stack_.pop_back();
    return add(level.is_object ? Value::dict(std::move(level.entries)) : Value::list(std::move(level.items)));
  }

  bool add(Value value) {
    if (stack_.empty()) {
      result_ = std::move(value);
    } else if (stack_.back().is_object) {
      stack_.back().entries.emplace_back(std::move(stack_.back().key), std::move(value));
    } else {
      stack_.back().items.push_back(std::move(value));
    }
    return true;
  }

  bool is_input_;
  std::vector<Level> stack_;
  Value result_;
  size_t error_at_ = 0;
};

bool any_input(const Value& v) {
  switch (v.kind()) {
    case Kind::string: return v.text().any_input();
    case Kind::list:
    case Kind::tuple: return std::any_of(v.items().begin(), v.items().end(), any_input);
    case Kind::dict:
      return std::any_of(v.dict().entries.begin(), v.dict().entries.end(),
                         [](const auto& entry) { return any_input(entry.first) || any_input(entry.second); });
    default: return false;
  }
}

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool is_indented = false;
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

class JsonWriter {
 public:
  JsonWriter(Interpreter& in, const JsonStyle& style) : in_(in), style_(style) {}

  Status write(const Value& v) {
    TRY(in_.tick());
    switch (v.kind()) {
      case Kind::none: return add("null");
      case Kind::boolean: return add(v.integer() ? "true" : "false");
      case Kind::integer: return add(std::to_string(v.integer()));
      case Kind::big_integer: return add(v.as<BigIntegerObject>().digits);
      case Kind::real: return add(real(v.real()));
      case Kind::string: has_input_ = has_input_ || v.text().any_input(); return quoted(v.bytes());
      case Kind::list:
      case Kind::tuple: return sequence(v.items());
      case Kind::dict: return dict(v.dict());
      default: return in_.error(std::string("object of type ") + type_name(v) + " is not JSON serializable");
    }
  }

  Text take() { return Text(std::move(out_), has_input_); }

 private:
  Status add(std::string_view bytes) {
    TRY(in_.check_bytes(out_.size() + bytes.size()));
    out_ += bytes;
    return Ok{};
  }

  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return format_real(value);
  }

  Status quoted(std::string_view text) {
    TRY(in_.check_bytes(out_.size() + text.size()));
    out_ += '"';
    const auto escape = [&](unsigned unit) {
      char buffer[12];
      std::snprintf(buffer, sizeof(buffer), "\\u%04x", unit);
      out_ += buffer;
    };
    for (size_t i = 0; i < text.size();) {
      const CodePoint c = decode_at(text, i);
      switch (c.value) {
        case '"': out_ += "\\\""; break;
        case '\\': out_ += "\\\\"; break;
        case '\n': out_ += "\\n"; break;
        case '\r': out_ += "\\r"; break;
        case '\t': out_ += "\\t"; break;
        case '\b': out_ += "\\b"; break;
        case '\f': out_ += "\\f"; break;
        default:
          if (c.value >= 0x20 && (!style_.ensure_ascii || c.value < 0x7f || c.value == kInvalidChar)) {
            out_ += text.substr(i, c.n_bytes);
          } else if (c.value < 0x10000) {
            escape(c.value);
          } else {
            escape(0xd800 + ((c.value - 0x10000) >> 10));
            escape(0xdc00 + ((c.value - 0x10000) & 0x3ff));
          }
      }
      i += c.n_bytes;
    }
    out_ += '"';
    return in_.tick(text.size() / 64);
  }

  Status new_line() {
    if (!style_.is_indented) return Ok{};
    TRY(in_.check_bytes(out_.size() + 1 + style_.indent.size() * static_cast<size_t>(level_)));
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += style_.indent;
    return Ok{};
  }

  Status sequence(const std::vector<Value>& items) {
    if (items.empty()) return add("[]");
    TRY(add("["));
    ++level_;
    TRY(new_line());
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) {
        TRY(add(style_.item_separator));
        TRY(new_line());
      }
      TRY(write(items[i]));
    }
    --level_;
    TRY(new_line());
    return add("]");
  }

  Status key(const Value& v) {
    switch (v.kind()) {
      case Kind::string: return write(v);
      case Kind::boolean: return add(v.integer() ? "\"true\"" : "\"false\"");
      case Kind::none: return add("\"null\"");
      case Kind::integer: return add("\"" + std::to_string(v.integer()) + "\"");
      case Kind::real: return add("\"" + real(v.real()) + "\"");
      default: return in_.error(std::string("JSON keys must be strings or numbers, not ") + type_name(v));
    }
  }

  Status dict(const DictObject& object) {
    if (object.entries.empty()) return add("{}");
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : object.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      const bool all_strings =
          std::all_of(entries.begin(), entries.end(), [](auto* e) { return e->first.is_string(); });
      if (!all_strings) return in_.error("sort_keys needs string keys");
      std::stable_sort(entries.begin(), entries.end(),
                       [](auto* a, auto* b) { return a->first.bytes() < b->first.bytes(); });
    }
    TRY(add("{"));
    ++level_;
    TRY(new_line());
    bool first = true;
    for (const auto* entry : entries) {
      if (!first) {
        TRY(add(style_.item_separator));
        TRY(new_line());
      }
      first = false;
      TRY(key(entry->first));
      TRY(add(style_.key_separator));
      TRY(write(entry->second));
    }
    --level_;
    TRY(new_line());
    return add("}");
  }

  Interpreter& in_;
  const JsonStyle& style_;
  std::string out_;
  bool has_input_ = false;
  int level_ = 0;
};

}  // namespace

Result<Value> value_from_json(std::string_view json, bool is_input) {
  TRY(check_json(json, kLimits));
  ValueBuilder builder(is_input);
  if (!Json::sax_parse(json.begin(), json.end(), &builder)) {
    return Error{Code::invalid_argument, "not valid JSON at byte " + std::to_string(builder.error_at())};
  }
  return builder.take();
}

Result<Value> filter_tojson(Interpreter& in, const Value& value, const CallArgs& args) {
  Value a[4];
  TRY(in.bind("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, a));
  JsonStyle style;
  style.ensure_ascii = in.truth(a[0]);
  style.sort_keys = in.truth(a[3]);
  if (a[1].is_integral()) {
    style.is_indented = true;
    constexpr int64_t kMaxIndent = 1000;
    if (a[1].integer() > kMaxIndent) return in.exhausted("tojson indent larger than 1000");
    style.indent.assign(static_cast<size_t>(std::max<int64_t>(0, a[1].integer())), ' ');
    style.item_separator = ",";
  } else if (a[1].is_string()) {
    style.is_indented = true;
    style.indent = a[1].bytes();
    style.item_separator = ",";
  } else if (!a[1].is_none() && !a[1].is_missing()) {
    return in.error("tojson indent must be an integer or a string");
  }
  bool separators_are_input = false;
  if (!a[2].is_none() && !a[2].is_missing()) {
    TRY_ASSIGN(const std::vector<Value> separators, in.iterate(a[2]));
    if (separators.size() != 2 || !separators[0].is_string() || !separators[1].is_string()) {
      return in.error("tojson separators must be two strings");
    }
    style.item_separator = separators[0].bytes();
    style.key_separator = separators[1].bytes();
    separators_are_input = any_input(a[2]);
  }
  JsonWriter writer(in, style);
  TRY(writer.write(value));
  Text text = writer.take();
  const bool indent_is_input = a[1].is_string() && a[1].text().any_input();
  if (separators_are_input || indent_is_input) text = Text(text.bytes(), true);
  return in.string(std::move(text));
}

}  // namespace chimere::jinja
