// format.h  Values as text, in Python's spelling, and Python's two formatting languages.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "jinja/eval.h"
#include "jinja/value.h"

namespace chimere::jinja {

// repr(float): the shortest digits that read back to the same number.
std::string format_real(double value);
// The text between quotes, quote chosen and escaped as repr(str) does.
std::string quote_python(std::string_view text);

// `format % arguments`.
Result<Value> percent_format(Interpreter& in, const Text& format, const Value& arguments);
// `format.format(*args, **kwargs)`.
Result<Value> brace_format(Interpreter& in, const Text& format, const CallArgs& args);

// One number or string laid out by a format spec ("[[fill]align][sign][0][width][,][.precision][type]").
// `is_input`: the spec, and so the fill character, came from input.
Result<Text> format_value(Interpreter& in, const Value& value, std::string_view spec, bool is_input);

}  // namespace chimere::jinja
