// http_server_test.cpp  Connections, limits and streams with a handler that only echoes.
#include "server/http/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <random>
#include <thread>

#include "server/http/client_for_test.h"

namespace chimere::server {
namespace {

// Counts to `n`, one piece for each wake from another thread.
class Counter : public Answer {
 public:
  Counter(int n, Wake wake, std::atomic<int>& alive) : n_(n), alive_(alive) {
    ++alive_;
    thread_ = std::jthread([this, wake](std::stop_token stop) {
      while (!stop.stop_requested() && ready_ <= n_) {
        ++ready_;
        wake();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  ~Counter() override { --alive_; }

  Piece poll() override {
    Piece piece;
    if (ready_ == 0) return piece;
    if (!started_) piece.head = HttpResponse{200, {{"Content-Type", "text/plain"}}, {}};
    started_ = true;
    while (sent_ < ready_ && sent_ < n_) piece.body += std::to_string(sent_++) + ",";
    piece.done = sent_ == n_;
    return piece;
  }

 private:
  const int n_;
  std::atomic<int>& alive_;
  std::atomic<int> ready_{0};
  int sent_ = 0;
  bool started_ = false;
  std::jthread thread_;
};

class Throwing : public Answer {
 public:
  Piece poll() override { throw std::runtime_error("odd"); }
};

class Echo : public HttpHandler {
 public:
  std::optional<HttpResponse> refuse(HttpRequest& head) override {
    if (head.path == "/refused") return HttpResponse{403, {}, "no"};
    if (head.path == "/too-many") return HttpResponse{429, {}, "too many"};
    return std::nullopt;
  }
  std::unique_ptr<Answer> handle(HttpRequest request, Wake wake) override {
    if (request.path == "/count") return std::make_unique<Counter>(std::atoi(request.query.c_str()), wake, alive);
    if (request.path == "/full") return immediate({429, {}, "full"});
    if (request.path == "/throw") return std::make_unique<Throwing>();
    if (request.path == "/door") return immediate({200, {}, request.by_side_port ? "side" : "main"});
    if (request.path == "/hold") std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    return immediate({200, {{"X-Test", "yes"}}, request.method + " " + request.path + " " + request.body});
  }
  HttpResponse error(const HttpRequest&, int status, std::string message) override {
    return {status, {}, "error: " + message};
  }

  std::atomic<int> alive{0};
};

class HttpServerTest : public testing::Test {
 protected:
  void start(HttpConfig config = {}) {
    config.port = 0;
    auto server = HttpServer::listen(config, echo_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    thread_ = std::thread([this] { server_->run(); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
    EXPECT_EQ(echo_.alive, 0);
  }
  void TearDown() override { stop(); }
  uint16_t port() const { return server_->port(); }

  Echo echo_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_F(HttpServerTest, AnswersSeveralRequestsOnOneConnection) {
  start();
  Client client(port());
  for (int i = 0; i < 3; ++i) {
    const ClientResponse response = client.request("POST", "/a?b=c", "body" + std::to_string(i));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "POST /a body" + std::to_string(i));
    EXPECT_EQ(response.header("X-Test"), "yes");
    EXPECT_EQ(response.header("Connection"), "keep-alive");
  }
}

TEST_F(HttpServerTest, NamesEveryAnswer) {
  start();
  const std::string id = "X-Request-Id";
  Client client(port());
  const std::string first = client.request("GET", "/").header(id);
  const std::string second = client.request("GET", "/").header(id);
  EXPECT_EQ(first.rfind("req-", 0), 0u) << first;
  EXPECT_NE(first, second);
  EXPECT_EQ(client.request("GET", "/", {}, "x-request-id: my_own.1:2-3\r\n").header(id), "my_own.1:2-3");
  for (const std::string& odd : {std::string("two words"), std::string(65, 'x'), std::string("a\tb"), std::string()}) {
    EXPECT_EQ(client.request("GET", "/", {}, "X-Request-Id: " + odd + "\r\n").header(id).rfind("req-", 0), 0u) << odd;
  }
  EXPECT_NE(client.request("GET", "/count?3").header(id), "");
  EXPECT_NE(client.request("GET", "/throw").header(id), "");
  EXPECT_NE(Client(port()).request("GET", "/refused").header(id), "");
  Client odd(port());
  odd.send("hello\r\n\r\n");
  EXPECT_NE(odd.read_response().header(id), "");
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  start();
  Client client(port());
  client.send("GET /count?5 HTTP/1.1\r\n\r\nGET /second HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.read_response().body, "0,1,2,3,4,");
  EXPECT_EQ(client.read_response().body, "GET /second ");
}

TEST_F(HttpServerTest, StreamsPiecesAndKeepsTheConnection) {
  start();
  Client client(port());
  const ClientResponse response = client.request("GET", "/count?40");
  EXPECT_EQ(response.header("Transfer-Encoding"), "chunked");
  std::string expected;
  for (int i = 0; i < 40; ++i) expected += std::to_string(i) + ",";
  EXPECT_EQ(response.body, expected);
  EXPECT_EQ(client.request("GET", "/again").body, "GET /again ");
}

TEST_F(HttpServerTest, StreamsToAnOldClientUntilTheConnectionEnds) {
  start();
  Client client(port());
  client.send("GET /count?3 HTTP/1.0\r\n\r\n");
  const ClientResponse response = client.read_response();
  EXPECT_EQ(response.header("Transfer-Encoding"), "");
  EXPECT_EQ(response.header("Connection"), "close");
  EXPECT_EQ(response.body, "0,1,2,");
}

TEST_F(HttpServerTest, ClosesWhenAsked) {
  start();
  Client client(port());
  EXPECT_EQ(client.request("GET", "/", {}, "Connection: close\r\n").header("Connection"), "close");
  EXPECT_EQ(client.request("GET", "/").status, 0);
}

TEST_F(HttpServerTest, EndsTheWorkOfAClientThatLeft) {
  start();
  {
    Client client(port());
    client.send("GET /count?1000000000 HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(client.read_until("5,"));
    EXPECT_EQ(echo_.alive, 1);
  }
  while (echo_.alive != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(HttpServerTest, RefusesALargeBodyWhetherAnnouncedOrNot) {
  HttpConfig config;
  config.max_body_bytes = 1000;
  start(config);
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(Client(port()).request("POST", "/", large).status, 413);
  Client chunked(port());
  chunked.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n" + std::string(0x800, 'y') + "\r\n");
  const ClientResponse response = chunked.read_response();
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(response.body, "error: request body: expected at most 1000 bytes, found more");
  EXPECT_EQ(Client(port()).request("POST", "/", std::string(1000, 'z')).status, 200);
}

TEST_F(HttpServerTest, WhoIsOneTooManyHearsOfItLate) {
  HttpConfig config;
  config.busy_delay = std::chrono::milliseconds(200);
  start(config);
  for (const char* path : {"/full", "/too-many"}) {
    const auto asked = std::chrono::steady_clock::now();
    EXPECT_EQ(Client(port()).request("GET", path).status, 429);
    EXPECT_GE(std::chrono::steady_clock::now() - asked, config.busy_delay) << path;
  }
  Client again(port());
  EXPECT_EQ(again.request("GET", "/full").status, 429);
  EXPECT_EQ(again.request("GET", "/").status, 200) << "the connection goes on";
  // Those who leave meanwhile, or are still there when the server stops, hold up nobody.
  Client(port()).send("GET /full HTTP/1.1\r\n\r\n");
  Client waiting(port());
  waiting.send("GET /full HTTP/1.1\r\n\r\n");
  EXPECT_EQ(Client(port()).request("GET", "/").status, 200);
}

TEST_F(HttpServerTest, RefusesALongHead) {
  start();
  const std::string header = "X-Long: " + std::string(100'000, 'x') + "\r\n";
  EXPECT_EQ(Client(port()).request("GET", "/", {}, header).status, 431);
}

TEST_F(HttpServerTest, RefusesWhatIsNoHttp) {
  start();
  for (const char* text : {"hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: -3\r\n\r\n",
                           "\x16\x03\x01\x02\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n"}) {
    Client client(port());
    client.send(text);
    EXPECT_EQ(client.read_response().status, 400) << text;
  }
  EXPECT_EQ(Client(port()).request("GET", "/").status, 200);
}

TEST_F(HttpServerTest, SurvivesMutatedRequests) {
  HttpConfig config;
  config.header_timeout = std::chrono::milliseconds(20);
  config.body_timeout = std::chrono::milliseconds(20);
  config.idle_timeout = std::chrono::milliseconds(20);
  start(config);
  const std::string original =
      "POST /count?3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: "
      "100-continue\r\n\r\n4\r\nbody\r\n0\r\n\r\n";
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::string text = original;
    for (size_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, 1 + random() % 5); break;
        default: text.insert(at, text.substr(random() % text.size(), random() % 20)); break;
      }
      if (text.empty()) text = "\r";
    }
    Client client(port());
    client.send(text);
    // Half of the clients do not wait for an answer.
    if (round % 2 == 0) client.read_response();
  }
  EXPECT_EQ(Client(port()).request("GET", "/").status, 200);
}

TEST_F(HttpServerTest, RefusesOnTheHeadBeforeTheBodyComes) {
  start();
  Client client(port());
  client.send("POST /refused HTTP/1.1\r\nContent-Length: 5000000\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_response().status, 403);
}

TEST_F(HttpServerTest, TellsAClientThatAsksToGoOn) {
  start();
  Client client(port());
  client.send("POST /x HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_response().status, 100);
  client.send("ok");
  EXPECT_EQ(client.read_response().body, "POST /x ok");
}

TEST_F(HttpServerTest, SendsNoBodyToHead) {
  start();
  Client client(port());
  client.send("HEAD /x HTTP/1.1\r\n\r\nGET /y HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(client.read_until("GET /y "));
  EXPECT_EQ(client.received().find("HEAD /x"), std::string::npos);
}

TEST_F(HttpServerTest, AnExceptionCostsOneAnswer) {
  start();
  Client client(port());
  const ClientResponse response = client.request("GET", "/throw");
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body, "error: odd");
  EXPECT_EQ(client.request("GET", "/").status, 200);
}

TEST_F(HttpServerTest, TurnsAwayConnectionsBeyondTheLimit) {
  HttpConfig config;
  config.max_connections = 2;
  start(config);
  Client first(port()), second(port());
  EXPECT_EQ(first.request("GET", "/").status, 200);
  EXPECT_EQ(second.request("GET", "/").status, 200);
  EXPECT_EQ(Client(port()).read_response().status, 503);
  first.close();
  // The place is free as soon as the server has noticed.
  int status = 0;
  while (status != 200) status = Client(port()).request("GET", "/").status;
}

TEST_F(HttpServerTest, ClosesAConnectionThatSaysNothingOrTooSlowly) {
  HttpConfig config;
  config.idle_timeout = std::chrono::milliseconds(50);
  config.header_timeout = std::chrono::milliseconds(50);
  config.body_timeout = std::chrono::milliseconds(50);
  start(config);
  for (const char* text : {"", "GET / HT", "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc"}) {
    Client client(port());
    client.send(text);
    EXPECT_EQ(client.read_response().status, 0) << text;
  }
}

TEST_F(HttpServerTest, StopsWithAnswersUnderWay) {
  HttpConfig config;
  config.shutdown_grace = std::chrono::milliseconds(50);
  start(config);
  Client idle(port()), busy(port());
  EXPECT_EQ(idle.request("GET", "/").status, 200);
  busy.send("GET /count?1000000000 HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(busy.read_until("5,"));
  stop();
  EXPECT_FALSE(busy.read_until("never"));
  EXPECT_EQ(idle.read_response().status, 0);
}

// Five seconds are promised, and the engine and the disk need some of them.
// The I/O thread is held for more than a tick while the last client leaves: it then finds both at once, the client's
// end first, and the tick, which can not be cancelled any more, must not be the first of many.
TEST_F(HttpServerTest, StopsWhenTheLastClientLeavesAtATick) {
  start();
  Client leaving(port()), holding(port());
  leaving.send("GET / HT");
  holding.send("GET /hold HTTP/1.1\r\n");
  EXPECT_EQ(Client(port()).request("GET", "/").status, 200);  // so both have been read
  auto ended = std::async(std::launch::async, [this] { stop(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  holding.send("\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  leaving.close();
  if (ended.wait_for(std::chrono::seconds(20)) == std::future_status::ready) return;
  ADD_FAILURE() << "the server goes on without listening";
  std::abort();  // nothing else ends its thread
}

TEST(HttpConfig, LeavesTimeToEndWhenItStops) {
  EXPECT_LE(HttpConfig().shutdown_grace + kLastWords, std::chrono::seconds(4));
}

TEST_F(HttpServerTest, SaysThatThePortIsTaken) {
  start();
  HttpConfig config;
  config.port = port();
  const auto second = HttpServer::listen(config, echo_);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("is taken"), std::string::npos) << second.error().message;
}

uint16_t port_of(const std::string& url) {
  return static_cast<uint16_t>(std::atoi(url.substr(url.rfind(':') + 1).c_str()));
}

TEST_F(HttpServerTest, ASecondPortSaysSoInItsRequests) {
  HttpConfig config;
  config.side_port = 0;
  start(config);
  const auto side = server_->side_url();
  ASSERT_TRUE(side);
  EXPECT_EQ(side->rfind("http://127.0.0.1:", 0), 0u) << *side;
  ASSERT_NE(port_of(*side), port());
  EXPECT_EQ(Client(port()).request("GET", "/door").body, "main");
  EXPECT_EQ(Client(port_of(*side)).request("GET", "/door").body, "side");

  config.port = 0;
  config.side_port = port_of(*side);
  for (const Status& taken : {check_address(config), Status(HttpServer::listen(config, echo_).error())}) {
    ASSERT_FALSE(taken);
    EXPECT_NE(taken.error().message.find("is taken"), std::string::npos) << taken.error().message;
    EXPECT_NE(taken.error().message.find("--odo-port"), std::string::npos) << taken.error().message;
  }
  config.port = port_of(*side);
  const Status same = check_address(config);
  ASSERT_FALSE(same);
  EXPECT_NE(same.error().message.find("for both"), std::string::npos) << same.error().message;
}

TEST_F(HttpServerTest, WithoutASecondPortThereIsNone) {
  start();
  EXPECT_FALSE(server_->side_url());
}

TEST(IsLoopback, KnowsWhatStaysOnTheMachine) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "localhost"}) EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"0.0.0.0", "192.168.1.1", "::", "example.org", ""}) EXPECT_FALSE(is_loopback(host)) << host;
}

}  // namespace
}  // namespace chimere::server
