// learning_json.h  Kept answers as JSON.
#pragma once

#include "server/http/json.h"
#include "store/journal.h"

namespace chimere::server {

Json kept_json(const store::KeptAnswer& kept);

}  // namespace chimere::server
