// ops.cpp  Python's operators, subscripts and attribute access.
#include <algorithm>
#include <cmath>
#include <limits>

#include "jinja/builtins.h"
#include "jinja/eval.h"
#include "jinja/format.h"
#include "jinja/strings.h"

namespace chimere::jinja {
namespace {

// "'dict object'", as undefined values name their origin.
std::string object_name(const Value& v) {
  if (v.is_none()) return "None";
  return std::string(type_name(v)) + " object";
}

const char* op_symbol(BinaryOp op) {
  constexpr const char* kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};
  return kSymbols[static_cast<size_t>(op)];
}

double floor_mod(double a, double b) {
  const double m = std::fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}

bool integer_power(int64_t base, int64_t exponent, int64_t* out) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return false;
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return false;
  }
  *out = result;
  return true;
}

}  // namespace

bool Interpreter::truth(const Value& v) const {
  switch (v.kind()) {
    case Kind::missing:
    case Kind::undefined:
    case Kind::none: return false;
    case Kind::boolean:
    case Kind::integer: return v.integer() != 0;
    case Kind::real: return v.real() != 0;
    case Kind::string: return !v.text().empty();
    case Kind::dict: return !v.dict().entries.empty();
    default: return !v.is_sequence() || !v.items().empty();
  }
}

Result<int64_t> Interpreter::length(const Value& v) {
  switch (v.kind()) {
    case Kind::undefined: return int64_t{0};
    case Kind::string: TRY(tick(v.bytes().size() / 64)); return static_cast<int64_t>(count_code_points(v.bytes()));
    case Kind::dict: return static_cast<int64_t>(v.dict().entries.size());
    case Kind::loop: return loop_length(v.as<LoopObject>());
    default: break;
  }
  if (v.is_sequence()) return static_cast<int64_t>(v.items().size());
  return error(std::string("object of type '") + type_name(v) + "' has no len()");
}

Result<std::vector<Value>> Interpreter::iterate(const Value& v) {
  std::vector<Value> items;
  switch (v.kind()) {
    case Kind::undefined: return items;
    case Kind::string: {
      const std::string_view s(v.bytes());
      constexpr size_t kCharacterBytes = 200;  // a value and its string object
      TRY(check_bytes(s.size() * kCharacterBytes));
      for (size_t i = 0; i < s.size();) {
        const size_t n = decode_at(s, i).n_bytes;
        TRY_ASSIGN(Value character, string(v.text().slice(i, i + n)));
        items.push_back(std::move(character));
        i += n;
      }
      return items;
    }
    case Kind::dict:
      items.reserve(v.dict().entries.size());
      for (const auto& entry : v.dict().entries) items.push_back(entry.first);
      break;
    case Kind::iterator: {
      auto& iterator = v.as<IteratorObject>();
      items.assign(iterator.items.begin() + static_cast<std::ptrdiff_t>(iterator.pos), iterator.items.end());
      iterator.pos = iterator.items.size();
      if (iterator.error) return Error(*iterator.error);
      break;
    }
    default:
      if (!v.is_sequence()) return error(std::string("'") + type_name(v) + "' object is not iterable");
      items = v.items();
  }
  TRY(check_bytes(items.size() * sizeof(Value)));
  return items;
}

Result<bool> Interpreter::equals(const Value& a, const Value& b) {
  TRY(tick());
  if (a.kind() != b.kind()) return scalar_equals(a, b);
  switch (a.kind()) {
    case Kind::string: TRY(tick(a.bytes().size() / 64)); return a.bytes() == b.bytes();
    case Kind::dict: {
      const auto& left = a.dict().entries;
      if (left.size() != b.dict().entries.size()) return false;
      for (const auto& [key, value] : left) {
        if (!key.is_string()) TRY(tick(left.size()));
        const Value* other = b.dict().find(key);
        if (!other) return false;
        TRY_ASSIGN(const bool same, equals(value, *other));
        if (!same) return false;
      }
      return true;
    }
    default: break;
  }
  if (!a.is_sequence()) return scalar_equals(a, b);
  if (a.items().size() != b.items().size()) return false;
  for (size_t i = 0; i < a.items().size(); ++i) {
    TRY_ASSIGN(const bool same, equals(a.items()[i], b.items()[i]));
    if (!same) return false;
  }
  return true;
}

