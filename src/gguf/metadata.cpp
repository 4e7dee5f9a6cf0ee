// The readers and setters of gguf::Metadata.
#include <cmath>
#include <limits>

#include "base/check.h"
#include "gguf/gguf.h"
#include "gguf/value.h"

namespace chimere::gguf {
namespace {

Error missing(std::string_view key) { return Error{Code::not_found, "key " + quoted(key) + " is missing"}; }

Error wrong(std::string_view key, const std::string& expected, const std::string& found) {
  return Error{Code::invalid_argument, "key " + quoted(key) + ": expected " + expected + ", found " + found};
}

std::string range_text(int64_t min, int64_t max) {
  if (min == std::numeric_limits<int64_t>::min() && max == std::numeric_limits<int64_t>::max()) return "an integer";
  return "an integer in " + std::to_string(min) + ".." + std::to_string(max);
}

bool in_range(int64_t value, int64_t min, int64_t max) { return value >= min && value <= max; }

bool in_range(uint64_t value, int64_t min, int64_t max) {
  return max >= 0 && value <= static_cast<uint64_t>(max) && static_cast<int64_t>(value) >= min;
}

template <class Element>
Result<std::vector<int64_t>> checked_ints(std::string_view key, const std::vector<Element>& values, int64_t min,
                                          int64_t max) {
  std::vector<int64_t> out;
  out.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = values[i];
    if (!in_range(value, min, max)) {
      return wrong(key, range_text(min, max), std::to_string(value) + " at index " + std::to_string(i));
    }
    out.push_back(static_cast<int64_t>(value));
  }
  return Result<std::vector<int64_t>>{std::move(out)};
}

}  // namespace

const Value* Metadata::find(std::string_view key) const {
  const auto at = index_.find(key);
  return at == index_.end() ? nullptr : &entries_[at->second].second;
}

Result<int64_t> Metadata::get_int(std::string_view key, int64_t min, int64_t max) const {
  const Value* value = find(key);
  if (!value) return missing(key);
  if (const auto* v = std::get_if<uint64_t>(&value->data); v && in_range(*v, min, max)) return static_cast<int64_t>(*v);
  if (const auto* v = std::get_if<int64_t>(&value->data); v && in_range(*v, min, max)) return *v;
  return wrong(key, range_text(min, max), describe(*value));
}

Result<double> Metadata::get_float(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return missing(key);
  if (const auto* v = std::get_if<double>(&value->data); v && std::isfinite(*v)) return *v;
  if (const auto* v = std::get_if<uint64_t>(&value->data)) return static_cast<double>(*v);
  if (const auto* v = std::get_if<int64_t>(&value->data)) return static_cast<double>(*v);
  return wrong(key, "a finite number", describe(*value));
}

Result<bool> Metadata::get_bool(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return missing(key);
  if (const auto* v = std::get_if<bool>(&value->data)) return *v;
  if (const auto* v = std::get_if<uint64_t>(&value->data); v && *v <= 1) return *v == 1;
  if (const auto* v = std::get_if<int64_t>(&value->data); v && (*v == 0 || *v == 1)) return *v == 1;
  return wrong(key, "a bool or an integer 0 or 1", describe(*value));
}

Result<std::string_view> Metadata::get_string(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return missing(key);
  if (const auto* v = std::get_if<std::string>(&value->data)) return std::string_view(*v);
  return wrong(key, "a string", describe(*value));
}

Result<std::vector<int64_t>> Metadata::get_ints(std::string_view key, int64_t min, int64_t max) const {
  const Value* value = find(key);
  if (!value) return missing(key);
  if (const auto* v = std::get_if<std::vector<uint64_t>>(&value->data)) return checked_ints(key, *v, min, max);
  if (const auto* v = std::get_if<std::vector<int64_t>>(&value->data)) return checked_ints(key, *v, min, max);
  if (const auto* v = std::get_if<std::vector<bool>>(&value->data)) {
    return checked_ints(key, std::vector<int64_t>(v->begin(), v->end()), min, max);
  }
  return wrong(key, "an array of integers", describe(*value));
}

Result<std::vector<int64_t>> Metadata::get_int_per_layer(std::string_view key, size_t n, int64_t min,
                                                         int64_t max) const {
  const Value* value = find(key);
  if (!value) return missing(key);
  if (!value->is_array) {
    TRY_ASSIGN(const int64_t same, get_int(key, min, max));
    return Result<std::vector<int64_t>>{std::vector<int64_t>(n, same)};
  }
  if (value->array_size() != n) {
    return wrong(key, "an integer or an array of " + std::to_string(n) + " integers", describe(*value));
  }
  return get_ints(key, min, max);
}

Result<std::span<const std::string>> Metadata::get_strings(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return missing(key);
  if (const auto* v = std::get_if<std::vector<std::string>>(&value->data)) return std::span<const std::string>(*v);
  return wrong(key, "an array of strings", describe(*value));
}

Result<std::vector<float>> Metadata::get_floats(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return missing(key);
  const auto* values = std::get_if<std::vector<double>>(&value->data);
  if (!values) return wrong(key, "an array of floats", describe(*value));
  std::vector<float> out;
  out.reserve(values->size());
  for (size_t i = 0; i < values->size(); ++i) {
    const double v = (*values)[i];
    // Compared before the conversion: a double beyond the range of float has no defined float value.
    if (!(std::abs(v) <= std::numeric_limits<float>::max())) {
      return wrong(key, "finite floats", float_text(v, false) + " at index " + std::to_string(i));
    }
    out.push_back(static_cast<float>(v));
  }
  return Result<std::vector<float>>{std::move(out)};
}

Result<int64_t> Metadata::get_int_or(std::string_view key, int64_t min, int64_t max, int64_t fallback) const {
  if (!contains(key)) return fallback;
  return get_int(key, min, max);
}

Result<double> Metadata::get_float_or(std::string_view key, double fallback) const {
  if (!contains(key)) return fallback;
  return get_float(key);
}

Result<bool> Metadata::get_bool_or(std::string_view key, bool fallback) const {
  if (!contains(key)) return fallback;
  return get_bool(key);
}

void Metadata::set(std::string key, Value value) {
  const auto [at, inserted] = index_.try_emplace(key, entries_.size());
  if (inserted) {
    entries_.emplace_back(std::move(key), std::move(value));
  } else {
    entries_[at->second].second = std::move(value);
  }
}

void Metadata::set_int(std::string key, ValueType type, int64_t value) {
  CHECK(fits(type, value));
  if (is_unsigned_int(type)) {
    set(std::move(key), Value{type, false, static_cast<uint64_t>(value)});
  } else {
    set(std::move(key), Value{type, false, value});
  }
}

void Metadata::set_float(std::string key, double value) {
  set(std::move(key), Value{ValueType::f32, false, static_cast<double>(static_cast<float>(value))});
}

void Metadata::set_bool(std::string key, bool value) { set(std::move(key), Value{ValueType::boolean, false, value}); }

void Metadata::set_string(std::string key, std::string value) {
  set(std::move(key), Value{ValueType::string, false, std::move(value)});
}

}  // namespace chimere::gguf
