// connection.h  One connection on Beast and Asio. Included by http_server.cpp alone: these libraries cost a compiler
// more than the rest of the server together. Request heads and bodies are parsed by Beast; responses are simple enough
// to be written here.
//
// Everything runs on the I/O thread. One coroutine reads a request, polls its answer and writes the pieces; while it
// waits, a second one reads ahead, because reading is the only way to learn that a client has gone.
#pragma once

// The thread sanitizer knows no fences, and says so in a warning; with one I/O thread Asio's are not needed.
#ifdef __SANITIZE_THREAD__
#define BOOST_ASIO_DISABLE_FENCED_BLOCK
#endif

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <exception>
#include <functional>
#include <new>
#include <set>
#include <type_traits>

#include "server/http/answer_poller.h"
#include "server/http/body_budget.h"
#include "server/http/http_framing.h"
#include "server/http/http_server.h"
#include "server/http/request_head.h"
#include "server/http/request_id.h"

namespace chimere::server {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

inline constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
// An idle connection holds a buffer of this size; thousands of them should cost little.
inline constexpr size_t kIdleReadBytes = 1 << 10;
inline constexpr size_t kReadBytes = 16 << 10;
// What a client may send ahead of its answer (the next requests of a pipeline) before we call it abuse.
inline constexpr size_t kMaxReadAheadBytes = 64 << 10;
// What is read and not understood yet: a head, the line of a chunk with its extensions, trailers, requests sent ahead.
inline constexpr size_t kMaxUnparsedBytes = kMaxReadAheadBytes + kReadBytes;
// A reader that takes nothing is noticed once so much waits for it in the system, beside what its own end has taken.
inline constexpr int kMaxUnsentBytes = 32 << 10;
// How long and how much we go on reading from a client we refused, so that our answer reaches it before the reset.
inline constexpr std::chrono::seconds kLingerTime{2};
inline constexpr size_t kLingerBytes = size_t{64} << 20;

class AnyConnection {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~AnyConnection() = default;
  virtual bool is_busy() const = 0;
  virtual void close() = 0;
  // Bytes of a body that has not come whole; 0: none is coming.
  virtual size_t receiving_bytes() const = 0;
  // Drops that body for the sake of another's.
  virtual void give_way() = 0;
  // About once a second.
  virtual void tick(Clock::time_point now) = 0;
};

struct Shared {
  Shared(HttpConfig c, HttpHandler& h)
      : config(std::move(c)), handler(h), bodies(std::make_shared<BodyBudget>(config.max_body_memory)) {}

  HttpConfig config;
  HttpHandler& handler;
  // Room in the bound for all bodies, made at the cost of the largest that is still coming; false when that is the one
  // which asks.
  bool make_room_for(const AnyConnection& asking, size_t bytes) {
    while (!bodies->has_room(bytes)) {
      AnyConnection* largest = nullptr;
      size_t most = asking.receiving_bytes() + bytes;
      for (AnyConnection* connection : connections) {
        if (connection == &asking || connection->receiving_bytes() <= most) continue;
        largest = connection;
        most = connection->receiving_bytes();
      }
      if (!largest) return false;
      largest->give_way();
    }
    return true;
  }

  std::shared_ptr<AnswerPoller> poller = std::make_shared<AnswerPoller>();
  std::shared_ptr<BodyBudget> bodies;
  std::set<AnyConnection*> connections;
  std::function<void()> on_closed;
  size_t freed_bytes = 0;  // of answers, since freed memory was last given back
  bool stopping = false;
};

using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

template <class Stream>
class Connection : public AnyConnection, public Waiting, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  static constexpr bool kIsTls = std::is_same_v<Stream, TlsStream>;

  // `by_side`: it was taken at the second port.
  Connection(Shared& shared, Stream stream, bool by_side)
      : shared_(shared), stream_(std::move(stream)), by_side_(by_side), woken_timer_(shared.poller->io) {
    shared_.connections.insert(this);
    error_code ec;
    socket().set_option(tcp::no_delay(true), ec);  // tokens are small and should not wait for each other
    socket().non_blocking(true, ec);
    ::setsockopt(socket().native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kMaxUnsentBytes, sizeof kMaxUnsentBytes);
    const tcp::endpoint remote = socket().remote_endpoint(ec);
    if (!ec) remote_ = remote.address().to_string();
  }
  ~Connection() override {
    shared_.connections.erase(this);
    shared_.on_closed();
  }

  bool is_busy() const override { return busy_; }

  void close() override {
    gone_ = true;
    lowest().close();
    wake();
  }

  size_t receiving_bytes() const override { return receiving_ ? lease_->bytes() : 0; }

