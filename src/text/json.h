// json.h  JSON: hostile text is read under limits, written text is always valid. For .cpp files: the library's header is
// heavy.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace chimere {

using Json = nlohmann::ordered_json;

inline constexpr int kMaxJsonDepth = 64;

struct JsonLimits {
  int depth = kMaxJsonDepth;    // nested arrays and objects
  uint64_t values = 2'000'000;  // one costs the library up to fifty times its text
  // Json compares each key of an object with all before it; this is what all objects of a text may cost together.
  uint64_t key_comparisons = 50'000'000;
};

// Looks at brackets, commas and colons before the library builds anything: it would follow any depth with its stack. On
// malformed text the answer may be wrong, but then the parser refuses it.
Status check_json(std::string_view text, const JsonLimits& limits);

// What the library throws, without its prefix.
Error json_error(std::string_view what);

// One JSON value and nothing behind it. Errors say where.
template <class J = Json>
Result<J> parse_json(std::string_view text, const JsonLimits& limits = {}) {
  TRY(check_json(text, limits));
  try {
    return Result<J>{J::parse(text)};
  } catch (const nlohmann::json::exception& e) {
    return json_error(e.what());
  }
}

// Takes a value apart from its leaves on, without asking for memory. The library's destructor makes a list of all values
// of an array first, as long as the array, and ends the process where there is no memory for it. REQUIRES: a depth that
// parse_json accepts.
void take_apart(Json& json) noexcept;

// A large value of others' making, which goes so.
struct OwnedJson : Json {
  explicit OwnedJson(Json json) noexcept : Json(std::move(json)) {}
  OwnedJson(OwnedJson&&) = default;
  OwnedJson& operator=(OwnedJson&&) = default;
  ~OwnedJson() { take_apart(*this); }
};

// Compact. Bytes that are no UTF-8 become U+FFFD.
std::string to_text(const Json& json);

}  // namespace chimere
