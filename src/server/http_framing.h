// http_framing.h  Responses as bytes: heads, chunks.
#pragma once

#include <string>
#include <string_view>

#include "server/http.h"

namespace chimere::server {

// How the rest of a connection goes on with one response.
struct Framing {
  bool keep_alive = false;
  bool chunked = false;    // for a stream; otherwise its end is the end of the connection
  bool head_only = false;  // the request was HEAD
};

// `whole`: the length of the body is known.
std::string format_head(const HttpResponse& response, const std::string& request_id, const Framing& framing,
                        bool whole);

void append_chunk(std::string& out, std::string_view bytes, bool chunked);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace chimere::server