Result<bool> Interpreter::less(const Value& a, const Value& b, CompareOp op) {
  TRY(tick());
  const auto holds = [op](int order) {
    switch (op) {
      case CompareOp::lt: return order < 0;
      case CompareOp::le: return order <= 0;
      case CompareOp::gt: return order > 0;
      default: return order >= 0;
    }
  };
  if (a.is_integral() && b.is_integral()) {
    return holds(a.integer() < b.integer() ? -1 : a.integer() > b.integer() ? 1 : 0);
  }
  if (a.is_number() && b.is_number() && !a.is(Kind::big_integer) && !b.is(Kind::big_integer)) {
    const double x = a.real(), y = b.real();
    if (std::isnan(x) || std::isnan(y)) return false;
    return holds(x < y ? -1 : x > y ? 1 : 0);
  }
  if (a.is_string() && b.is_string()) {
    TRY(tick(std::min(a.bytes().size(), b.bytes().size()) / 64));
    return holds(a.bytes().compare(b.bytes()));  // UTF-8 sorts like code points
  }
  if (a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple))) {
    const size_t n = std::min(a.items().size(), b.items().size());
    for (size_t i = 0; i < n; ++i) {
      TRY_ASSIGN(const bool same, equals(a.items()[i], b.items()[i]));
      if (!same) return less(a.items()[i], b.items()[i], op);
    }
    return holds(a.items().size() < b.items().size() ? -1 : a.items().size() > b.items().size() ? 1 : 0);
  }
  for (const Value* v : {&a, &b}) {
    if (v->is_undefined()) return error(v->as<UndefinedObject>().message);
  }
  return error(std::string("cannot order '") + type_name(a) + "' and '" + type_name(b) + "'");
}

Result<bool> Interpreter::contains(const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::undefined: return false;
    case Kind::string:
      if (!item.is_string()) {
        return error(std::string("'in <string>' requires string as left operand, not ") + type_name(item));
      }
      TRY(tick((container.bytes().size() + item.bytes().size()) / 16));
      return find_bytes(container.bytes(), item.bytes(), 0) != std::string_view::npos;
    case Kind::dict:
      if (!is_hashable(item)) return error(std::string("unhashable type: '") + type_name(item) + "'");
      if (!item.is_string()) TRY(tick(container.dict().entries.size()));
      return container.dict().find(item) != nullptr;
    default: break;
  }
  TRY_ASSIGN(const std::vector<Value> items, iterate(container));
  for (const Value& candidate : items) {
    TRY_ASSIGN(const bool same, equals(candidate, item));
    if (same) return true;
  }
  return false;
}

Result<Value> Interpreter::repeat(const Value& sequence_value, int64_t n) {
  const size_t count = n < 0 ? 0 : static_cast<size_t>(n);
  const size_t unit =
      sequence_value.is_string() ? sequence_value.text().memory_bytes() : sequence_value.items().size() * sizeof(Value);
  size_t total = 0;
  if (__builtin_mul_overflow(unit, count, &total)) total = std::numeric_limits<size_t>::max();
  TRY(check_bytes(total));
  if (sequence_value.is_string()) {
    Text text;
    if (!sequence_value.text().empty()) {
      for (size_t i = 0; i < count; ++i) text.append(sequence_value.text());
    }
    return string(std::move(text), sequence_value.is_markup());
  }
  std::vector<Value> items;
  items.reserve(total / sizeof(Value));
  if (!sequence_value.items().empty()) {
    for (size_t i = 0; i < count; ++i) {
      items.insert(items.end(), sequence_value.items().begin(), sequence_value.items().end());
    }
  }
  return sequence(sequence_value.kind(), std::move(items));
}

Result<Value> Interpreter::binary(BinaryOp op, const Value& a, const Value& b) {
  for (const Value* v : {&a, &b}) {
    if (v->is_undefined() && !(op == BinaryOp::mod && a.is_string())) return error(v->as<UndefinedObject>().message);
  }
  if (a.is_number() && b.is_number()) return arithmetic(op, a, b);
  if (op == BinaryOp::add) {
    if (a.is_string() && b.is_string()) {
      TRY(check_bytes(a.text().size() + b.text().size()));
      const bool markup = a.is_markup() || b.is_markup();
      Text text = markup && !a.is_markup() ? escape_html(a.text()) : a.text();
      text.append(markup && !b.is_markup() ? escape_html(b.text()) : b.text());
      return string(std::move(text), markup);
    }
    if (a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple))) {
      TRY(check_bytes((a.items().size() + b.items().size()) * sizeof(Value)));
      std::vector<Value> items;
      items.reserve(a.items().size() + b.items().size());
      items.insert(items.end(), a.items().begin(), a.items().end());
      items.insert(items.end(), b.items().begin(), b.items().end());
      return sequence(a.kind(), std::move(items));
    }
  }
  if (op == BinaryOp::mul) {
    const auto repeats = [](const Value& v) { return v.is_string() || v.is(Kind::list) || v.is(Kind::tuple); };
    if (repeats(a) && b.is_integral()) return repeat(a, b.integer());
    if (repeats(b) && a.is_integral()) return repeat(b, a.integer());
  }
  if (op == BinaryOp::mod && a.is_string()) return percent_format(*this, a.text(), b);
  return error(std::string("unsupported operand types for ") + op_symbol(op) + ": '" + type_name(a) + "' and '" +
               type_name(b) + "'");
}

