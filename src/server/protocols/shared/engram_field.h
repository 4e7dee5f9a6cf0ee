// engram_field.h  The field `engram` of a request: which tables, passages and notes take part, and how much.
#pragma once

#include <string>

#include "orchestrator/chat_request.h"
#include "server/protocols/shared/json_fields.h"

namespace chimere::server {

// {"tables": ["medical", {"name": "code", "weight": 0.5}], "passages": "handbook", "top": 3, "notes": 3, "alpha": 1,
//  "phase": "answer" or "all"}
// Unknown fields inside of it are refused. As others call them: `engram_table` and `engram_alpha` beside it.
void read_engram(JsonFields& fields, orchestrator::MemoryUse& use);

// Whose own notes and table a request may use: that of its key, and below a key that of the `user` it names.
std::string memory_owner(const std::string& key_name, const std::string& user);

}  // namespace chimere::server
