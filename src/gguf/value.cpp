#include "gguf/value.h"

#include <charconv>
#include <utility>

#include "base/check.h"

namespace chimere::gguf {
namespace {

constexpr std::string_view kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                       "bool", "string", "array", "u64", "i64", "f64"};
constexpr size_t kQuotedBytes = 96;

template <class V>
bool fits_type(ValueType type, V value) {
  switch (type) {
    case ValueType::u8: return std::in_range<uint8_t>(value);
    case ValueType::i8: return std::in_range<int8_t>(value);
    case ValueType::u16: return std::in_range<uint16_t>(value);
    case ValueType::i16: return std::in_range<int16_t>(value);
    case ValueType::u32: return std::in_range<uint32_t>(value);
    case ValueType::i32: return std::in_range<int32_t>(value);
    case ValueType::u64: return std::in_range<uint64_t>(value);
    case ValueType::i64: return std::in_range<int64_t>(value);
    default: return false;
  }
}

}  // namespace

std::string_view name(ValueType type) {
  const auto id = static_cast<uint32_t>(type);
  CHECK(id < std::size(kNames));
  return kNames[id];
}

std::optional<ValueType> value_type_from_id(uint32_t id) {
  if (id >= std::size(kNames)) return std::nullopt;
  return static_cast<ValueType>(id);
}

size_t min_element_bytes(ValueType type) {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8:
    case ValueType::boolean: return 1;
    case ValueType::u16:
    case ValueType::i16: return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32: return 4;
    case ValueType::u64:
    case ValueType::i64:
    case ValueType::f64:
    case ValueType::string: return 8;
    case ValueType::array: break;
  }
  CHECK(!"an element type with a size");
  return 0;
}

bool is_signed_int(ValueType type) {
  return type == ValueType::i8 || type == ValueType::i16 || type == ValueType::i32 || type == ValueType::i64;
}

bool is_unsigned_int(ValueType type) {
  return type == ValueType::u8 || type == ValueType::u16 || type == ValueType::u32 || type == ValueType::u64;
}

bool is_float(ValueType type) { return type == ValueType::f32 || type == ValueType::f64; }

bool fits(ValueType type, uint64_t value) { return fits_type(type, value); }
bool fits(ValueType type, int64_t value) { return fits_type(type, value); }

size_t Value::array_size() const {
  if (!is_array) return 0;
  if (const auto* v = std::get_if<std::vector<uint64_t>>(&data)) return v->size();
  if (const auto* v = std::get_if<std::vector<int64_t>>(&data)) return v->size();
  if (const auto* v = std::get_if<std::vector<double>>(&data)) return v->size();
  if (const auto* v = std::get_if<std::vector<bool>>(&data)) return v->size();
  if (const auto* v = std::get_if<std::vector<std::string>>(&data)) return v->size();
  return 0;
}

std::string describe(const Value& value) {
  const std::string type(name(value.type));
  if (value.is_array) return "array of " + std::to_string(value.array_size()) + " " + type;
  if (const auto* v = std::get_if<uint64_t>(&value.data)) return type + " " + std::to_string(*v);
  if (const auto* v = std::get_if<int64_t>(&value.data)) return type + " " + std::to_string(*v);
  if (const auto* v = std::get_if<bool>(&value.data)) return *v ? "bool true" : "bool false";
  if (const auto* v = std::get_if<double>(&value.data)) {
    return type + " " + float_text(*v, value.type == ValueType::f32);
  }
  if (const auto* v = std::get_if<std::string>(&value.data)) return "string of " + std::to_string(v->size()) + " bytes";
  return type;
}

std::string quoted(std::string_view name) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (const char c : name.substr(0, kQuotedBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  if (name.size() > kQuotedBytes) out += "...";
  return out + "'";
}

std::string float_text(double value, bool single) {
  char text[40];
  const auto end = single ? std::to_chars(text, text + sizeof text, static_cast<float>(value))
                          : std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

}  // namespace chimere::gguf
