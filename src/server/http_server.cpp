// http_server.cpp  Connections on Beast and Asio. The only file that sees them: they cost a compiler more than the rest
// of the server together. Request heads and bodies are parsed by Beast; responses are simple enough to be written here.
//
// Everything below runs on the thread inside run(), except Wake and stop(), which only post to it. One coroutine per
// connection reads a request, polls its answer and writes the pieces; while it waits, a second one reads ahead, because
// reading is the only way to learn that a client has gone.
#include "server/http_server.h"

// The thread sanitizer knows no fences, and says so in a warning; with one I/O thread Asio's are not needed.
#ifdef __SANITIZE_THREAD__
#define BOOST_ASIO_DISABLE_FENCED_BLOCK
#endif

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <csignal>
#include <exception>
#include <set>

#include "server/request_id.h"

namespace chimere::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadBytes = 16 << 10;
// What a client may send ahead of its answer (the next requests of a pipeline) before we call it abuse.
constexpr size_t kMaxReadAheadBytes = 64 << 10;
// How long and how much we go on reading from a client we refused, so that our answer reaches it before the reset.
constexpr std::chrono::seconds kLingerTime{2};
constexpr size_t kLingerBytes = size_t{64} << 20;

Result<asio::ip::address> parse_host(const std::string& host) {
  if (host == "localhost") return asio::ip::address(asio::ip::address_v4::loopback());
  error_code ec;
  asio::ip::address address = asio::ip::make_address(host, ec);
  if (ec) {
    return Error{Code::invalid_argument, "host: expected an IP address or 'localhost', found '" + host + "'"};
  }
  return address;
}

Status bind(tcp::acceptor& acceptor, const HttpConfig& config) {
  TRY_ASSIGN(const asio::ip::address address, parse_host(config.host));
  const tcp::endpoint endpoint(address, config.port);
  error_code ec;
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (!ec) return Ok{};
  const std::string where = config.host + ":" + std::to_string(config.port);
  if (ec == asio::error::address_in_use) {
    return Error{Code::io, "port " + std::to_string(config.port) + " is taken: another program listens on " + where +
                               "; stop it or choose another port"};
  }
  return Error{Code::io, "cannot listen on " + where + ": " + ec.message()};
}

bool is_framing(std::string_view name) {
  return equals_ignoring_case(name, "Content-Length") || equals_ignoring_case(name, "Connection") ||
         equals_ignoring_case(name, "Transfer-Encoding");
}

// How the rest of a connection goes on with one response.
struct Framing {
  bool keep_alive = false;
  bool chunked = false;    // for a stream; otherwise its end is the end of the connection
  bool head_only = false;  // the request was HEAD
};

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

struct Shared {
  Shared(HttpConfig c, HttpHandler& h) : config(std::move(c)), handler(h) {}