  void give_way() override {
    gave_way_ = true;
    receiving_ = false;
    lease_.reset();
    error_code ec;
    socket().cancel(ec);
  }

  void tick(Clock::time_point now) override {
    if (work_) work_->tick(is_writing_ ? now - last_taken_ : Clock::duration::zero());
  }

  asio::awaitable<void> serve() {
    const auto self = this->shared_from_this();
    bool go_on = co_await greet();
    while (go_on && !gone_ && !shared_.stopping) go_on = co_await serve_one();
    error_code ec;
    socket().shutdown(tcp::socket::shutdown_both, ec);
    lowest().close();
  }

 private:
  using Parser = http::request_parser<http::string_body>;
  inline static const error_code kNoRoom = boost::system::errc::make_error_code(boost::system::errc::not_enough_memory);

  NewsFlag& news() override { return *news_; }

  void wake() override {
    woken_ = true;
    woken_timer_.cancel();
  }

  PlainStream& lowest() { return beast::get_lowest_layer(stream_); }
  tcp::socket& socket() { return lowest().socket(); }

  asio::awaitable<bool> greet() {
    if constexpr (kIsTls) {
      lowest().expires_after(shared_.config.header_timeout);
      const auto [ec] = co_await stream_.async_handshake(asio::ssl::stream_base::server, kAwait);
      co_return !ec;
    }
    co_return true;
  }

  // One request and its answer; whether another may follow on this connection.
  asio::awaitable<bool> serve_one() {
    if (buffer_.size() == 0) {
      buffer_.shrink_to_fit();
      lowest().expires_after(shared_.config.idle_timeout);
      const auto [ec, n] = co_await stream_.async_read_some(buffer_.prepare(kIdleReadBytes), kAwait);
      if (ec) co_return false;
      buffer_.commit(n);
    }
    busy_ = true;
    Parser parser;
    parser.header_limit(shared_.config.max_header_bytes);
    parser.body_limit(shared_.config.max_body_bytes);
    lowest().expires_after(shared_.config.header_timeout);
    const auto [head_ec, head_n] = co_await http::async_read_header(stream_, buffer_, parser, kAwait);
    HttpRequest request = request_head(parser);
    if (head_ec && request.path.empty()) read_first_line(text_of(buffer_), request);
    request.id = request_id_or_new(request.header("X-Request-Id"));
    request.remote = remote_;
    request.by_side_port = by_side_;
    head_ = request;
    if (head_ec) {
      co_await refuse(head_ec, false);
      co_return false;
    }
    const Framing framing{parser.keep_alive() && !shared_.stopping, parser.get().version() >= 11,
                          request.method == "HEAD"};
    if (const auto wrong = wrong_framing(request.headers, parser.get().version() >= 11)) {
      co_await send_last(shared_.handler.error(head_, wrong->status, wrong->message), framing.head_only);
      co_return false;
    }
    if (auto refused = shared_.handler.refuse(request)) {
      co_await send_last(std::move(*refused), framing.head_only);
      co_return false;
    }
    head_.client = request.client;
    if (equals_ignoring_case(request.header("Expect"), "100-continue") && !parser.is_done()) {
      const std::string proceed = "HTTP/1.1 100 Continue\r\n\r\n";
      const bool sent = co_await write(proceed);
      if (!sent) co_return false;
    }
    const error_code body_ec = co_await read_body(parser);
    if (body_ec) {
      parser.get().body() = {};
      co_await refuse(body_ec, framing.head_only);
      co_return false;
    }
    request.body = std::move(parser.get().body());
    request.body_lease = std::move(lease_);
    const bool go_on = co_await answer(std::move(request), framing);
    busy_ = false;
    co_return go_on;
  }

  // Charged to the bound for all bodies as it comes, not as it is announced: an announcement costs a client nothing.
  asio::awaitable<error_code> read_body(Parser& parser) {
    size_t extension_bytes = 0;
    auto count_extensions = [&](uint64_t, beast::string_view extensions, error_code& ec) {
      extension_bytes += extensions.size();
      if (extension_bytes > shared_.config.max_header_bytes) ec = http::error::buffer_overflow;
    };
    parser.on_chunk_header(count_extensions);
    parser.eager(true);
    // The line of a chunk and the trailers are understood only when they are there as a whole.
    buffer_.max_size(std::max<size_t>(buffer_.size(), shared_.config.max_header_bytes));
    lease_ = std::make_shared<BodyLease>(shared_.bodies);
    receiving_ = true;
    gave_way_ = false;
    lowest().expires_after(shared_.config.body_timeout);
    error_code ec;
    while (!ec && !parser.is_done()) {
      const auto [read_ec, n] = co_await http::async_read_some(stream_, buffer_, parser, kAwait);
      ec = gave_way_ ? kNoRoom : read_ec;
      if (ec) break;
      const size_t more = parser.get().body().size() - lease_->bytes();
      if (shared_.make_room_for(*this, more)) {
        lease_->grow(more);
      } else {
        ec = kNoRoom;
      }
    }
    receiving_ = false;
    buffer_.max_size(kMaxUnparsedBytes);
    if (ec) lease_.reset();
    co_return ec;
  }

