// odo_json.h  Runs of the orchestrator as JSON, and the field in which a request asks for one.
#pragma once

#include <string>
#include <vector>

#include "odo/odo.h"
#include "orchestrator/chat_chunk.h"
#include "server/http/json.h"
#include "server/protocols/shared/json_fields.h"

namespace chimere::server {

// {"mode", "route", "tools", "collections", "web", "pipeline", "files", "approve"}; and, as older clients of such orchestrators send them,
// `mode`, `pipeline`, `odo_route` (or `x_odo_route`), `chimere_search` and `odo_metadata.files` beside it. Their names go to `read`: who asks the model itself is told
// that they do nothing.
void read_odo(JsonFields& fields, odo::Ask& ask, std::vector<std::string>& read);

// [{"index", "stage", "state", "about", "ms", "tokens", "detail"}]
Json steps_json(const std::vector<orchestrator::StepReport>& steps);
// Adds {"odo": {"id", "route", "mode", "steps"}, "x_odo_route"} to an answer or a piece of one, where there is something to tell.
void add_run(Json& json, const orchestrator::ChatChunk& chunk);
Json trace_json(const odo::Trace& trace);

}  // namespace chimere::server
