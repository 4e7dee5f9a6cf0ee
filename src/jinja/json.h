// json.h  JSON text <-> template values.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "jinja/eval.h"
#include "jinja/value.h"

namespace chimere::jinja {

// Key order is kept; strings and keys are marked as input when `is_input`. Nesting is limited.
Result<Value> value_from_json(std::string_view json, bool is_input);

// json.dumps as a filter: tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False).
Result<Value> filter_tojson(Interpreter& in, const Value& value, const CallArgs& args);

}  // namespace chimere::jinja
