// http_client_test.cpp  Exchanges with a server on loopback that behaves, and with ones that do not.
#include "web/http_client.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "web/server_for_test.h"

namespace chimere::web {
namespace {

using fixture::Asked;
using fixture::Peer;
using fixture::TestServer;
using std::chrono::milliseconds;

HttpRequest get(const std::string& url) {
  HttpRequest request;
  request.url = url;
  request.limits.total = milliseconds(5000);
  return request;
}

TEST(HttpClient, SendsMethodHeadersAndBodyAndNothingElse) {
  std::string head, body;
  TestServer server([&](const Asked& asked, Peer& peer) {
    head = asked.head;
    body = asked.body;
    peer.answer("application/json", "{}", "X-One: a\r\nX-One: b\r\n", "201 Created");
  });
  HttpClient::Options options;
  options.user_agent = "Agent/1";
  const HttpClient client(options);
  HttpRequest request = get(server.url("/rpc?x=1"));
  request.method = "POST";
  request.headers = {{"Content-Type", "application/json"}, {"X-Key", "k"}, {"X-Empty", ""}};
  request.body = "{\"a\":1}";
  const auto answer = client.exchange(request);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->body, "{}");
  EXPECT_EQ(answer->header("content-type"), "application/json");
  EXPECT_EQ(answer->header("x-one"), "a");
  EXPECT_EQ(answer->header("absent"), "");
  EXPECT_EQ(body, "{\"a\":1}");
  EXPECT_EQ(head, "POST /rpc?x=1 HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server.port()) +
                      "\r\nUser-Agent: Agent/1\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\nContent-Type: "
                      "application/json\r\nX-Key: k\r\nX-Empty:\r\nContent-Length: 7\r\n\r\n");
  request.method = "DELETE";
  request.body.clear();
  ASSERT_TRUE(client.exchange(request));
  EXPECT_EQ(head.substr(0, 7), "DELETE ");
}

TEST(HttpClient, RefusesWhatCouldSmuggle) {
  const HttpClient client({});
  HttpRequest request = get("http://127.0.0.1:9/");
  for (const HttpHeader& header :
       {HttpHeader{"X", "a\r\nY: b"}, HttpHeader{"X Y", "a"}, HttpHeader{"", "a"}, HttpHeader{"Host", "a"},
        HttpHeader{"Content-Length", "5"}, HttpHeader{"X\n", "a"}}) {
    request.headers = {header};
    const auto answer = client.exchange(request);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::invalid_argument);
  }
  request.headers.clear();
  request.method = "GET / HTTP/1.1\r\nX:";
  EXPECT_FALSE(client.exchange(request));
  for (const char* url : {"file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:9/x", "http://a:b@127.0.0.1/",
                          "127.0.0.1", "", "http://127.0.0.1\n/", "dict://127.0.0.1/", "http://"}) {
    const auto answer = client.exchange(get(url));
    ASSERT_FALSE(answer) << url;
    EXPECT_EQ(answer.error().code, Code::invalid_argument) << url;
  }
}

TEST(HttpClient, NoProxyFromTheEnvironment) {
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  ::setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
  TestServer server([](const Asked&, Peer& peer) { peer.answer("text/plain", "direct"); });
  const auto answer = HttpClient({}).exchange(get(server.url()));
  ::unsetenv("http_proxy");
  ::unsetenv("ALL_PROXY");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "direct");

  std::string target;
  TestServer proxy([&](const Asked& asked, Peer& peer) {
    target = asked.target;
    peer.answer("text/plain", "by the proxy");
  });
  HttpClient::Options options;
  options.proxy = proxy.url();
  const auto by_proxy = HttpClient(options).exchange(get("http://page.example/x"));
  ASSERT_TRUE(by_proxy) << by_proxy.error().message;
  EXPECT_EQ(target, "http://page.example/x");
}

TEST(HttpClient, EveryAddressIsAskedAboutBeforeItIsConnectedTo) {
  TestServer server([](const Asked&, Peer& peer) { peer.answer("text/plain", "in"); });
  int n_names = 0;
  HttpClient::Options options;
  options.resolver = [&](const std::string& host) -> Result<std::vector<Address>> {
    ++n_names;
    EXPECT_EQ(host, "page.example");
    return std::vector<Address>{*parse_address("127.0.0.1")};
  };
  const HttpClient client(options);
  HttpRequest request = get("http://page.example:" + std::to_string(server.port()) + "/");
  std::vector<std::string> seen;
  request.allow_address = [&](const Address& address) -> Status {
    seen.push_back(address.text());
    return Error{Code::invalid_argument, "not this one"};
  };
  const auto refused = client.exchange(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "not this one");
  EXPECT_EQ(server.n_asked(), 0);
  EXPECT_EQ(seen, std::vector<std::string>{"127.0.0.1"});

  request.allow_address = [&](const Address&) -> Status { return Ok{}; };
  const auto answer = client.exchange(request);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "in");
  EXPECT_EQ(n_names, 2);  // nothing is remembered between exchanges
}

