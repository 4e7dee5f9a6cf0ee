// json.h  JSON in requests and responses, on top of text/json.h. For .cpp files of this folder; nothing outside it sees
// the library.
#pragma once

#include "server/http/http.h"
#include "text/json.h"

namespace chimere::server {

// Status 200 with that text.
HttpResponse json_response(const Json& json);

// "a string", "a number", ... for messages.
const char* describe(const Json& json);

}  // namespace chimere::server
