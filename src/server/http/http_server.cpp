// http_server.cpp  Accepting, TLS, signals, the end. Connections are in connection.h.
//
// Everything below runs on the thread inside run(), except Wake and stop(), which only post to it.
#include "server/http/http_server.h"

#include "server/http/connection.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <exception>
#include <optional>

namespace chimere::server {
namespace {

constexpr std::chrono::seconds kTick{1};
// Bodies and answers that were freed since the allocator last gave back what it keeps, and how often it is asked to.
constexpr size_t kWorthReleasing = size_t{4} << 20;
constexpr int kTicksBetweenReleases = 3;

Result<asio::ip::address> parse_host(const std::string& host) {
  if (host == "localhost") return asio::ip::address(asio::ip::address_v4::loopback());
  error_code ec;
  asio::ip::address address = asio::ip::make_address(host, ec);
  if (ec) {
    return Error{Code::invalid_argument, "host: expected an IP address or 'localhost', found '" + host + "'"};
  }
  return address;
}

Status bind(tcp::acceptor& acceptor, const HttpConfig& config, uint16_t port, const char* option) {
  TRY_ASSIGN(const asio::ip::address address, parse_host(config.host));
  const tcp::endpoint endpoint(address, port);
  error_code ec;
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (!ec) return Ok{};
  const std::string where = config.host + ":" + std::to_string(port);
  if (ec == asio::error::address_in_use) {
    return Error{Code::io, "port " + std::to_string(port) + " is taken: another program listens on " + where +
                               "; stop it, or choose another with " + option};
  }
  return Error{Code::io, "cannot listen on " + where + ": " + ec.message()};
}

// Both ports, of which the second may not be wanted.
Status bind_all(tcp::acceptor& acceptor, tcp::acceptor& side, const HttpConfig& config) {
  if (config.side_port && *config.side_port == config.port && config.port != 0) {
    return Error{Code::invalid_argument,
                 "--odo-port: expected another port than --port, found " + std::to_string(config.port) + " for both"};
  }
  TRY(bind(acceptor, config, config.port, "--port"));
  if (config.side_port) TRY(bind(side, config, *config.side_port, "--odo-port"));
  return Ok{};
}

Result<asio::ssl::context> make_tls(const HttpConfig& config) {
  asio::ssl::context tls(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
  // An idle connection then holds no buffers of the library.
  SSL_CTX_set_mode(tls.native_handle(), SSL_MODE_RELEASE_BUFFERS);
  error_code ec;
  tls.use_certificate_chain_file(config.tls_certificate, ec);
  if (ec) {
    return Error{Code::invalid_argument,
                 "TLS: expected a certificate chain in PEM form in '" + config.tls_certificate + "': " + ec.message()};
  }
  tls.use_private_key_file(config.tls_key, asio::ssl::context::pem, ec);
  if (ec) {
    return Error{Code::invalid_argument, "TLS: expected the private key of '" + config.tls_certificate +
                                             "' in PEM form in '" + config.tls_key + "': " + ec.message()};
  }
  return Result<asio::ssl::context>{std::move(tls)};
}

bool wants_tls(const HttpConfig& config) { return !config.tls_certificate.empty() || !config.tls_key.empty(); }

}  // namespace

// Work of the handler that belongs to no connection.
class HandlerNews : public Waiting {
 public:
  HandlerNews(AnswerPoller& poller, HttpHandler& handler) : poller_(poller), handler_(handler) { poller_.add(this); }
  ~HandlerNews() override { poller_.remove(this); }

  static Wake wake_of(const std::shared_ptr<AnswerPoller>& poller, const HandlerNews& news) {
    return [poller, flag = news.flag_] {
      flag->store(true);
      poller->ring();
    };
  }

  NewsFlag& news() override { return *flag_; }
  // Not at once: the poller is on its way through all who wait.
  void wake() override {
    asio::post(poller_.io, [this] { handler_.work(); });
  }

