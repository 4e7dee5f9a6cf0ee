// cors.cpp  Headers of the Fetch standard.
#include "server/http/cors.h"

#include <algorithm>
#include <utility>

namespace chimere::server {
namespace {

// A browser repeats its question after so many seconds.
constexpr const char* kMaxAge = "600";

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '\\'; });
}

bool is_origin(std::string_view text) {
  const size_t scheme = text.find("://");
  if (scheme == 0 || scheme == std::string_view::npos || scheme + 3 == text.size()) return false;
  return is_printable(text) && text.find_first_of("/?#@", scheme + 3) == std::string_view::npos;
}

// Names of headers joined by commas, as a browser lists those that a page wants to send.
bool is_header_list(std::string_view text) {
  return text.size() <= 4096 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("-_, ").find(c) != std::string_view::npos;
         });
}

class OpenedAnswer : public Answer {
 public:
  OpenedAnswer(std::string origin, std::unique_ptr<Answer> answer)
      : origin_(std::move(origin)), answer_(std::move(answer)) {}
  Piece poll() override {
    Piece piece = answer_->poll();
    if (piece.head) Cors::open(origin_, *piece.head);
    return piece;
  }
  void tick(std::chrono::steady_clock::duration unread) override { answer_->tick(unread); }

 private:
  const std::string origin_;
  std::unique_ptr<Answer> answer_;
};

}  // namespace

std::string_view host_of(std::string_view authority) {
  const size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
  const size_t end = std::min(authority.find(':', bracket), authority.size());
  if (bracket > 0 && bracket + 1 != end) return {};
  return authority.substr(0, end);
}

bool is_this_machine(std::string_view authority) {
  const std::string_view host = host_of(authority);
  return equals_ignoring_case(host, "localhost") || host == "127.0.0.1" || host == "[::1]";
}

Result<Cors> Cors::of(const std::vector<std::string>& lists) {
  Cors cors;
  for (const std::string& list : lists) {
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      const std::string origin = list.substr(begin, end - begin);
      if (origin == "*") {
        cors.everybody_ = true;
      } else if (origin == "localhost") {
        // always
      } else if (is_origin(origin)) {
        cors.origins_.push_back(origin);
      } else {
        return Error{
            Code::invalid_argument,
            "--cors: expected an origin such as https://app.example:8443, localhost, or *, found '" + origin + "'"};
      }
      begin = end + 1;
    }
  }
  return cors;
}

bool Cors::allows(const HttpRequest& head) const {
  const std::string_view origin = head.header("Origin");
  if (origin.empty() || !is_printable(origin)) return false;
  if (everybody_) return true;
  if (!is_origin(origin)) return false;
  return is_this_machine(origin.substr(origin.find("://") + 3)) ||
         std::any_of(origins_.begin(), origins_.end(),
                     [&](const std::string& known) { return equals_ignoring_case(known, origin); });
}

bool Cors::is_preflight(const HttpRequest& head) {
  return head.method == "OPTIONS" && !head.header("Access-Control-Request-Method").empty();
}

HttpResponse Cors::leave(const HttpRequest& head, const std::string& methods) const {
  HttpResponse response;
  if (!allows(head)) return response;
  open(head.header("Origin"), response);
  response.add_header("Access-Control-Allow-Methods", methods);
  const std::string_view wanted = head.header("Access-Control-Request-Headers");
  if (!wanted.empty() && is_header_list(wanted)) {
    response.add_header("Access-Control-Allow-Headers", std::string(wanted));
  }
  // A page of the internet that asks a server on this machine.
  if (head.header("Access-Control-Request-Private-Network") == "true") {
    response.add_header("Access-Control-Allow-Private-Network", "true");
  }
  response.add_header("Access-Control-Max-Age", kMaxAge);
  return response;
}

void Cors::open(std::string_view origin, HttpResponse& response) {
  response.set_header("Access-Control-Allow-Origin", std::string(origin));
  response.set_header("Access-Control-Expose-Headers",
                      "X-Request-Id, X-Chimere-Ignored, X-Chimere-Model, X-Chimere-Max-Tokens, Retry-After");
  response.add_header("Vary", "Origin");
}

std::unique_ptr<Answer> opened_to(std::string origin, std::unique_ptr<Answer> answer) {
  return std::make_unique<OpenedAnswer>(std::move(origin), std::move(answer));
}

}  // namespace chimere::server
