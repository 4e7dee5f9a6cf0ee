// http_framing.cpp  What Beast's serializer would do, for the few shapes we send.
#include "server/http_framing.h"

namespace chimere::server {
namespace {

bool is_framing(std::string_view name) {
  return equals_ignoring_case(name, "Content-Length") || equals_ignoring_case(name, "Connection") ||
         equals_ignoring_case(name, "Transfer-Encoding") || equals_ignoring_case(name, "X-Request-Id");
}

}  // namespace

std::string format_head(const HttpResponse& response, const std::string& request_id, const Framing& framing,
                        bool whole) {
  std::string out = "HTTP/1.1 " + std::to_string(response.status) + " " + reason_phrase(response.status) + "\r\n";
  for (const auto& [name, value] : response.headers) {
    if (!is_framing(name)) out += name + ": " + value + "\r\n";
  }
  out += "X-Request-Id: " + request_id + "\r\n";
  if (whole) {
    out += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  } else if (framing.chunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  out += framing.keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return out;
}

void append_chunk(std::string& out, std::string_view bytes, bool chunked) {
  if (bytes.empty()) return;
  if (!chunked) {
    out += bytes;
    return;
  }
  static constexpr char kHex[] = "0123456789abcdef";
  std::string size;
  for (size_t n = bytes.size(); n > 0; n >>= 4) size.insert(size.begin(), kHex[n & 15]);
  out += size;
  out += "\r\n";
  out += bytes;
  out += "\r\n";
}

}  // namespace chimere::server
