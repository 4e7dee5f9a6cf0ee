// request_id.h  Names of requests: in the header X-Request-Id, in the log, in /v1/requests.
#pragma once

#include <string>
#include <string_view>

namespace chimere::server {

// "req-7f3a91c2-12": unlike those of other runs of the server, and in order.
std::string new_request_id();

// The client's own name for its request, when it can be written into a header and a log line as it is: at most 64
// letters, digits and "-_.:". A new one otherwise.
std::string request_id_or_new(std::string_view wanted);

}  // namespace chimere::server
