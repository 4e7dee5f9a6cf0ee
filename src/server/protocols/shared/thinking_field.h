// thinking_field.h  The field `thinking_control` of a request, the same in every protocol:
//
//   {"mode": "off" | "fast" | "quality" | "ultra", "window", "min_tokens", "close_above", "extend_below",
//    "max_extensions", "extension", "warning", "warn_before", "answer_tokens", "suppress_above", "release_below",
//    "triggers", "loop_guard", "loop_tokens", "loop_penalty"}
#pragma once

#include "orchestrator/thinking_options.h"
#include "server/protocols/shared/json_fields.h"

namespace chimere::server {

void read_thinking_control(JsonFields& fields, orchestrator::ThinkingOptions& options);

}  // namespace chimere::server
