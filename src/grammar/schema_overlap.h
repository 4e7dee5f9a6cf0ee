// schema_overlap.h  Whether two schemas certainly have no value in common, which is what `oneOf` asks for.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

namespace chimere::grammar {

// Gives the schema that the value of a `$ref` names; null when there is none.
using ResolveRef = std::function<const nlohmann::ordered_json*(const nlohmann::ordered_json&)>;

// True when types, listed values or a property that both require tell them apart. False may also mean: not known.
bool exclude_each_other(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b, const ResolveRef& resolve,
                        int depth = 0);

}  // namespace chimere::grammar
