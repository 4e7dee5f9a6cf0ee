// http.h  HTTP as the routes see it: a request, an answer that is asked for its next piece. No socket, no library.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chimere::server {

class BodyLease;  // body_budget.h

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string id;      // X-Request-Id of the answer, given by the connection
  std::string remote;  // address of the other end
  std::string client;  // the name of its key; empty where the server has none
  std::string method;  // as sent: "GET", "POST", ...
  std::string path;    // of the target, without the query
  std::string query;   // after '?', undecoded
  Headers headers;
  std::string body;
  std::shared_ptr<BodyLease> body_lease;  // counts the body; kept as long as its text is

  // The first header of that name in any letter case; empty when there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  Headers headers;  // Content-Length, Connection, X-Request-Id and framing are the connection's business
  std::string body;

  void add_header(std::string name, std::string value);
  // Instead of those of that name.
  void set_header(std::string_view name, std::string value);
};

// What an answer has ready. The first piece that is not empty carries the head. A head with `done` is a whole response;
// one without starts a stream, whose `body` pieces are sent as they come.
struct Piece {
  std::optional<HttpResponse> head;
  std::string body;
  bool done = false;
};

// The work behind one request. Made, polled and destroyed on the I/O thread; destroyed as soon as everything was sent
// or the client is gone, which is the moment to stop working.
class Answer {
 public:
  virtual ~Answer() = default;
  // What is ready now, without blocking; an empty piece means "nothing yet, wake me". Polled again only after the
  // previous piece was written, so a slow reader holds back its own answer and nobody else's.
  virtual Piece poll() = 0;
  // About once a second: how long the reader has taken nothing of a piece that waits for it.
  virtual void reader_stands_still(std::chrono::steady_clock::duration) {}
};

// Asks the connection to poll again. Callable from any thread, also after the answer is gone.
using Wake = std::function<void()>;

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Called with the head alone, before a body is read: a response here ends the request. Fills in `client`.
  virtual std::optional<HttpResponse> refuse(HttpRequest& head) = 0;
  virtual std::unique_ptr<Answer> handle(HttpRequest request, Wake wake) = 0;
  // A response of the connection itself, for what never became a request: 400, 408, 413, 431, 500, 501, 503.
  virtual HttpResponse error(const std::string& request_id, int status, std::string message) = 0;
  // About once a second, on the I/O thread.
  virtual void tick() {}
  // The server stops, and its patience with answers under way is at an end: they should be, within a second or two.
  virtual void end_answers() {}
};

inline constexpr const char* kOutOfMemory = "the server has no memory left for this request";

// An answer that is there at once.
std::unique_ptr<Answer> immediate(HttpResponse response);

bool equals_ignoring_case(std::string_view a, std::string_view b);
const char* reason_phrase(int status);

}  // namespace chimere::server
