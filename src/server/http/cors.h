// cors.h  Web pages of other origins that may use the server from a browser: their preflights, and the headers without
// which a browser keeps our answers from them. There are no cookies here, so none are allowed to come along.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http/http.h"

namespace chimere::server {

class Cors {
 public:
  Cors() = default;
  // Origins as browsers write them, "https://app.example:8443", lists of them joined by commas; "localhost": pages of
  // this machine, which are allowed in any case; "*": any.
  static Result<Cors> of(const std::vector<std::string>& lists);

  bool allows_everybody() const { return everybody_; }
  // Whether the page that sent the request may have its answer.
  bool allows(const HttpRequest& head) const;
  // A browser that asks for leave.
  static bool is_preflight(const HttpRequest& head);
  // What it is told; nothing for a page that has no leave. `methods`: those of the path, "GET, POST".
  HttpResponse leave(const HttpRequest& head, const std::string& methods) const;
  // Lets the page read the response.
  static void open(std::string_view origin, HttpResponse& response);

 private:
  bool everybody_ = false;
  std::vector<std::string> origins_;
};

// "localhost:8081", "127.0.0.1", "[::1]:80": this machine, by a name that nobody else can have.
bool is_this_machine(std::string_view authority);
// Of these what stands before the port. Empty when there is more than a port.
std::string_view host_of(std::string_view authority);

// The same answer, readable by pages of that origin.
std::unique_ptr<Answer> opened_to(std::string origin, std::unique_ptr<Answer> answer);

}  // namespace chimere::server
