// value.h  Names and text of metadata values, shared by messages and the summary.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gguf/gguf.h"

namespace chimere::gguf {

// "u32", "bool", "string", ...
std::string_view name(ValueType type);

// nullopt for an id the format does not define.
std::optional<ValueType> value_type_from_id(uint32_t id);

// Bytes of one element in the file; for strings the length field alone. REQUIRES: not array.
size_t min_element_bytes(ValueType type);

bool is_signed_int(ValueType type);
bool is_unsigned_int(ValueType type);
bool is_float(ValueType type);

// Whether `value` lies in the range of an integer type.
bool fits(ValueType type, uint64_t value);
bool fits(ValueType type, int64_t value);

// What a value is, for error messages: "u32 70000", "string of 12 bytes", "array of 3 i32".
std::string describe(const Value& value);

// A name from a file in quotes, safe to print: bytes outside printable ASCII as \xNN, long names cut.
std::string quoted(std::string_view name);

// A float with as few digits as read back the same f32 (or f64).
std::string float_text(double value, bool single);

}  // namespace chimere::gguf
