// json_fields.h  Reads the fields of one JSON object: checks types and ranges, remembers the first error, and knows
// which fields nobody asked for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/api_error.h"
#include "server/http/json.h"

namespace chimere::server {

// "name[3]"
inline std::string path_at(const std::string& name, size_t index) { return name + "[" + std::to_string(index) + "]"; }

class JsonFields {
 public:
  // `prefix` stands before field names in errors: "messages[2].". The object outlives the reader.
  JsonFields(const Json& object, std::string prefix = {}) : object_(object), prefix_(std::move(prefix)) {}

  // The field, or nullptr when it is absent or null; known from now on.
  const Json* find(const std::string& name);

  // Read into `out` and leave it alone when the field is absent, null or wrong.
  void number(const std::string& name, float& out, double low, double high);
  void integer(const std::string& name, int64_t& out, int64_t low, int64_t high);
  void integer(const std::string& name, int& out, int64_t low, int64_t high);
  void boolean(const std::string& name, bool& out);
  void string(const std::string& name, std::string& out);
  const Json* object(const std::string& name);
  const Json* array(const std::string& name);

  // Keeps the first error only.
  void fail(const std::string& name, const std::string& message);
  void fail_type(const std::string& name, const char* expected, const Json& found);

  bool ok() const { return !error_; }
  const ApiError& error() const { return *error_; }
  void take_error(const JsonFields& other);
  // An object further in, whose path from here is `name`: what is none of `keys` counts as unknown. The first ones do;
  // nobody reads a list of hundreds.
  void check_keys(const std::string& name, const Json& object, std::initializer_list<std::string_view> keys);
  // Names with their prefix: of the object in its order, then of those further in. What is null is not there.
  std::vector<std::string> unknown() const;
  // Names, without their prefix, of what was looked for and is there.
  std::vector<std::string> given() const;

 private:
  const Json& object_;
  const std::string prefix_;
  std::set<std::string> known_;
  std::vector<std::string> unknown_inside_;
  std::optional<ApiError> error_;
};

// Whether it can be the id of a token; whether the vocabulary has it is another question.
bool is_token_id(const Json& json);

}  // namespace chimere::server
