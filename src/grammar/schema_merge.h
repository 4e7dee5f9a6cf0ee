// schema_merge.h  Two schemas that must hold at once, as one.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace chimere::grammar {

// Says something about a schema, but nothing about what fits it.
bool is_annotation(std::string_view keyword);
// At least one keyword that is no annotation.
bool has_meaning(const nlohmann::ordered_json& schema);

// `where` is the place of the schemas, for messages.
Result<nlohmann::ordered_json> merge_schemas(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b,
                                             const std::string& where);

}  // namespace chimere::grammar
