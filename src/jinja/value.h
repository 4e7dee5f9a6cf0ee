// value.h  The values a template computes with: Python's, as far as chat templates can tell.
//
// A Value is small and cheap to copy; strings and containers are shared and, except for namespaces, immutable (the
// sandbox the templates are written for forbids mutation too). Two safety rules hold for everything behind a shared
// pointer:
//  1. `depth` bounds the nesting, so recursion over a value (printing, comparing, destroying) is bounded.
//  2. `charge` returns its bytes to the Meter of the render that made it, so live memory is counted, not guessed.
// Namespaces and scopes can form cycles; the interpreter owns them and empties them when the render ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "jinja/text.h"

namespace chimere::jinja {

enum class Kind : uint8_t {
  missing,  // internal: a variable slot that holds nothing
  undefined,
  none,
  boolean,
  integer,
  big_integer,  // an integer beyond 64 bits from JSON: can be printed and compared for equality
  real,
  string,
  list,
  tuple,
  range,
  dict_keys,
  dict_values,
  dict_items,
  iterator,  // a Python generator: one pass, always true, no length
  dict,
  name_space,
  function,
  macro,
  loop,
};

// Bytes held by the values of one render.
struct Meter {
  size_t live_bytes = 0;
};

class Charge {
 public:
  Charge() = default;
  Charge(Meter* meter, size_t bytes) : meter_(meter), bytes_(bytes) { meter_->live_bytes += bytes_; }
  Charge(Charge&& other) noexcept : meter_(std::exchange(other.meter_, nullptr)), bytes_(other.bytes_) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(meter_, other.meter_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Charge() {
    if (meter_) meter_->live_bytes -= bytes_;
  }

 private:
  Meter* meter_ = nullptr;
  size_t bytes_ = 0;
};

struct Object {
  virtual ~Object() = default;
  int depth = 1;
  Charge charge;
};

struct StringObject : Object {
  Text text;
  bool markup = false;  // result of |safe or |escape: `+` with a plain string escapes that string
};
struct SequenceObject;
struct IteratorObject;
struct DictObject;
struct FunctionObject;
struct MacroObject;
struct LoopObject;
struct UndefinedObject : Object {
  std::string message;
};

class Value {
 public:
  Value() : kind_(Kind::none) {}
  Value(bool b) : kind_(Kind::boolean), integer_(b) {}
  Value(int i) : kind_(Kind::integer), integer_(i) {}
  Value(int64_t i) : kind_(Kind::integer), integer_(i) {}
  Value(double d) : kind_(Kind::real), real_(d) {}
  Value(const void*) = delete;  // a string literal must say whose text it is
  Value(Kind kind, std::shared_ptr<Object> object) : kind_(kind), object_(std::move(object)) {}

  static Value missing() { return Value(Kind::missing, nullptr); }
  static Value undefined(std::string message);
  // For values built before a render starts. `is_input` says whether the text came from a request.
  static Value string(std::string bytes, bool is_input) { return string(Text(std::move(bytes), is_input)); }
  static Value string(Text text);
  static Value list(std::vector<Value> items);
  static Value dict(std::vector<std::pair<Value, Value>> entries);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_undefined() const { return kind_ == Kind::undefined; }
  bool is_none() const { return kind_ == Kind::none; }
  bool is_missing() const { return kind_ == Kind::missing; }
  bool is_integral() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  bool is_number() const { return is_integral() || kind_ == Kind::real || kind_ == Kind::big_integer; }
  bool is_sequence() const { return kind_ >= Kind::list && kind_ <= Kind::dict_items; }  // has items()

  int64_t integer() const { return integer_; }  // REQUIRES: is_integral()
  double real() const { return kind_ == Kind::real ? real_ : static_cast<double>(integer_); }
  const Text& text() const { return as<StringObject>().text; }
  const std::string& bytes() const { return text().bytes(); }
  bool is_markup() const { return is_string() && as<StringObject>().markup; }
  const std::vector<Value>& items() const;  // REQUIRES: is_sequence()
  const DictObject& dict() const;           // REQUIRES: is(Kind::dict)
  int depth() const { return object_ ? object_->depth : 0; }
  const Object* identity() const { return object_.get(); }

  template <class T>
  T& as() const {
    return static_cast<T&>(*object_);
  }

 private:
  Kind kind_;
  union {
    int64_t integer_ = 0;
    double real_;
  };
  std::shared_ptr<Object> object_;
};

struct SequenceObject : Object {
  std::vector<Value> items;
};

struct IteratorObject : Object {
  std::vector<Value> items;
  size_t pos = 0;
  std::unique_ptr<Error> error;  // raised once the items are used up
  std::string description;       // as Python prints it
};

struct BigIntegerObject : Object {
  std::string digits;
};

// Insertion-ordered, as Python's dict. Keys compare by value; a string key is found through an index once there are
// many.
struct DictObject : Object {
  std::vector<std::pair<Value, Value>> entries;

  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);

 private:
  size_t position(const Value& key) const;
  size_t position(std::string_view key) const;
  std::unordered_map<std::string_view, size_t> index_;  // views into the key objects, which never move
};

inline const DictObject& Value::dict() const { return as<DictObject>(); }

// Numbers compare across kinds (1 == 1.0 == True); containers are not handled here (see Interpreter::equals).
bool scalar_equals(const Value& a, const Value& b);
bool is_hashable(const Value& v);
const char* type_name(const Value& v);  // as Python names it

}  // namespace chimere::jinja
