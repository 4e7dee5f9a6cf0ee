// http_framing.cpp  What Beast's serializer would do, for the few shapes we send.
#include "server/http/http_framing.h"

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

void read_first_line(std::string_view bytes, HttpRequest& head) {
  const std::string_view line = bytes.substr(0, bytes.find_first_of("\r\n"));
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return;
  const std::string_view target = line.substr(space + 1);
  head.method = std::string(line.substr(0, space));
  head.path = std::string(target.substr(0, target.find_first_of(" ?")));
}

std::optional<WrongFraming> wrong_framing(const Headers& headers, bool is_http_1_1) {
  int lengths = 0, codings = 0;
  bool is_chunked = true;
  for (const auto& [name, value] : headers) {
    if (equals_ignoring_case(name, "Content-Length")) ++lengths;
    if (!equals_ignoring_case(name, "Transfer-Encoding")) continue;
    ++codings;
    is_chunked = is_chunked && equals_ignoring_case(value, "chunked");
  }
  if (lengths > 1) return WrongFraming{400, "Content-Length: expected one, found several"};
  if (codings == 0) return std::nullopt;
  if (lengths > 0) return WrongFraming{400, "expected Content-Length or Transfer-Encoding, found both"};
  if (!is_http_1_1) return WrongFraming{400, "Transfer-Encoding: expected HTTP/1.1, found an older version"};
  if (!is_chunked || codings > 1) {
    return WrongFraming{501, "Transfer-Encoding: expected chunked alone, found another coding"};
  }
  return std::nullopt;
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