 private:
  AnswerPoller& poller_;
  HttpHandler& handler_;
  const std::shared_ptr<NewsFlag> flag_ = std::make_shared<NewsFlag>(false);
};

struct HttpServer::Impl {
  Impl(HttpConfig config, HttpHandler& handler)
      : shared(std::move(config), handler),
        io(shared.poller->io),
        acceptor(io),
        side_acceptor(io),
        signals(io),
        grace(io),
        tick_timer(io),
        handler_news(*shared.poller, handler) {
    handler.set_wake(HandlerNews::wake_of(shared.poller, handler_news));
    shared.on_closed = [this] {
      if (shared.stopping && shared.connections.empty()) finish();
    };
  }

  asio::awaitable<void> accept_loop(tcp::acceptor& door) {
    asio::steady_timer pause(io);
    while (!shared.stopping) {
      bool accepted = false;
      try {
        accepted = co_await accept_one(door);
      } catch (const std::exception& e) {
        spdlog::error("a connection could not be taken: {}", e.what());
      }
      if (accepted || shared.stopping) continue;
      // Out of descriptors or memory, most likely: they come back when connections end.
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(kAwait);
    }
  }

  asio::awaitable<bool> accept_one(tcp::acceptor& door) {
    tcp::socket socket(io);
    const bool by_side = &door == &side_acceptor;
    const auto [ec] = co_await door.async_accept(socket, kAwait);
    if (ec || shared.stopping) co_return false;
    if (shared.connections.size() >= static_cast<size_t>(shared.config.max_connections)) {
      turn_away(socket);
    } else if (tls) {
      serve<TlsStream>(TlsStream(PlainStream(std::move(socket)), *tls), by_side);
    } else {
      serve<PlainStream>(PlainStream(std::move(socket)), by_side);
    }
    co_return true;
  }

  template <class Stream>
  void serve(Stream stream, bool by_side) {
    const auto connection = std::make_shared<Connection<Stream>>(shared, std::move(stream), by_side);
    // An exception here is one no handler could have expected; it costs its connection and nothing else.
    asio::co_spawn(io, connection->serve(), [connection](std::exception_ptr e) {
      if (e) connection->close();
    });
  }

  // The socket is new, so its send buffer takes these few bytes at once. Without a handshake there is nothing to say.
  void turn_away(tcp::socket& socket) {
    HttpRequest unread;
    unread.id = new_request_id();
    const HttpResponse full = shared.handler.error(
        unread, 503, "too many connections: at most " + std::to_string(shared.config.max_connections) + " at a time");
    if (tls) return;
    const std::string bytes = format_head(full, unread.id, Framing{}, true) + full.body;
    error_code ec;
    socket.non_blocking(true, ec);
    socket.write_some(asio::buffer(bytes), ec);
    socket.shutdown(tcp::socket::shutdown_send, ec);
  }

  std::string url_of(uint16_t own_port) const {
    const std::string& host = shared.config.host;
    const bool v6 = host.find(':') != std::string::npos;
    return (tls ? "https://" : "http://") + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(own_port);
  }

  void wait_for_signal() {
    signals.async_wait([this](error_code ec, int signal) {
      if (ec) return;
      if (signal == SIGHUP) {
        shared.config.on_hangup();
        return wait_for_signal();
      }
      if (shared.stopping) {
        close_all();
      } else {
        begin_stop();
      }
      if (!shared.connections.empty()) wait_for_signal();
    });
  }

  void wait_for_tick() {
    tick_timer.expires_after(kTick);
    tick_timer.async_wait([this](error_code ec) {
      if (ec || finished) return;  // to cancel a timer that has run out already changes nothing
      wait_for_tick();
      const auto now = AnyConnection::Clock::now();
      for (AnyConnection* connection : shared.connections) connection->tick(now);
      shared.handler.tick();
      release_memory();
    });
  }

  void release_memory() {
    ++ticks_since_release;
    const size_t freed = shared.freed_bytes + shared.bodies->given() - given_at_release;
    if (freed < kWorthReleasing || ticks_since_release < kTicksBetweenReleases) return;
    shared.freed_bytes = 0;
    given_at_release = shared.bodies->given();
    ticks_since_release = 0;
    shared.config.release_memory();
  }