  HttpConfig config;
  HttpHandler& handler;
  // Shared with the Wakes that other threads hold, so that a late one finds an io_context to post to.
  std::shared_ptr<asio::io_context> io = std::make_shared<asio::io_context>(1);
  std::set<class Connection*> connections;
  std::function<void()> on_closed;
  bool stopping = false;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Shared& shared, tcp::socket socket)
      : shared_(shared), stream_(std::move(socket)), woken_timer_(*shared.io) {
    shared_.connections.insert(this);
    error_code ec;
    stream_.socket().set_option(tcp::no_delay(true), ec);  // tokens are small and should not wait for each other
    const tcp::endpoint remote = stream_.socket().remote_endpoint(ec);
    if (!ec) remote_ = remote.address().to_string();
  }
  ~Connection() {
    shared_.connections.erase(this);
    shared_.on_closed();
  }

  bool is_busy() const { return busy_; }

  void close() {
    gone_ = true;
    stream_.close();
    wake();
  }

  asio::awaitable<void> serve() {
    const auto self = shared_from_this();
    while (!gone_ && !shared_.stopping) {
      const bool go_on = co_await serve_one();
      if (!go_on) break;
    }
    error_code ec;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ec);
    stream_.close();
  }

 private:
  // One request and its answer; whether another may follow on this connection.
  asio::awaitable<bool> serve_one() {
    if (buffer_.size() == 0) {
      stream_.expires_after(shared_.config.idle_timeout);
      const auto [ec, n] = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), kAwait);
      if (ec) co_return false;
      buffer_.commit(n);
    }
    busy_ = true;
    http::request_parser<http::string_body> parser;
    parser.header_limit(shared_.config.max_header_bytes);
    parser.body_limit(shared_.config.max_body_bytes);
    stream_.expires_after(shared_.config.header_timeout);
    request_id_ = new_request_id();
    const auto [head_ec, head_n] = co_await http::async_read_header(stream_, buffer_, parser, kAwait);
    if (head_ec) {
      co_await refuse(head_ec, false);
      co_return false;
    }
    HttpRequest request = head_of(parser);
    request_id_ = request_id_or_new(request.header("X-Request-Id"));
    request.id = request_id_;
    request.remote = remote_;
    const Framing framing{parser.keep_alive() && !shared_.stopping, parser.get().version() >= 11,
                          request.method == "HEAD"};
    if (auto refused = shared_.handler.refuse(request)) {
      co_await send_last(std::move(*refused), framing.head_only);
      co_return false;
    }
    if (equals_ignoring_case(request.header("Expect"), "100-continue") && !parser.is_done()) {
      const std::string proceed = "HTTP/1.1 100 Continue\r\n\r\n";
      const bool sent = co_await write(proceed);
      if (!sent) co_return false;
    }
    stream_.expires_after(shared_.config.body_timeout);
    const auto [body_ec, body_n] = co_await http::async_read(stream_, buffer_, parser, kAwait);
    if (body_ec) {
      co_await refuse(body_ec, framing.head_only);
      co_return false;
    }
    request.body = std::move(parser.get().body());
    const bool go_on = co_await answer(std::move(request), framing);
    busy_ = false;
    co_return go_on;
  }

  static HttpRequest head_of(const http::request_parser<http::string_body>& parser) {
    HttpRequest request;
    const auto& head = parser.get();
    request.method = std::string(head.method_string());
    const std::string target(head.target());
    const size_t question = target.find('?');
    request.path = target.substr(0, question);
    if (question != std::string::npos) request.query = target.substr(question + 1);
    for (const auto& field : head) {
      request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    return request;
  }

  asio::awaitable<bool> answer(HttpRequest request, Framing framing) {
    std::unique_ptr<Answer> work = start(std::move(request));
    bool head_sent = false;
    bool done = false;
    while (!gone_ && !done) {
      woken_ = false;
      Piece piece = poll(work, head_sent);
      done = piece.done;
      std::string bytes;
      if (piece.head) {
        const bool whole = piece.done && piece.body.empty();
        if (!whole && !framing.chunked) framing.keep_alive = false;
        bytes = format_head(*piece.head, request_id_, framing, whole);
        if (whole && !framing.head_only) bytes += piece.head->body;
        if (whole) framing.chunked = false;
        head_sent = true;
        done = done || framing.head_only;
      }
      if (!framing.head_only) {
        append_chunk(bytes, piece.body, framing.chunked);
        if (done && framing.chunked) bytes += "0\r\n\r\n";
      }
      if (!bytes.empty()) {
        const bool sent = co_await write(bytes);
        if (!sent) gone_ = true;
      } else if (!done) {
        co_await wait();
      }
    }
    work.reset();
    co_await stop_reading_ahead();
    const bool go_on = done && !gone_ && framing.keep_alive;
    co_return go_on;
  }

  std::unique_ptr<Answer> start(HttpRequest request) {
    auto wake = [io = shared_.io, weak = weak_from_this()] {
      asio::post(*io, [weak] {
        if (const auto self = weak.lock()) self->wake();
      });
    };
    try {
      return shared_.handler.handle(std::move(request), std::move(wake));
    } catch (const std::exception& e) {
      return immediate(shared_.handler.error(request_id_, 500, e.what()));
    }
  }

  Piece poll(std::unique_ptr<Answer>& work, bool head_sent) {
    try {
      return work->poll();
    } catch (const std::exception& e) {
      Piece piece;
      piece.done = true;
      // In the middle of a stream there is no way to say it but to break off.
      if (head_sent) {
        gone_ = true;
      } else {
        piece.head = shared_.handler.error(request_id_, 500, e.what());
      }
      return piece;
    }
  }

  // Until something woke us: the answer, the client's departure, or the end of the server.
  asio::awaitable<void> wait() {
    if (!reading_ahead_) {
      reading_ahead_ = true;
      asio::co_spawn(*shared_.io, read_ahead(), asio::detached);
    }
    if (woken_ || gone_) co_return;
    woken_timer_.expires_at(asio::steady_timer::time_point::max());
    co_await woken_timer_.async_wait(kAwait);
  }

  void wake() {
    woken_ = true;
    woken_timer_.cancel();
  }

  asio::awaitable<void> read_ahead() {
    const auto self = shared_from_this();
    stream_.expires_never();
    while (!stop_reading_ && !gone_) {
      const auto [ec, n] = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), kAwait);
      buffer_.commit(n);
      if (ec == asio::error::operation_aborted && stop_reading_) break;
      if (ec || buffer_.size() > kMaxReadAheadBytes) gone_ = true;
    }
    reading_ahead_ = false;
    wake();
  }

  asio::awaitable<void> stop_reading_ahead() {
    stop_reading_ = true;
    while (reading_ahead_) {
      error_code ec;
      stream_.socket().cancel(ec);
      woken_timer_.expires_at(asio::steady_timer::time_point::max());
      co_await woken_timer_.async_wait(kAwait);
    }
    stop_reading_ = false;
  }

  asio::awaitable<bool> write(const std::string& bytes) {
    stream_.expires_after(shared_.config.write_timeout);
    const auto [ec, n] = co_await asio::async_write(stream_, asio::buffer(bytes), kAwait);
    co_return !ec;
  }

  // Answers a request that could not be read, if its sender can still hear it.
  asio::awaitable<void> refuse(error_code ec, bool head_only) {
    const HttpConfig& config = shared_.config;
    HttpHandler& handler = shared_.handler;
    if (ec == http::error::body_limit) {
      co_await send_last(handler.error(request_id_, 413,
                                       "request body: expected at most " + std::to_string(config.max_body_bytes) +
                                           " bytes, found more"),
                         head_only);
    } else if (ec == http::error::header_limit) {
      co_await send_last(handler.error(request_id_, 431,
                                       "request head: expected at most " + std::to_string(config.max_header_bytes) +
                                           " bytes, found more"),
                         head_only);
    } else if (ec == beast::error::timeout) {
      // The stream closed itself when its time ran out.
    } else if (ec.category() == http::make_error_code(http::error::bad_version).category() &&
               ec != http::error::end_of_stream && ec != http::error::partial_message) {
      co_await send_last(handler.error(request_id_, 400, "malformed HTTP request: " + ec.message()), head_only);
    }
  }

  // A response after which the connection ends although its sender may still be sending.
  asio::awaitable<void> send_last(HttpResponse response, bool head_only) {
    std::string bytes = format_head(response, request_id_, Framing{}, true);
    if (!head_only) bytes += response.body;
    const bool sent = co_await write(bytes);
    if (!sent) co_return;
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kLingerTime);
    buffer_.clear();
    for (size_t drained = 0; drained < kLingerBytes;) {
      const auto [ec, n] = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), kAwait);
      if (ec) break;
      drained += n;
    }
  }

  Shared& shared_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::string remote_;      // address of the client
  std::string request_id_;  // of the request that is served now
  asio::steady_timer woken_timer_;
  bool busy_ = false;           // between the first byte of a request and the last of its answer
  bool gone_ = false;           // the client, or our patience with it
  bool woken_ = false;          // since the last poll
  bool reading_ahead_ = false;  // read_ahead() runs and owns buffer_
  bool stop_reading_ = false;
};

}  // namespace

