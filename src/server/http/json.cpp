#include "server/http/json.h"

namespace chimere::server {

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
