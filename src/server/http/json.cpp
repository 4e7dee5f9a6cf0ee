// json.cpp  A look at the shape of a text before the library builds it.
#include "server/http/json.h"

namespace chimere::server {
namespace {

// What all objects of one text may cost together, in comparisons of keys.
constexpr uint64_t kMaxKeyComparisons = 50'000'000;
// A value costs the library up to fifty times its text.
constexpr uint64_t kMaxValues = 2'000'000;

// The library would build any depth, and compares each key of an object with all before it; so we look before it does.
// Brackets inside strings do not count. On malformed text the answer may be wrong, but then the parser refuses it.
Status check_shape(std::string_view text, int max_depth) {
  std::vector<uint64_t> keys;  // of each open object or array
  uint64_t comparisons = 0, values = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == ',' || c == '[' || c == '{') {
      if (++values > kMaxValues) {
        return Error{Code::invalid_argument,
                     "JSON: expected at most " + std::to_string(kMaxValues) + " values, found more"};
      }
      if (c == ',') continue;
      keys.push_back(0);
      if (keys.size() > static_cast<size_t>(max_depth)) {
        return Error{Code::invalid_argument,
                     "JSON: expected at most " + std::to_string(max_depth) + " nested arrays and objects, found more"};
      }
    } else if ((c == ']' || c == '}') && !keys.empty()) {
      keys.pop_back();
    } else if (c == ':' && !keys.empty()) {
      comparisons += keys.back()++;
      if (comparisons > kMaxKeyComparisons) {
        return Error{Code::invalid_argument,
                     "JSON: too many keys, found an object with " + std::to_string(keys.back())};
      }
    }
  }
  return Ok{};
}

}  // namespace

Result<Json> parse_json(std::string_view text, int max_depth) {
  TRY(check_shape(text, max_depth));
  try {
    return Result<Json>{Json::parse(text)};
  } catch (const nlohmann::json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without the part in brackets
    std::string_view what = e.what();
    const size_t end = what.find("] ");
    if (end != std::string_view::npos) what.remove_prefix(end + 2);
    return Error{Code::invalid_argument, "JSON: " + std::string(what)};
  }
}

std::string to_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

HttpResponse json_response(const Json& json) { return {200, {{"Content-Type", "application/json"}}, to_text(json)}; }

const char* describe(const Json& json) {
  switch (json.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: return "a string";
    case Json::value_t::boolean: return "a boolean";
    default: return "a number";
  }
}

}  // namespace chimere::server