Result<Value> Interpreter::arithmetic(BinaryOp op, const Value& a, const Value& b) {
  if (a.is(Kind::big_integer) || b.is(Kind::big_integer)) return error("integer does not fit in 64 bits");
  const Error overflow = error("integer overflow");
  if (a.is_integral() && b.is_integral() && op != BinaryOp::div) {
    const int64_t x = a.integer(), y = b.integer();
    int64_t result = 0;
    switch (op) {
      case BinaryOp::add:
        if (__builtin_add_overflow(x, y, &result)) return overflow;
        return Value(result);
      case BinaryOp::sub:
        if (__builtin_sub_overflow(x, y, &result)) return overflow;
        return Value(result);
      case BinaryOp::mul:
        if (__builtin_mul_overflow(x, y, &result)) return overflow;
        return Value(result);
      case BinaryOp::floor_div:
      case BinaryOp::mod: {
        if (y == 0) return error("division by zero");
        if (y == -1) {
          if (op == BinaryOp::mod) return Value(int64_t{0});
          if (x == std::numeric_limits<int64_t>::min()) return overflow;
          return Value(-x);
        }
        int64_t quotient = x / y, remainder = x % y;
        if (remainder != 0 && (remainder < 0) != (y < 0)) {
          --quotient;
          remainder += y;
        }
        return Value(op == BinaryOp::mod ? remainder : quotient);
      }
      case BinaryOp::pow:
        if (y < 0) break;
        if (!integer_power(x, y, &result)) return overflow;
        return Value(result);
      case BinaryOp::div: break;
    }
  }
  const double x = a.real(), y = b.real();
  switch (op) {
    case BinaryOp::add: return Value(x + y);
    case BinaryOp::sub: return Value(x - y);
    case BinaryOp::mul: return Value(x * y);
    case BinaryOp::div:
      if (y == 0) return error("division by zero");
      return Value(x / y);
    case BinaryOp::floor_div:
      if (y == 0) return error("division by zero");
      return Value(std::floor((x - floor_mod(x, y)) / y + 0.5));
    case BinaryOp::mod:
      if (y == 0) return error("division by zero");
      return Value(floor_mod(x, y));
    case BinaryOp::pow: {
      if (x == 0 && y < 0) return error("zero cannot be raised to a negative power");
      if (x < 0 && y != std::floor(y)) return error("a negative number cannot be raised to a fractional power");
      const double result = std::pow(x, y);
      if (std::isinf(result) && !std::isinf(x) && !std::isinf(y)) return error("result too large");
      return Value(result);
    }
  }
  return Value();
}

Result<Value> Interpreter::get_attribute(const Value& object, const std::string& name) {
  switch (object.kind()) {
    case Kind::undefined: return error(object.as<UndefinedObject>().message);
    case Kind::loop: return loop_attribute(object, name);
    case Kind::name_space:
      if (name.empty() || name[0] != '_') {
        if (const Value* found = object.as<DictObject>().find(name)) return *found;
      }
      break;
    case Kind::macro:
      if (name == "name") {
        return literal(program_.names[static_cast<size_t>(object.as<MacroObject>().macro->name)]);
      }
      break;
    default: break;
  }
  if (is_mutating_method(object.kind(), name)) {
    return undefined("access to attribute '" + name + "' of '" + type_name(object) + "' object is unsafe");
  }
  if (const Builtin method = find_method(object.kind(), name)) return function("method", method, object);
  if (object.is(Kind::dict)) {
    if (const Value* found = object.dict().find(name)) return *found;
  }
  return undefined("'" + object_name(object) + "' has no attribute '" + name + "'" +
                   (object.is_string() ? left_out_note(NameKind::method, name) : ""));
}

