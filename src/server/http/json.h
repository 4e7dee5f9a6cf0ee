// json.h  JSON at the border: parsing of hostile text with limits, writing of text that is always valid. For .cpp files
// of this folder; nothing outside it sees the library.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/http/http.h"

namespace chimere::server {

using Json = nlohmann::ordered_json;

inline constexpr int kMaxJsonDepth = 64;

// One JSON value and nothing behind it. Errors say where.
Result<Json> parse_json(std::string_view text, int max_depth = kMaxJsonDepth);

// Compact. Bytes that are no UTF-8 become U+FFFD.
std::string to_text(const Json& json);

// Status 200 with that text.
HttpResponse json_response(const Json& json);

// "a string", "a number", ... for messages.
const char* describe(const Json& json);

}  // namespace chimere::server