struct HttpServer::Impl {
  Impl(HttpConfig config, HttpHandler& handler)
      : shared(std::move(config), handler), acceptor(*shared.io), signals(*shared.io), grace(*shared.io) {
    shared.on_closed = [this] {
      if (shared.stopping && shared.connections.empty()) finish();
    };
  }

  asio::awaitable<void> accept_loop() {
    asio::steady_timer pause(*shared.io);
    while (!shared.stopping) {
      tcp::socket socket(*shared.io);
      const auto [ec] = co_await acceptor.async_accept(socket, kAwait);
      if (shared.stopping) co_return;
      if (ec) {
        // Out of descriptors, most likely: they come back when connections end.
        pause.expires_after(std::chrono::milliseconds(100));
        co_await pause.async_wait(kAwait);
        continue;
      }
      if (shared.connections.size() >= static_cast<size_t>(shared.config.max_connections)) {
        turn_away(socket);
        continue;
      }
      const auto connection = std::make_shared<Connection>(shared, std::move(socket));
      // An exception here is one no handler could have expected; it costs its connection and nothing else.
      asio::co_spawn(*shared.io, connection->serve(), [connection](std::exception_ptr) {});
    }
  }

  // The socket is new, so its send buffer takes these few bytes at once.
  void turn_away(tcp::socket& socket) {
    const std::string id = new_request_id();
    const HttpResponse full = shared.handler.error(
        id, 503, "too many connections: at most " + std::to_string(shared.config.max_connections) + " at a time");
    const std::string bytes = format_head(full, id, Framing{}, true) + full.body;
    error_code ec;
    socket.non_blocking(true, ec);
    socket.write_some(asio::buffer(bytes), ec);
    socket.shutdown(tcp::socket::shutdown_send, ec);
  }

