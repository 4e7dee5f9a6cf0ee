// value.cpp  Construction, dictionaries and scalar comparison of template values.
#include "jinja/value.h"

#include <algorithm>
#include <limits>

namespace chimere::jinja {
namespace {

constexpr size_t kLinearSearch = 8;
constexpr size_t kNotFound = std::numeric_limits<size_t>::max();

}  // namespace

Value Value::undefined(std::string message) {
  auto object = std::make_shared<UndefinedObject>();
  object->message = std::move(message);
  return Value(Kind::undefined, std::move(object));
}

Value Value::string(Text text) {
  auto object = std::make_shared<StringObject>();
  object->text = std::move(text);
  return Value(Kind::string, std::move(object));
}

Value Value::list(std::vector<Value> items) {
  auto object = std::make_shared<SequenceObject>();
  for (const Value& item : items) object->depth = std::max(object->depth, item.depth() + 1);
  object->items = std::move(items);
  return Value(Kind::list, std::move(object));
}

Value Value::dict(std::vector<std::pair<Value, Value>> entries) {
  auto object = std::make_shared<DictObject>();
  for (auto& [key, value] : entries) {
    object->depth = std::max({object->depth, key.depth() + 1, value.depth() + 1});
    object->set(std::move(key), std::move(value));
  }
  return Value(Kind::dict, std::move(object));
}

const std::vector<Value>& Value::items() const { return as<SequenceObject>().items; }

size_t DictObject::position(std::string_view key) const {
  if (entries.size() > kLinearSearch) {
    const auto it = index_.find(key);
    return it == index_.end() ? kNotFound : it->second;
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].first.is_string() && entries[i].first.bytes() == key) return i;
  }
  return kNotFound;
}

size_t DictObject::position(const Value& key) const {
  if (key.is_string()) return position(std::string_view(key.bytes()));
  for (size_t i = 0; i < entries.size(); ++i) {
    if (scalar_equals(entries[i].first, key)) return i;
  }
  return kNotFound;
}

const Value* DictObject::find(const Value& key) const {
  const size_t i = position(key);
  return i == kNotFound ? nullptr : &entries[i].second;
}

const Value* DictObject::find(std::string_view key) const {
  const size_t i = position(key);
  return i == kNotFound ? nullptr : &entries[i].second;
}

void DictObject::set(Value key, Value value) {
  if (const size_t i = position(key); i != kNotFound) {
    entries[i].second = std::move(value);
    return;
  }
  entries.emplace_back(std::move(key), std::move(value));
  if (entries.size() == kLinearSearch + 1) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].first.is_string()) index_.emplace(entries[i].first.bytes(), i);
    }
  } else if (entries.size() > kLinearSearch && entries.back().first.is_string()) {
    index_.emplace(entries.back().first.bytes(), entries.size() - 1);
  }
}

bool scalar_equals(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.integer() == b.integer();
  if (a.is(Kind::big_integer) || b.is(Kind::big_integer)) {
    return a.kind() == b.kind() && a.as<BigIntegerObject>().digits == b.as<BigIntegerObject>().digits;
  }
  if (a.is_number() && b.is_number()) return a.real() == b.real();
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::string: return a.bytes() == b.bytes();
    case Kind::none:
    case Kind::undefined: return true;
    case Kind::tuple:
      return a.items().size() == b.items().size() &&
             std::equal(a.items().begin(), a.items().end(), b.items().begin(), scalar_equals);
    default: return a.identity() == b.identity();
  }
}

bool is_hashable(const Value& v) {
  switch (v.kind()) {
    case Kind::list:
    case Kind::dict:
    case Kind::dict_keys:
    case Kind::dict_items: return false;
    // Only tuples of scalars: comparing deeper ones could take time exponential in their depth.
    case Kind::tuple: return v.depth() <= 2 && std::all_of(v.items().begin(), v.items().end(), is_hashable);
    default: return true;
  }
}

const char* type_name(const Value& v) {
  switch (v.kind()) {
    case Kind::missing:
    case Kind::undefined: return "Undefined";
    case Kind::none: return "NoneType";
    case Kind::boolean: return "bool";
    case Kind::integer:
    case Kind::big_integer: return "int";
    case Kind::real: return "float";
    case Kind::string: return "str";
    case Kind::list: return "list";
    case Kind::tuple: return "tuple";
    case Kind::range: return "range";
    case Kind::dict_keys: return "dict_keys";
    case Kind::dict_values: return "dict_values";
    case Kind::dict_items: return "dict_items";
    case Kind::iterator: return "generator";
    case Kind::dict: return "dict";
    case Kind::name_space: return "Namespace";
    case Kind::function: return "function";
    case Kind::macro: return "Macro";
    case Kind::loop: return "LoopContext";
  }
  return "object";
}

}  // namespace chimere::jinja
