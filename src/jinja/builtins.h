// builtins.h  Names that templates can use without defining them.
#pragma once

#include <string>
#include <string_view>

#include "jinja/eval.h"

namespace chimere::jinja {

// Null when there is no such name.
Builtin find_filter(std::string_view name);
Builtin find_test(std::string_view name);
Builtin find_global(std::string_view name);

// The methods of a value (`text.strip`), null when it has none of that name.
Builtin find_method(Kind kind, std::string_view name);
// Methods that exist but would change the value; the sandbox answers them with undefined.
bool is_mutating_method(Kind kind, std::string_view name);

// For the message about a name that was not found: whether it is one of Jinja's that we left out.
enum class NameKind { filter, test, global, method };
std::string left_out_note(NameKind kind, std::string_view name);

// `text` with `from` replaced by `to`, within the limits of the render.
Result<Text> checked_replace(Interpreter& in, const Text& text, const std::string& from, const Text& to, int64_t max);

Builtin find_string_filter(std::string_view name);
Builtin find_sequence_filter(std::string_view name);
Builtin find_string_method(std::string_view name);

}  // namespace chimere::jinja