  void wait_for_signal() {
    signals.async_wait([this](error_code ec, int) {
      if (ec) return;
      if (shared.stopping) {
        close_all();
      } else {
        begin_stop();
      }
      if (!shared.connections.empty()) wait_for_signal();
    });
  }

  void begin_stop() {
    if (shared.stopping) return;
    shared.stopping = true;
    error_code ec;
    acceptor.close(ec);
    for (Connection* connection : std::set<Connection*>(shared.connections)) {
      if (!connection->is_busy()) connection->close();
    }
    if (shared.connections.empty()) return finish();
    grace.expires_after(shared.config.shutdown_grace);
    grace.async_wait([this](error_code wait_ec) {
      if (!wait_ec) close_all();
    });
  }

  void close_all() {
    for (Connection* connection : std::set<Connection*>(shared.connections)) connection->close();
  }

  void finish() {
    error_code ec;
    grace.cancel();
    signals.cancel(ec);
  }

  Shared shared;
  tcp::acceptor acceptor;
  asio::signal_set signals;
  asio::steady_timer grace;
  uint16_t port = 0;
};

bool is_loopback(const std::string& host) {
  const auto address = parse_host(host);
  return address && address->is_loopback();
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Status check_address(const HttpConfig& config) {
  asio::io_context io;
  tcp::acceptor acceptor(io);
  return bind(acceptor, config);
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(HttpConfig config, HttpHandler& handler) {
  auto impl = std::make_unique<Impl>(std::move(config), handler);
  TRY(bind(impl->acceptor, impl->shared.config));
  error_code ec;
  impl->port = impl->acceptor.local_endpoint(ec).port();
  return Result<std::unique_ptr<HttpServer>>{std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)))};
}

void HttpServer::run() {
  if (impl_->shared.config.handle_signals) {
    error_code ec;
    impl_->signals.add(SIGINT, ec);
    impl_->signals.add(SIGTERM, ec);
    impl_->wait_for_signal();
  }
  asio::co_spawn(*impl_->shared.io, impl_->accept_loop(), asio::detached);
  impl_->shared.io->run();
}

void HttpServer::stop() {
  asio::post(*impl_->shared.io, [impl = impl_.get()] { impl->begin_stop(); });
}

uint16_t HttpServer::port() const { return impl_->port; }

std::string HttpServer::url() const {
  const std::string& host = impl_->shared.config.host;
  const bool v6 = host.find(':') != std::string::npos;
  return "http://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(impl_->port);
}

}  // namespace chimere::server
