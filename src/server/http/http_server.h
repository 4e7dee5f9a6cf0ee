// http_server.h  An HTTP/1.1 server on one I/O thread: connections, limits, timeouts, shutdown. What a request means is
// the handler's business.
//
//   TRY_ASSIGN(auto server, HttpServer::listen(config, handler));
//   server->run();                                   // until stop() or a signal
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/platform/process.h"
#include "base/result.h"
#include "server/http/http.h"

namespace chimere::server {

struct HttpConfig {
  std::string host = "127.0.0.1";  // an address, or "localhost"
  uint16_t port = 8081;            // 0: any free one
  std::optional<uint16_t>
      side_port;  // a second one, whose requests say so (HttpRequest::by_side_port); 0: any free one
  size_t max_body_bytes = size_t{8} << 20;
  size_t max_body_memory = size_t{64} << 20;  // of all requests together
  uint32_t max_header_bytes = 16 << 10;
  int max_connections = 2048;
  std::chrono::milliseconds idle_timeout{75'000};    // between requests
  std::chrono::milliseconds header_timeout{15'000};  // from the first byte of a request to the end of its head
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds write_timeout{60'000};  // a client that takes nothing for this long is gone
  std::chrono::milliseconds busy_delay{250};        // before a 429 is sent: who comes back at once comes less often
  std::chrono::milliseconds shutdown_grace{3'000};  // for answers under way; then they are told to end
  std::string tls_certificate;                      // files in PEM form; both or none
  std::string tls_key;
  std::function<void()> release_memory = release_free_memory;  // called after much was freed
  bool handle_signals = false;                                 // SIGINT and SIGTERM stop; the second one at once
  std::function<void()> on_hangup;  // SIGHUP, where signals are handled, on the I/O thread; null: it ends the process
};

// After the grace period of a stop answers are told to end; those that have not after this are cut.
inline constexpr std::chrono::seconds kLastWords{1};

// False also for what is no address.
bool is_loopback(const std::string& host);

// Whether the address can be bound and the certificate read; the errors of HttpServer::listen.
Status check_address(const HttpConfig& config);

class HttpServer {
 public:
  // Binds; io when the port is taken, invalid_argument when the host is no address. The handler outlives the server.
  static Result<std::unique_ptr<HttpServer>> listen(HttpConfig config, HttpHandler& handler);
  ~HttpServer();  // REQUIRES: run() was never called or has returned
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves until stopped; answers under way get the grace period, idle connections are closed.
  void run();
  // From any thread, once or more.
  void stop();

  // After run() has returned.
  std::chrono::steady_clock::time_point stop_began() const;

  uint16_t port() const;
  // "http://127.0.0.1:8081"
  std::string url() const;
  // The same of the second port; nullopt where there is none.
  std::optional<std::string> side_url() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace chimere::server
