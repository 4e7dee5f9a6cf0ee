// hostile_http_test.cpp  What clients send who mean no good: bytes without end outside of heads and bodies, requests
// whose end is a matter of opinion, more bodies than there is memory.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <new>
#include <thread>
#include <vector>

#include "server/http/client_for_test.h"
#include "server/http/http_server.h"

namespace chimere::server {
namespace {

class OutOfMemory : public Answer {
 public:
  Piece poll() override { throw std::bad_alloc(); }
};

// Says which path was asked for, and how long the body was.
class PathHandler : public HttpHandler {
 public:
  std::optional<HttpResponse> refuse(HttpRequest&) override { return std::nullopt; }
  std::unique_ptr<Answer> handle(HttpRequest request, Wake) override {
    ++n_requests;
    if (request.path == "/no-memory") return std::make_unique<OutOfMemory>();
    if (request.path == "/none-at-once") throw std::bad_alloc();
    return immediate({200, {}, request.path + " " + std::to_string(request.body.size())});
  }
  HttpResponse error(const HttpRequest&, int status, std::string message) override { return {status, {}, message}; }

  std::atomic<int> n_requests{0};
};

class HostileHttp : public testing::Test {
 protected:
  void start(HttpConfig config = {}) {
    config.port = 0;
    auto server = HttpServer::listen(config, handler_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    thread_ = std::thread([this] { server_->run(); });
  }
  void TearDown() override {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }
  uint16_t port() const { return server_->port(); }

  // Sends the beginning, then `piece` again and again; how many bytes the server took before it refused.
  size_t send_without_end(Client& client, const std::string& beginning, const std::string& piece, size_t most) {
    client.send(beginning);
    size_t sent = 0;
    pollfd readable{client.socket(), POLLIN, 0};
    while (sent < most && ::poll(&readable, 1, 0) == 0 && client.send(piece)) sent += piece.size();
    return sent;
  }

  PathHandler handler_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

constexpr const char* kChunked = "POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
// Far more than sockets hold on their way.
constexpr size_t kWithoutEnd = size_t{256} << 20;

TEST_F(HostileHttp, RefusesTrailersWithoutEnd) {
  start();
  Client client(port());
  const std::string piece = "X-Trailer: " + std::string(1000, 't') + "\r\n";
  EXPECT_LT(send_without_end(client, std::string(kChunked) + "1\r\na\r\n0\r\n", piece, kWithoutEnd), kWithoutEnd);
  EXPECT_EQ(client.read_response().status, 431);
  EXPECT_EQ(handler_.n_requests, 0);
  EXPECT_EQ(Client(port()).request("GET", "/y").body, "/y 0");
}

TEST_F(HostileHttp, RefusesOneTrailerWithoutEnd) {
  start();
  Client client(port());
  const std::string piece(10'000, 't');
  EXPECT_LT(send_without_end(client, std::string(kChunked) + "0\r\nX: ", piece, kWithoutEnd), kWithoutEnd);
  EXPECT_EQ(client.read_response().status, 431);
}

TEST_F(HostileHttp, RefusesChunkExtensionsWithoutEnd) {
  start();
  Client one(port());
  EXPECT_LT(send_without_end(one, std::string(kChunked) + "1;x=", std::string(10'000, 'e'), kWithoutEnd), kWithoutEnd);
  EXPECT_EQ(one.read_response().status, 431);
  Client many(port());
  const std::string piece = "1;x=" + std::string(1000, 'e') + "\r\na\r\n";
  EXPECT_LT(send_without_end(many, kChunked, piece, kWithoutEnd), kWithoutEnd);
  EXPECT_EQ(many.read_response().status, 431);
  EXPECT_EQ(handler_.n_requests, 0);
}

TEST_F(HostileHttp, TakesTrailersAndExtensionsOfOrdinarySize) {
  start();
  Client client(port());
  client.send(std::string(kChunked) + "3;name=value\r\nabc\r\n0;last\r\nX-Digest: 1\r\n\r\n");
  EXPECT_EQ(client.read_response().body, "/x 3");
  std::string tiny = kChunked;
  for (int i = 0; i < 30'000; ++i) tiny += "1\r\na\r\n";
  client.send(tiny + "0\r\n\r\n");
  EXPECT_EQ(client.read_response().body, "/x 30000");
}

// What one reader takes for the body of the first request another one takes for a second request.
TEST_F(HostileHttp, RefusesRequestsWhoseEndIsAMatterOfOpinion) {
  start();
  const std::string smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string in_chunk = "23\r\n" + smuggled + "\r\n0\r\n\r\n";
  const struct {
    const char* headers;
    int status;
  } cases[] = {
      {"Transfer-Encoding: chunked, identity\r\n", 501},
      {"Transfer-Encoding: identity, chunked\r\n", 501},
      {"Transfer-Encoding: xchunked\r\n", 501},
      {"Transfer-Encoding: gzip\r\n", 501},
      {"Transfer-Encoding: gzip, chunked\r\n", 501},
      {"Transfer-Encoding: identity\r\n", 501},
      {"Transfer-Encoding: \"chunked\"\r\n", 501},
      {"Transfer-Encoding: chunked;q=1\r\n", 501},
      {"Transfer-Encoding: \r\n", 501},
      {"Transfer-Encoding: xchunked\r\nTransfer-Encoding: chunked\r\n", 501},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 400},
      {"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", 400},
      {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Content-Length: 4\r\nTransfer-Encoding: xchunked\r\n", 400},
      {"Content-Length: 4\r\nContent-Length: 4\r\n", 400},
      {"Content-Length: 4\r\nContent-Length: 5\r\n", 400},
      {"Content-Length: +4\r\n", 400},
      {"Transfer-Encoding : chunked\r\n", 400},
  };
  for (const auto& [headers, status] : cases) {
    Client client(port());
    client.send("POST /x HTTP/1.1\r\nHost: x\r\n" + std::string(headers) + "\r\n" + in_chunk + smuggled);
    const ClientResponse first = client.read_response();
    EXPECT_EQ(first.status, status) << headers;
    EXPECT_EQ(first.header("Connection"), "close") << headers;
    EXPECT_EQ(client.read_response().status, 0) << headers << " the connection goes on";
  }
  Client old(port());
  old.send("POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + in_chunk);
  EXPECT_EQ(old.read_response().status, 400);
  EXPECT_EQ(handler_.n_requests, 0);
  Client proper(port());
  proper.send("POST /x HTTP/1.1\r\ntransfer-ENCODING:   Chunked  \r\n\r\n" + in_chunk);
  EXPECT_EQ(proper.read_response().body, "/x 35");
}

TEST_F(HostileHttp, BodiesOfAllConnectionsHaveOneBound) {
  HttpConfig config;
  config.max_body_bytes = 400'000;
  config.max_body_memory = 1'000'000;
  start(config);
  constexpr int kClients = 12;  // of which two fit
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<pollfd> polled;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>(port()));
    clients.back()->send("POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 400000\r\n\r\n" +
                         std::string(390'000, 'x'));
    polled.push_back({clients.back()->socket(), POLLIN, 0});
  }
  const auto refused = [&] {
    ::poll(polled.data(), polled.size(), 0);
    int n = 0;
    for (const pollfd& p : polled) n += (p.revents & POLLIN) != 0;
    return n;
  };
  for (int i = 0; i < 3000 && refused() < kClients - 2; ++i) {
    // Who asks for little is not kept out by those who ask for much.
    EXPECT_EQ(Client(port()).request("POST", "/small", std::string(1000, 'y')).status, 200);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_EQ(refused(), kClients - 2);
  int served = 0;
  for (int i = 0; i < kClients; ++i) {
    clients[static_cast<size_t>(i)]->send(std::string(10'000, 'x'));
    const int status = clients[static_cast<size_t>(i)]->read_response().status;
    EXPECT_TRUE(status == 200 || status == 503) << status;
    served += status == 200;
  }
  EXPECT_EQ(served, 2);
  // All of it was given back.
  EXPECT_EQ(Client(port()).request("POST", "/x", std::string(400'000, 'x')).body, "/x 400000");
}

TEST_F(HostileHttp, FreedMemoryGoesBackWithoutAGeneration) {
  std::atomic<int> released{0};
  HttpConfig config;
  config.release_memory = [&] { ++released; };
  start(config);
  EXPECT_EQ(Client(port()).request("POST", "/x", std::string(6'000'000, 'x')).status, 200);
  for (int i = 0; i < 3000 && released == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GT(released, 0);
}

TEST_F(HostileHttp, RunningOutOfMemoryCostsOneRequest) {
  start();
  Client client(port());
  EXPECT_EQ(client.request("GET", "/no-memory").status, 503);
  EXPECT_EQ(client.request("GET", "/none-at-once").status, 503);
  EXPECT_EQ(client.request("GET", "/x").status, 200);
}

TEST_F(HostileHttp, ServesOthersWhileManyHeadsAreSlow) {
  start();
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 300; ++i) {
    slow.push_back(std::make_unique<Client>(port()));
    slow.back()->send("POST /x HTTP/1.1\r\nHost: x\r\nX-Slow: ");
  }
  EXPECT_EQ(Client(port()).request("GET", "/y").status, 200);
  for (auto& client : slow) client->send("a");
  EXPECT_EQ(Client(port()).request("GET", "/y").status, 200);
  slow.front()->send("\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(slow.front()->read_response().body, "/x 2");
}

TEST_F(HostileHttp, SurvivesClientsThatLeaveAnywhere) {
  start();
  const std::string text = std::string(kChunked) + "4;x=y\r\nbody\r\n0\r\nX-Trailer: z\r\n\r\n";
  for (size_t n = 0; n <= text.size(); ++n) {
    for (const bool reset : {false, true}) {
      Client client(port());
      client.send(std::string_view(text).substr(0, n));
      // With this a close is a reset.
      const linger at_once{1, 0};
      if (reset) setsockopt(client.socket(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
  }
  EXPECT_EQ(Client(port()).request("GET", "/y").status, 200);
}

}  // namespace
}  // namespace chimere::server