TEST(HttpClient, FollowsSoManyRedirectsAndNoMore) {
  std::vector<std::string> heads;
  TestServer other([&](const Asked& asked, Peer& peer) {
    heads.push_back(asked.head);
    peer.answer("text/plain", "there");
  });
  TestServer server([&](const Asked& asked, Peer& peer) {
    heads.push_back(asked.head);
    if (asked.target == "/a") return void(peer.redirect("b?x=1#part"));
    if (asked.target == "/b?x=1") return void(peer.redirect(other.url("/c"), "307 Temporary Redirect"));
    peer.redirect(asked.target);
  });
  const HttpClient client({});
  HttpRequest request = get(server.url("/a"));
  request.headers = {{"Authorization", "Bearer secret"}, {"Accept", "text/html"}};
  std::vector<std::string> asked_for;
  request.allow_url = [&](const Url& url) -> Status {
    asked_for.push_back(url.text);
    return Ok{};
  };
  auto answer = client.exchange(request);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 302);

  request.limits.redirects = 5;
  heads.clear();
  asked_for.clear();
  answer = client.exchange(request);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "there");
  EXPECT_EQ(answer->url, other.url("/c"));
  EXPECT_EQ(asked_for, (std::vector<std::string>{server.url("/a"), server.url("/b?x=1"), other.url("/c")}));
  ASSERT_EQ(heads.size(), 3u);
  EXPECT_NE(heads[1].find("secret"), std::string::npos);
  EXPECT_EQ(heads[2].find("secret"), std::string::npos);  // another origin
  EXPECT_NE(heads[2].find("Accept: text/html"), std::string::npos);

  request.url = server.url("/loop");
  answer = client.exchange(request);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 302);  // the sixth

  request.url = server.url("/b?x=1");
  request.method = "POST";
  request.body = "private";
  answer = client.exchange(request);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("with a body to another server"), std::string::npos) << answer.error().message;
}

TEST(HttpClient, StreamsPiecesAndCanBeStopped) {
  TestServer server([](const Asked&, Peer& peer) {
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 3; ++i) peer.send("8\r\ndata: " + std::to_string(i) + "\n\r\n");
    while (!peer.is_gone()) std::this_thread::sleep_for(milliseconds(5));
  });
  const HttpClient client({});
  HttpRequest request = get(server.url());
  request.limits.total = milliseconds(0);
  request.limits.body_bytes = 0;
  std::string type, received;
  request.on_head = [&](const HttpAnswer& answer) -> Status {
    type = answer.header("content-type");
    return Ok{};
  };
  request.on_body = [&](std::string_view piece) -> Status {
    received += piece;
    if (received.find("2\n") != std::string::npos) return Error{Code::cancelled, "enough"};
    return Ok{};
  };
  auto answer = client.exchange(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "enough");
  EXPECT_EQ(type, "text/event-stream");
  EXPECT_EQ(received, "data: 0\ndata: 1\ndata: 2\n");

  std::atomic<bool> is_cancelled{false};
  request.on_body = [&](std::string_view) -> Status {
    is_cancelled = true;
    return Ok{};
  };
  request.is_cancelled = [&] { return is_cancelled.load(); };
  answer = client.exchange(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::cancelled);

  request.is_cancelled = {};
  request.limits.silence = milliseconds(150);
  answer = client.exchange(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::exhausted);
}

TEST(HttpClient, LimitsOfHeadBodyAndTime) {
  TestServer server([](const Asked& asked, Peer& peer) {
    if (asked.target == "/head") {
      peer.send("HTTP/1.1 200 OK\r\n");
      while (peer.send("X-Long: " + std::string(1000, 'x') + "\r\n")) {
      }
    } else if (asked.target == "/body") {
      peer.send("HTTP/1.1 200 OK\r\n\r\n");
      while (peer.send(std::string(10'000, 'x'))) {
      }
    } else if (asked.target == "/slow") {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
      while (!peer.is_gone() && peer.send("x")) std::this_thread::sleep_for(milliseconds(10));
    } else {
      while (!peer.is_gone()) std::this_thread::sleep_for(milliseconds(5));  // /silent
    }
  });
  const HttpClient client({});
  for (const char* target : {"/head", "/body", "/slow", "/silent"}) {
    HttpRequest request = get(server.url(target));
    request.limits.body_bytes = 100'000;
    if (target[1] == 's') request.limits.total = milliseconds(200);
    const auto answer = client.exchange(request);
    ASSERT_FALSE(answer) << target;
    EXPECT_EQ(answer.error().code, Code::exhausted) << answer.error().message;
  }
}

TEST(HttpClient, BrokenAnswersAreErrors) {
  TestServer server([](const Asked& asked, Peer& peer) {
    if (asked.target == "/short") peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    if (asked.target == "/zero") peer.send("no head at all");
    if (asked.target == "/chunk") peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    if (asked.target == "/gzip")
      peer.send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd");
  });
  for (const char* target : {"/short", "/zero", "/chunk", "/gzip", "/nothing"}) {
    const auto answer = HttpClient({}).exchange(get(server.url(target)));
    ASSERT_FALSE(answer) << target;
    EXPECT_EQ(answer.error().code, Code::io) << answer.error().message;
  }
}

}  // namespace
}  // namespace chimere::web