Result<Value> Interpreter::get_item(const Value& object, const Value& key) {
  if (object.is_undefined()) return error(object.as<UndefinedObject>().message);
  if (object.is(Kind::dict) && is_hashable(key)) {
    if (!key.is_string()) TRY(tick(object.dict().entries.size() / 8));
    if (const Value* found = object.dict().find(key)) return *found;
  }
  if (key.is_integral() && (object.is(Kind::list) || object.is(Kind::tuple) || object.is(Kind::range))) {
    const auto size = static_cast<int64_t>(object.items().size());
    const int64_t index = key.integer() < 0 ? key.integer() + size : key.integer();
    if (index >= 0 && index < size) return object.items()[static_cast<size_t>(index)];
  }
  if (key.is_integral() && object.is_string()) {
    TRY_ASSIGN(const int64_t size, length(object));
    const int64_t index = key.integer() < 0 ? key.integer() + size : key.integer();
    if (index >= 0 && index < size) {
      const size_t begin = byte_offset(object.bytes(), static_cast<size_t>(index));
      return string(object.text().slice(begin, begin + decode_at(object.bytes(), begin).n_bytes), object.is_markup());
    }
  }
  if (key.is_string()) return get_attribute(object, key.bytes());
  TRY_ASSIGN(const Text shown, repr(key));
  return undefined(object_name(object) + " has no element " + shown.bytes().substr(0, 100));
}

Result<Value> Interpreter::slice(const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is_undefined()) return error(object.as<UndefinedObject>().message);
  const bool sliceable =
      object.is_string() || object.is(Kind::list) || object.is(Kind::tuple) || object.is(Kind::range);
  if (!sliceable) return error(std::string("'") + type_name(object) + "' object cannot be sliced");
  for (const Value* v : {&start, &stop, &step}) {
    if (!v->is_none() && !v->is_integral()) return error("slice indices must be integers or None");
  }
  TRY_ASSIGN(const int64_t size, length(object));
  const int64_t stride = step.is_none() ? 1 : step.integer();
  if (stride == 0) return error("slice step cannot be zero");
  const auto clamp = [&](const Value& v, int64_t missing) {
    if (v.is_none()) return missing;
    int64_t i = v.integer();
    if (i < 0) i = i < -size ? -1 : i + size;
    if (i < 0) return stride < 0 ? int64_t{-1} : int64_t{0};
    return std::min(i, stride < 0 ? size - 1 : size);
  };
  const int64_t first = clamp(start, stride < 0 ? size - 1 : 0);
  const int64_t last = clamp(stop, stride < 0 ? -1 : size);
  if (object.is_string() && stride == 1) {
    if (first >= last) return string(Text(), object.is_markup());
    const size_t begin = byte_offset(object.bytes(), static_cast<size_t>(first));
    const size_t n_bytes =
        byte_offset(std::string_view(object.bytes()).substr(begin), static_cast<size_t>(last - first));
    return string(object.text().slice(begin, begin + n_bytes), object.is_markup());
  }
  std::vector<size_t> offsets;
  if (object.is_string()) {
    TRY(check_bytes(object.bytes().size() * sizeof(size_t)));
    offsets = code_point_offsets(object.bytes());
  }
  Text text;
  std::vector<Value> items;
  // `last - i` cannot overflow: both lie within the size of the object.
  for (int64_t i = first; stride > 0 ? i < last : i > last;) {
    const auto at = static_cast<size_t>(i);
    if (object.is_string()) {
      text.append(object.text(), offsets[at], offsets[at + 1]);
    } else {
      items.push_back(object.items()[at]);
    }
    if (stride > 0 ? last - i <= stride : last - i >= stride) break;
    i += stride;
  }
  if (object.is_string()) return string(std::move(text), object.is_markup());
  return sequence(object.kind(), std::move(items));
}

Result<Value> Interpreter::loop_attribute(const Value& value, const std::string& name) {
  auto& loop = value.as<LoopObject>();
  if (name == "index0") return Value(loop.index0);
  if (name == "index") return Value(loop.index0 + 1);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "depth") return Value(loop.depth0 + 1);
  if (name == "depth0") return Value(loop.depth0);
  if (name == "last") {
    TRY_ASSIGN(const Value next, loop_peek(loop));
    return Value(next.is_missing());
  }
  if (name == "nextitem") {
    TRY_ASSIGN(Value next, loop_peek(loop));
    if (next.is_missing()) return undefined("there is no next item");
    return next;
  }
  if (name == "previtem") {
    if (loop.index0 == 0) return undefined("there is no previous item");
    return loop.before;
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    TRY_ASSIGN(const int64_t length, loop_length(loop));
    return Value(name == "length" ? length : name == "revindex" ? length - loop.index0 : length - loop.index0 - 1);
  }
  if (const Builtin method = find_method(Kind::loop, name)) return function("method", method, value);
  return undefined("'LoopContext object' has no attribute '" + name + "'");
}

}  // namespace chimere::jinja
