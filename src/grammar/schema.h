// schema.h  JSON schemas (draft 2020-12, the part that clients send) as grammars.
//
// Everything produced fits the schema. Not everything that fits is offered: properties come in the order they are
// declared in, and json_text.h says how documents are written. What a grammar can not express is refused with the
// keyword and its place, never passed over. docs/structured-output.md has the list.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "grammar/expression.h"

namespace chimere::grammar {

// A document that fits the schema, which is given as JSON text.
Result<ExprId> parse_schema(std::string_view schema, Grammar& grammar);
// The same for the schema at a place of `schema` (a JSON pointer with its #), whose own references still hold.
Result<ExprId> parse_schema_at(std::string_view schema, const std::string& place, Grammar& grammar);
// Any JSON object.
ExprId any_object(Grammar& grammar);

}  // namespace chimere::grammar