  asio::awaitable<bool> answer(HttpRequest request, Framing framing) {
    work_ = start(std::move(request));
    bool head_sent = false;
    bool done = false;
    while (!gone_ && !done) {
      woken_ = false;
      Piece piece = poll(head_sent);
      done = piece.done;
      if (piece.head && piece.head->status == 429) {
        if (done) work_.reset();
        co_await hold_back();
        if (gone_) break;
      }
      std::string bytes;
      if (piece.head) {
        const bool whole = piece.done && piece.body.empty();
        if (!whole && !framing.chunked) framing.keep_alive = false;
        bytes = format_head(*piece.head, head_.id, framing, whole);
        if (whole && !framing.head_only) bytes += piece.head->body;
        if (whole) framing.chunked = false;
        head_sent = true;
        done = done || framing.head_only;
      }
      if (!framing.head_only) {
        append_chunk(bytes, piece.body, framing.chunked);
        if (done && framing.chunked) bytes += kLastChunk;
      }
      if (!bytes.empty()) {
        const bool sent = co_await write(bytes);
        if (!sent) gone_ = true;
        shared_.freed_bytes += bytes.size();
      } else if (!done) {
        co_await wait();
      }
    }
    work_.reset();
    co_await stop_reading_ahead();
    const bool go_on = done && !gone_ && framing.keep_alive;
    co_return go_on;
  }

  std::unique_ptr<Answer> start(HttpRequest request) {
    // A flag of its own for each answer: what an old one still has to say concerns nobody.
    news_ = std::make_shared<NewsFlag>(false);
    auto wake = [poller = shared_.poller, news = news_] {
      news->store(true);
      poller->ring();
    };
    try {
      return shared_.handler.handle(std::move(request), std::move(wake));
    } catch (const std::exception& e) {
      return immediate(thrown(e));
    }
  }

  Piece poll(bool head_sent) {
    try {
      return work_->poll();
    } catch (const std::exception& e) {
      Piece piece;
      piece.done = true;
      // In the middle of a stream there is no way to say it but to break off.
      if (head_sent) {
        gone_ = true;
      } else {
        piece.head = thrown(e);
      }
      return piece;
    }
  }

  HttpResponse thrown(const std::exception& e) {
    if (dynamic_cast<const std::bad_alloc*>(&e)) return shared_.handler.error(head_, 503, kOutOfMemory);
    return shared_.handler.error(head_, 500, e.what());
  }

  // Until something woke us: the answer, the client's departure, or the end of the server.
  asio::awaitable<void> wait() {
    start_reading_ahead();
    if (woken_ || gone_) co_return;
    woken_timer_.expires_at(asio::steady_timer::time_point::max());
    shared_.poller->add(this);
    co_await woken_timer_.async_wait(kAwait);
    shared_.poller->remove(this);
  }

  // Clients that are told "too many" and come back at once would keep the machine busy with telling them so: they hear
  // it a little later.
  asio::awaitable<void> hold_back() {
    const Clock::time_point until = Clock::now() + shared_.config.busy_delay;
    start_reading_ahead();
    while (!gone_ && Clock::now() < until) {
      woken_timer_.expires_at(until);
      co_await woken_timer_.async_wait(kAwait);
    }
  }

  void start_reading_ahead() {
    if (reading_ahead_) return;
    reading_ahead_ = true;
    asio::co_spawn(shared_.poller->io, read_ahead(), asio::detached);
  }

  asio::awaitable<void> read_ahead() {
    const auto self = this->shared_from_this();
    lowest().expires_never();
    try {
      while (!stop_reading_ && !gone_) {
        const auto [ec, n] = co_await stream_.async_read_some(buffer_.prepare(kIdleReadBytes), kAwait);
        buffer_.commit(n);
        if (ec == asio::error::operation_aborted && stop_reading_) break;
        if (ec || buffer_.size() > kMaxReadAheadBytes) gone_ = true;
      }
    } catch (const std::exception&) {
      gone_ = true;  // no memory
    }
    reading_ahead_ = false;
    wake();
  }

