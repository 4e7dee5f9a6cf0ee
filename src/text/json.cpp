#include "text/json.h"

#include <vector>

namespace chimere {

Status check_json(std::string_view text, const JsonLimits& limits) {
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
      if (++values > limits.values) {
        return Error{Code::invalid_argument,
                     "JSON: expected at most " + std::to_string(limits.values) + " values, found more"};
      }
      if (c == ',') continue;
      keys.push_back(0);
      if (keys.size() > static_cast<size_t>(limits.depth)) {
        return Error{Code::invalid_argument, "JSON: expected at most " + std::to_string(limits.depth) +
                                                 " nested arrays and objects, found more"};
      }
    } else if ((c == ']' || c == '}') && !keys.empty()) {
      keys.pop_back();
    } else if (c == ':' && !keys.empty()) {
      comparisons += keys.back()++;
      if (comparisons > limits.key_comparisons) {
        return Error{Code::invalid_argument,
                     "JSON: too many keys, found an object with " + std::to_string(keys.back())};
      }
    }
  }
  return Ok{};
}

Error json_error(std::string_view what) {
  // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without the part in brackets
  if (const size_t end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
  return {Code::invalid_argument, "JSON: " + std::string(what)};
}

void take_apart(Json& json) noexcept {
  if (json.is_array()) {
    auto& items = json.get_ref<Json::array_t&>();
    for (Json& item : items) take_apart(item);
    items.clear();
  } else if (json.is_object()) {
    auto& fields = json.get_ref<Json::object_t&>();
    for (auto& field : fields) take_apart(field.second);
    fields.clear();
  }
}

std::string to_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace chimere
