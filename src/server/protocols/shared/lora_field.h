// lora_field.h  The field `lora` of a request: which adapters change the model for it.
#pragma once

#include <vector>

#include "orchestrator/chat_request.h"
#include "server/protocols/shared/json_fields.h"

namespace chimere::server {

// A name, an object {"name", "scale"}, or a list of these.
void read_lora(JsonFields& fields, std::vector<orchestrator::AdapterUse>& uses);

}  // namespace chimere::server