  asio::awaitable<void> stop_reading_ahead() {
    stop_reading_ = true;
    while (reading_ahead_) {
      error_code ec;
      socket().cancel(ec);
      woken_timer_.expires_at(asio::steady_timer::time_point::max());
      co_await woken_timer_.async_wait(kAwait);
    }
    stop_reading_ = false;
  }

  asio::awaitable<bool> write(const std::string& bytes) {
    size_t written = 0;
    if constexpr (!kIsTls) {
      // The system nearly always takes it at once, which saves a timer and a turn of the loop for each token.
      error_code ec;
      written = socket().write_some(asio::buffer(bytes), ec);
      if (ec && ec != asio::error::would_block && ec != asio::error::try_again) co_return false;
      if (written == bytes.size()) co_return true;
    }
    lowest().expires_after(shared_.config.write_timeout);
    is_writing_ = true;
    last_taken_ = Clock::now();
    bool failed = false;
    while (!failed && written < bytes.size()) {
      const auto [ec, n] = co_await stream_.async_write_some(asio::buffer(bytes) + written, kAwait);
      written += n;
      failed = static_cast<bool>(ec);
      last_taken_ = Clock::now();
    }
    is_writing_ = false;
    lowest().expires_never();
    co_return !failed;
  }

  // Answers a request that could not be read, if its sender can still hear it.
  asio::awaitable<void> refuse(error_code ec, bool head_only) {
    const HttpConfig& config = shared_.config;
    int status = 0;
    std::string message;
    if (ec == http::error::body_limit) {
      status = 413;
      message = "request body: expected at most " + std::to_string(config.max_body_bytes) + " bytes, found more";
    } else if (ec == kNoRoom) {
      status = 503;
      message = "request body: those of all requests under way have " + std::to_string(config.max_body_memory) +
                " bytes, which is the limit; try again";
    } else if (ec == http::error::buffer_overflow) {
      status = 431;
      message = "request: expected at most " + std::to_string(config.max_header_bytes) +
                " bytes of chunk extensions and of trailers, found more";
    } else if (ec == http::error::header_limit) {
      status = 431;
      message = "request head: expected at most " + std::to_string(config.max_header_bytes) + " bytes, found more";
    } else if (ec != beast::error::timeout && is_http_error(ec)) {
      status = 400;
      message = "malformed HTTP request: " + ec.message();
    }
    // Otherwise the stream closed itself when its time ran out, or the client did.
    if (status != 0) co_await send_last(shared_.handler.error(head_, status, std::move(message)), head_only);
  }

  static std::string_view text_of(const beast::flat_buffer& buffer) {
    return {static_cast<const char*>(buffer.data().data()), buffer.size()};
  }

  static bool is_http_error(error_code ec) {
    return ec.category() == http::make_error_code(http::error::bad_version).category() &&
           ec != http::error::end_of_stream && ec != http::error::partial_message;
  }

  // A response after which the connection ends although its sender may still be sending.
  asio::awaitable<void> send_last(HttpResponse response, bool head_only) {
    if (response.status == 429) {
      woken_timer_.expires_after(shared_.config.busy_delay);
      co_await woken_timer_.async_wait(kAwait);
    }
    std::string bytes = format_head(response, head_.id, Framing{}, true);
    if (!head_only) bytes += response.body;
    const bool sent = co_await write(bytes);
    if (!sent) co_return;
    if constexpr (!kIsTls) {
      error_code ignored;
      socket().shutdown(tcp::socket::shutdown_send, ignored);
    }
    lowest().expires_after(kLingerTime);
    buffer_.clear();
    for (size_t drained = 0; drained < kLingerBytes;) {
      const auto [ec, n] = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), kAwait);
      if (ec) break;
      drained += n;
    }
  }

  Shared& shared_;
  Stream stream_;
  const bool by_side_;
  beast::flat_buffer buffer_{kMaxUnparsedBytes};
  std::shared_ptr<BodyLease> lease_;  // of the body that is coming
  std::unique_ptr<Answer> work_;      // of the request that is served now
  std::string remote_;                // address of the client
  HttpRequest head_;                  // of the request that is served now
  asio::steady_timer woken_timer_;
  std::shared_ptr<NewsFlag> news_ = std::make_shared<NewsFlag>(false);  // of the answer that is made now
  bool busy_ = false;             // between the first byte of a request and the last of its answer
  bool gone_ = false;             // the client, or our patience with it
  bool receiving_ = false;        // a body; it may have to give way
  bool gave_way_ = false;         // it did
  bool is_writing_ = false;       // and the system does not take it at once
  Clock::time_point last_taken_;  // when it last took something
  bool woken_ = false;            // since the last poll
  bool reading_ahead_ = false;    // read_ahead() runs and owns buffer_
  bool stop_reading_ = false;
};

}  // namespace chimere::server