  void begin_stop() {
    if (shared.stopping) return;
    shared.stopping = true;
    stop_began = AnyConnection::Clock::now();
    error_code ec;
    acceptor.close(ec);
    side_acceptor.close(ec);
    for (AnyConnection* connection : std::set<AnyConnection*>(shared.connections)) {
      if (!connection->is_busy()) connection->close();
    }
    if (shared.connections.empty()) return finish();
    grace.expires_after(shared.config.shutdown_grace);
    grace.async_wait([this](error_code wait_ec) {
      if (wait_ec) return;
      shared.handler.end_answers();
      grace.expires_after(kLastWords);
      grace.async_wait([this](error_code last_ec) {
        if (!last_ec) close_all();
      });
    });
  }

  void close_all() {
    for (AnyConnection* connection : std::set<AnyConnection*>(shared.connections)) connection->close();
  }

  void finish() {
    finished = true;
    error_code ec;
    grace.cancel();
    tick_timer.cancel();
    signals.cancel(ec);
    shared.poller->stop();
  }

  Shared shared;
  asio::io_context& io;
  std::optional<asio::ssl::context> tls;
  tcp::acceptor acceptor;
  tcp::acceptor side_acceptor;  // closed where there is no second port
  asio::signal_set signals;
  asio::steady_timer grace;
  asio::steady_timer tick_timer;
  HandlerNews handler_news;
  size_t given_at_release = 0;  // what bodies had given back when freed memory last was
  int ticks_since_release = 0;
  bool finished = false;
  AnyConnection::Clock::time_point stop_began;
  uint16_t port = 0;
  uint16_t side_port = 0;
};

bool is_loopback(const std::string& host) {
  const auto address = parse_host(host);
  return address && address->is_loopback();
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Status check_address(const HttpConfig& config) {
  if (wants_tls(config)) TRY(make_tls(config));
  asio::io_context io;
  tcp::acceptor acceptor(io), side(io);
  return bind_all(acceptor, side, config);
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(HttpConfig config, HttpHandler& handler) {
  auto impl = std::make_unique<Impl>(std::move(config), handler);
  if (wants_tls(impl->shared.config)) {
    TRY_ASSIGN(asio::ssl::context tls, make_tls(impl->shared.config));
    impl->tls.emplace(std::move(tls));
  }
  TRY(bind_all(impl->acceptor, impl->side_acceptor, impl->shared.config));
  error_code ec;
  impl->port = impl->acceptor.local_endpoint(ec).port();
  if (impl->side_acceptor.is_open()) impl->side_port = impl->side_acceptor.local_endpoint(ec).port();
  return Result<std::unique_ptr<HttpServer>>{std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)))};
}

void HttpServer::run() {
  if (impl_->shared.config.handle_signals) {
    error_code ec;
    impl_->signals.add(SIGINT, ec);
    impl_->signals.add(SIGTERM, ec);
    if (impl_->shared.config.on_hangup) impl_->signals.add(SIGHUP, ec);
    impl_->wait_for_signal();
  }
  impl_->wait_for_tick();
  asio::co_spawn(impl_->io, impl_->accept_loop(impl_->acceptor), asio::detached);
  if (impl_->side_acceptor.is_open()) {
    asio::co_spawn(impl_->io, impl_->accept_loop(impl_->side_acceptor), asio::detached);
  }
  for (;;) {
    try {
      impl_->io.run();
      return;
    } catch (const std::exception& e) {
      // Without memory for the next step of some connection. Its own is lost, the others go on.
      spdlog::error("I/O: {}", e.what());
    }
  }
}

void HttpServer::stop() {
  asio::post(impl_->io, [impl = impl_.get()] { impl->begin_stop(); });
}

std::chrono::steady_clock::time_point HttpServer::stop_began() const { return impl_->stop_began; }

uint16_t HttpServer::port() const { return impl_->port; }

std::string HttpServer::url() const { return impl_->url_of(impl_->port); }

std::optional<std::string> HttpServer::side_url() const {
  return impl_->shared.config.side_port ? std::optional(impl_->url_of(impl_->side_port)) : std::nullopt;
}

}  // namespace chimere::server
