// http.h  HTTP as the routes see it: a request, and an answer that is polled for its next piece. No socket, no library.
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
  std::string id;              // X-Request-Id of the answer, set by the connection
  std::string remote;          // address of the client
  bool by_side_port = false;   // it came in by the second port of the server (HttpConfig::side_port)
  std::string client;          // the name of its API key; empty where the server has no keys
  bool is_admin = false;       // the key sees what all keys do; so does everybody where there are none
  std::string method;          // as sent: "GET", "POST", ...
  std::string path;            // of the target, without the query
  bool is_llama_path = false;  // it was asked for by the name it has at llama.cpp
  std::string query;           // after '?', undecoded
  Headers headers;
  std::string body;
  std::shared_ptr<BodyLease> body_lease;  // charges the body to the budget; held as long as its text

  // The first header of that name, ignoring case; empty when there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  Headers headers;  // the connection adds Content-Length, Connection, X-Request-Id and framing
  std::string body;

  void add_header(std::string name, std::string value);
  // Replaces all headers of that name.
  void set_header(std::string_view name, std::string value);
};

// What an answer has ready. The first non-empty piece carries the head. A head with `done` is a whole response; without
// it, the head starts a stream whose `body` pieces are sent as they come.
struct Piece {
  std::optional<HttpResponse> head;
  std::string body;
  bool done = false;
};

// The work behind one request. Created, polled and destroyed on the I/O thread. Destruction means that everything was
// sent or that the client is gone: whatever still works for this answer should stop.
class Answer {
 public:
  virtual ~Answer() = default;
  // What is ready now, without blocking; an empty piece means "nothing yet, wake me". Polled again only after the
  // previous piece was written, so a slow reader holds back its own answer and nobody else's.
  virtual Piece poll() = 0;
  // About once a second, until the answer has ended: how long the client has read nothing of a piece that waits to be
  // written; 0: none does.
  virtual void tick(std::chrono::steady_clock::duration /*unread*/) {}
};

// Asks the connection to poll again. Any thread may call it, even after the answer is gone.
using Wake = std::function<void()>;

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Called with the head alone, before the body is read. Returns a response to refuse the request. Sets `client`.
  virtual std::optional<HttpResponse> refuse(HttpRequest& head) = 0;
  virtual std::unique_ptr<Answer> handle(HttpRequest request, Wake wake) = 0;
  // The connection's own response to what never became a request, or whose handler threw: 400, 413, 431, 500, 501, 503.
  // Of the head there is what could be read, and the id.
  virtual HttpResponse error(const HttpRequest& head, int status, std::string message) = 0;
  // About once a second, on the I/O thread.
  virtual void tick() {}
  // Told once, before the first request: `wake` asks for a call of work(). It may outlive the server, as any Wake may.
  virtual void set_wake(Wake) {}
  // On the I/O thread, soon after it was woken; once for those that came together.
  virtual void work() {}
  // The server is stopping and its grace period is over: answers under way should end within a second or two.
  virtual void end_answers() {}
};

// A part of a path with %XX undone, for names that may have a slash in them.
std::string unescaped_part(std::string_view part);

// The fields of a query, in their order: "a=b&c" is ("a", "b"), ("c", ""); %XX and '+' undone.
Headers query_fields(std::string_view query);

inline constexpr const char* kOutOfMemory = "the server has no memory left for this request";

// An answer that is complete at once.
std::unique_ptr<Answer> immediate(HttpResponse response);

bool equals_ignoring_case(std::string_view a, std::string_view b);
const char* reason_phrase(int status);

}  // namespace chimere::server
