// http_client.h  Asks an HTTP server: one exchange at a time, under limits, with a say in every address it connects to.
//
// What it never does: another protocol than http and https, a connection without TLS verification, cookies, .netrc, a
// proxy from the environment, user names in an address, a connection kept for the next exchange (it would not be asked
// about again).
//
//   const HttpClient client({});
//   HttpRequest request;
//   request.url = "https://example.org/";
//   TRY_ASSIGN(HttpAnswer answer, client.exchange(request));
//
// A status of 400 or more is an answer, not an error. Codes of errors: invalid_argument (address, header, or what a
// hook refused), exhausted (a limit), cancelled, io (network, TLS, protocol).
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "web/address.h"
#include "web/url.h"

namespace chimere::web {

struct HttpHeader {
  std::string name, value;
};

struct HttpLimits {
  size_t head_bytes = 64 * 1024;
  size_t body_bytes = 4 * 1024 * 1024;        // unpacked; 0: no limit, for streams that the caller ends
  std::chrono::milliseconds connect{10'000};  // name, connection, TLS
  std::chrono::milliseconds total{30'000};    // of all redirects together; 0: no limit, as for body_bytes
  std::chrono::milliseconds silence{0};       // the longest without a byte; 0: no limit of its own
  int redirects = 0;  // followed; the answer after the last of them is the answer, whatever it is
};

struct HttpAnswer {
  int status = 0;
  std::string url;                  // which gave it, behind all redirects
  std::vector<HttpHeader> headers;  // of the last answer, names in lower case
  std::string body;                 // empty where on_body took it

  std::string_view header(std::string_view name) const;  // `name` in lower case; the first of several; "" when absent
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  // The first address has them all. Behind a redirect to another origin only Accept and Accept-Language are sent.
  std::vector<HttpHeader> headers;
  std::string body;
  HttpLimits limits;

  // All may be empty. An error that a hook returns ends the exchange and is its result.
  std::function<Status(const Url&)> allow_url;          // each redirect's address, and the first
  std::function<Status(const Address&)> allow_address;  // each one, as resolved, before a connection is made
  // The head of the last answer (its body is still empty), before its body.
  std::function<Status(const HttpAnswer&)> on_head;
  std::function<Status(std::string_view)> on_body;  // pieces as they come
  std::function<bool()> is_cancelled;               // asked at least every 50 ms
};

class HttpClient {
 public:
  struct Options {
    std::string user_agent = "Chimere";
    std::string proxy;    // "http://host:port"; empty: none, whatever the environment says
    std::string ca_file;  // certificates to trust, PEM; empty: the system's
    // Who answers for names, for tests; empty: the system.
    std::function<Result<std::vector<Address>>(const std::string& host)> resolver;
  };
  explicit HttpClient(Options options);

  // Any thread; blocks until the exchange is over.
  Result<HttpAnswer> exchange(const HttpRequest& request) const;

 private:
  Options options_;
};

}  // namespace chimere::web
