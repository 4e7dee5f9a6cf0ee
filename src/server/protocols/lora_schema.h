// lora_schema.h  The field `lora` of a request: which adapters change the model for it.
#pragma once

#include <vector>

#include "orchestrator/chat_request.h"
#include "server/protocols/json_fields.h"

namespace chimere::server {

// A name, an object {"name", "scale"}, or a list of these.
void read_lora(JsonFields& fields, std::vector<orchestrator::AdapterUse>& uses);

}  // namespace chimere::server
