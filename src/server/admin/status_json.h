// status_json.h  What /v1/status says of a model and of keys.
#pragma once

#include "server/endpoints.h"
#include "server/http/json.h"

namespace chimere::server {

// From what the engine last published.
Json status_json(const Services& services);
// Of the key that asks; an admin's sees all that have used something.
Json keys_json(const Access& access, const HttpRequest& request);

}  // namespace chimere::server
