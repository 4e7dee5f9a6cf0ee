// json_fields.cpp  Typed reading of fields, with messages that name them.
#include "server/protocols/shared/json_fields.h"

#include <algorithm>

namespace chimere::server {
namespace {

constexpr size_t kMaxUnknownInside = 32;

std::string shown(double value) {
  std::string text = Json(value).dump();
  if (text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0) text.resize(text.size() - 2);
  return text;
}

}  // namespace

const Json* JsonFields::find(const std::string& name) {
  known_.insert(name);
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

void JsonFields::fail(const std::string& name, const std::string& message) {
  if (error_) return;
  error_ = ApiError{400, prefix_ + name + ": " + message, "invalid_request_error", prefix_ + name, "invalid_value"};
}

void JsonFields::fail_type(const std::string& name, const char* expected, const Json& found) {
  fail(name, std::string("expected ") + expected + ", found " + describe(found));
}

void JsonFields::number(const std::string& name, float& out, double low, double high) {
  const Json* json = find(name);
  if (!json) return;
  if (!json->is_number()) return fail_type(name, "a number", *json);
  const double value = json->get<double>();
  if (!(value >= low && value <= high)) {
    return fail(name, "expected a number from " + shown(low) + " to " + shown(high) + ", found " + shown(value));
  }
  out = static_cast<float>(value);
}

void JsonFields::integer(const std::string& name, int64_t& out, int64_t low, int64_t high) {
  const Json* json = find(name);
  if (!json) return;
  const bool fits = json->is_number_integer() && !(json->is_number_unsigned() && json->get<uint64_t>() > INT64_MAX);
  if (!json->is_number()) return fail_type(name, "an integer", *json);
  if (!fits || json->get<int64_t>() < low || json->get<int64_t>() > high) {
    return fail(name, "expected an integer from " + std::to_string(low) + " to " + std::to_string(high) + ", found " +
                          json->dump());
  }
  out = json->get<int64_t>();
}

void JsonFields::integer(const std::string& name, int& out, int64_t low, int64_t high) {
  int64_t value = out;
  integer(name, value, low, high);
  out = static_cast<int>(value);
}

void JsonFields::boolean(const std::string& name, bool& out) {
  const Json* json = find(name);
  if (!json) return;
  if (!json->is_boolean()) return fail_type(name, "a boolean", *json);
  out = json->get<bool>();
}

void JsonFields::string(const std::string& name, std::string& out) {
  const Json* json = find(name);
  if (!json) return;
  if (!json->is_string()) return fail_type(name, "a string", *json);
  out = json->get<std::string>();
}

const Json* JsonFields::object(const std::string& name) {
  const Json* json = find(name);
  if (json && !json->is_object()) {
    fail_type(name, "an object", *json);
    return nullptr;
  }
  return json;
}

const Json* JsonFields::array(const std::string& name) {
  const Json* json = find(name);
  if (json && !json->is_array()) {
    fail_type(name, "an array", *json);
    return nullptr;
  }
  return json;
}

void JsonFields::take_error(const JsonFields& other) {
  if (!error_ && other.error_) error_ = other.error_;
}

void JsonFields::check_keys(const std::string& name, const Json& object, std::initializer_list<std::string_view> keys) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items()) {
    if (value.is_null() || std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    if (unknown_inside_.size() == kMaxUnknownInside) return;
    unknown_inside_.push_back(prefix_ + name + "." + key);
  }
}

std::vector<std::string> JsonFields::unknown() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.items()) {
    if (known_.count(name) == 0 && !value.is_null()) names.push_back(prefix_ + name);
  }
  names.insert(names.end(), unknown_inside_.begin(), unknown_inside_.end());
  return names;
}

std::vector<std::string> JsonFields::given() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.items()) {
    if (known_.count(name) > 0 && !value.is_null()) names.push_back(name);
  }
  return names;
}

bool is_token_id(const Json& json) {
  return json.is_number_integer() && json.get<int64_t>() >= 0 && json.get<int64_t>() <= INT32_MAX;
}

}  // namespace chimere::server
