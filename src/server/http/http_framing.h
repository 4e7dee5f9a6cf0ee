// http_framing.h  Responses as bytes: heads, chunks; and whether the end of a request is certain.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/http/http.h"

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

// What the first line of an unfinished or malformed request says of its method and path, so that its error can have the
// shape that its sender understands.
void read_first_line(std::string_view bytes, HttpRequest& head);

// Why nobody can be sure where the body of a request ends: another reader of the same bytes (a proxy) would see other
// requests in them. nullopt: it is sure.
struct WrongFraming {
  int status = 400;
  std::string message;
};
std::optional<WrongFraming> wrong_framing(const Headers& headers, bool is_http_1_1);

void append_chunk(std::string& out, std::string_view bytes, bool chunked);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace chimere::server
