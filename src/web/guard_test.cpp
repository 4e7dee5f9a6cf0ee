// guard_test.cpp  Hostile addresses in every spelling, names and redirects that lead inside, and servers that would
// keep us.
#include "web/guard.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "web/page_fetcher.h"
#include "web/server_for_test.h"

namespace chimere::web {
namespace {

using fixture::Asked;
using fixture::Peer;
using fixture::TestServer;

// Each is refused before a connection is made; that of a name, once it is resolved.
constexpr const char* kHostileUrls[] = {
    // this machine
    "http://127.0.0.1/",
    "http://127.0.0.1:80/",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7F.0.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.0.0.1./",
    "http://127.0.0.1../",
    "http://127.255.255.254/",
    "http://0.0.0.0/",
    "http://0/",
    "http://0x0/",
    "http://0.1.2.3/",
    "http://00000000177.1/",
    "https://127.0.0.1/",
    "HTTP://127.0.0.1/",
    "http:/127.0.0.1/",
    "http:///127.0.0.1/",
    "http://%31%32%37.0.0.1/",
    "http://%6cocalhost/",
    // its network
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://012.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://0xc0a80101/",
    "http://3232235777/",
    "http://192.168.257/",
    // providers, clouds, links
    "http://100.64.0.1/",
    "http://100.127.255.255/",
    "http://100.100.100.200/",
    "http://169.254.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://0xA9FEA9FE/",
    "http://2852039166/",
    "http://168.63.129.16/",
    // reserved
    "http://192.0.0.1/",
    "http://192.0.2.1/",
    "http://192.88.99.1/",
    "http://198.18.0.1/",
    "http://198.19.255.255/",
    "http://198.51.100.1/",
    "http://203.0.113.1/",
    "http://224.0.0.1/",
    "http://239.255.255.255/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    // IPv6
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[0000::0001]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[::ffff:8.8.8.8]/",
    "http://[::127.0.0.1]/",
    "http://[::8.8.8.8]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[2606:4700::1%251]/",
    "http://[fc00::1]/",
    "http://[fd00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[2001:db8::1]/",
    "http://[2001::1]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:808:808::]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::10.0.0.1]/",
    "http://[64:ff9b:1::1]/",
    "http://[100::1]/",
    "http://[3fff::1]/",
    "http://[5f00::1]/",
    "http://[4000::1]/",
    // names of a local network
    "http://localhost/",
    "http://LocalHost/",
    "http://localhost./",
    "http://a.localhost/",
    "http://printer.local/",
    "http://router/",
    "http://metadata.google.internal/",
    "http://nas.lan/",
    "http://x.home.arpa/",
    "http://box.intranet./",
    // other alphabets that are read as these
    "http://\u24DB\u24DE\u24D2\u24D0\u24DB\u24D7\u24DE\u24E2\u24E3/",
    "http://\u2460\u2461\u2466.\u24EA.\u24EA.\u2460/",
    "http://127\u30020\u30020\u30021/",
    // another host than it looks
    "http://example.com@127.0.0.1/",
    "http://127.0.0.1@example.com/",
    "http://user:password@example.com/",
    "http://example.com:80@127.0.0.1/",
    "http://127.0.0.1\\@example.com/",
    "http:\\\\127.0.0.1\\",
    "http://example.com\t.127.0.0.1/",
    "http://example.com\r\nHost: 127.0.0.1/",
    "http://[::1",
    "http://[::1]x/",
    "http://127.0.0.1:80:80/",
    // ports and protocols
    "http://example.com:22/",
    "http://example.com:25/",
    "http://example.com:6379/",
    "https://example.com:8443/",
    "http://example.com:0/",
    "http://example.com:65536/",
    "file:///etc/passwd",
    "ftp://example.com/",
    "gopher://127.0.0.1:6379/_x",
    "dict://127.0.0.1:11211/",
    "javascript:alert(1)",
    "data:text/html,x",
    "//127.0.0.1/",
    "127.0.0.1",
    "",
    "http://",
    "ldap://127.0.0.1/",
    "unix:///run/x.sock",
    // names that lead inside
    "http://loopback.example/",
    "http://six.example/",
    "http://private.example/",
    "http://mapped.example/",
    "http://metadata.example/",
    "http://several.example/",
    "https://loopback.example/",
    "http://LOOPBACK.example./",
};

Result<std::vector<Address>> hostile_names(const std::string& name) {
  static const std::map<std::string, std::vector<const char*>> kNames = {
      {"loopback.example", {"127.0.0.1"}},       {"six.example", {"::1"}},
      {"private.example", {"10.1.2.3"}},         {"mapped.example", {"::ffff:127.0.0.1"}},
      {"metadata.example", {"169.254.169.254"}}, {"several.example", {"127.0.0.1", "192.168.1.1", "fe80::1"}},
  };
  std::string host = name;
  while (!host.empty() && host.back() == '.') host.pop_back();
  const auto at = kNames.find(host);
  if (at == kNames.end()) return Error{Code::io, "asked for the address of " + name};
  std::vector<Address> addresses;
  for (const char* text : at->second) addresses.push_back(*parse_address(text));
  return addresses;
}

PageFetcher::Options quick_options() {
  PageFetcher::Options options;
  options.pause = std::chrono::milliseconds(0);
  options.page_time = std::chrono::milliseconds(3000);
  return options;
}

TestAllowance allow_first(const TestServer& server) { return {{*parse_address("127.0.0.1")}, {server.port()}}; }

TEST(Guard, RefusesHostileUrls) {
  static_assert(std::size(kHostileUrls) >= 60);
  PageFetcher::Options options = quick_options();
  options.resolver = hostile_names;
  for (const bool with_robots : {true, false}) {
    options.respects_robots = with_robots;
    PageFetcher fetcher(options);
    for (const char* url : kHostileUrls) {
      const auto page = fetcher.fetch(url, {});
      ASSERT_FALSE(page) << url;
      EXPECT_EQ(page.error().code, Code::invalid_argument) << url << ": " << page.error().message;
    }
    EXPECT_EQ(fetcher.counters().refused, std::size(kHostileUrls));
  }
}

TEST(Guard, OpensPublicAddresses) {
  const Guard guard;
  for (const char* text :
       {"https://example.com/", "http://93.184.216.34/", "https://[2606:2800:220:1::1]/", "http://8.8.8.8:443/",
        "https://b\u00FCcher.example/", "http://172.32.0.1/", "http://100.128.0.1/", "http://11.0.0.1/",
        "http://[64:ff9b::808:808]/", "http://locals.example/", "http://notlocalhost.example/"}) {
    const auto url = parse_url(text);
    ASSERT_TRUE(url) << url.error().message;
    const Status allowed = guard.check_url(*url);
    EXPECT_TRUE(allowed) << allowed.error().message;
  }
}

TEST(Guard, EveryRedirectIsLookedAt) {
  std::string where;
  TestServer server([&](const Asked& asked, Peer& peer) {
    if (asked.target == "/robots.txt") return void(peer.answer("text/plain", "", "", "404 Not Found"));
    // Three harmless steps first.
    if (asked.target == "/0") return void(peer.redirect("/1"));
    if (asked.target == "/1") return void(peer.redirect("2", "307 Temporary Redirect"));
    if (asked.target == "/2") return void(peer.redirect(where, "301 Moved Permanently"));
    peer.answer("text/plain", "inside");
  });
  PageFetcher::Options options = quick_options();
  options.resolver = hostile_names;
  const std::string port = std::to_string(server.port());
  for (const std::string& target :
       {"http://127.0.0.2:" + port + "/in", "http://localhost:" + port + "/in", "http://[::1]:" + port + "/in",
        "http://0x7f000002:" + port + "/in", "//127.0.0.2:" + port + "/in", std::string("http://10.0.0.1/"),
        std::string("file:///etc/passwd"), "http://private.example:" + port + "/in",
        "http://u@127.0.0.1:" + port + "/in", std::string("http://example.com:22/"),
        std::string("http://169.254.169.254/latest")}) {
    where = target;
    PageFetcher fetcher(options, allow_first(server));
    const auto page = fetcher.fetch(server.url("/0"), {});
    ASSERT_FALSE(page) << target;
    EXPECT_EQ(page.error().code, Code::invalid_argument) << target << ": " << page.error().message;
  }
  for (const std::string& asked : server.targets()) EXPECT_NE(asked, "/in");

  where = "/0";  // a ring
  PageFetcher fetcher(options, allow_first(server));
  const auto page = fetcher.fetch(server.url("/0"), {});
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, Code::not_found) << page.error().message;

  where = "/page";
  PageFetcher good(options, allow_first(server));
  ASSERT_TRUE(good.fetch(server.url("/0"), {}));
}

// A name whose second answer leads inside: what was resolved for one look is never taken for the next.
TEST(Guard, ANameThatChangesItsMindIsRefused) {
  TestServer server([](const Asked& asked, Peer& peer) {
    if (asked.target == "/robots.txt") return void(peer.answer("text/plain", "", "", "404 Not Found"));
    if (asked.target == "/turn") return void(peer.redirect("/secret"));
    peer.answer("text/plain", "secret");
  });
  const std::string url = "http://changing.example:" + std::to_string(server.port());
  for (const int n_good : {1, 2}) {
    int n = 0;
    PageFetcher::Options options = quick_options();
    options.respects_robots = n_good == 1;
    options.resolver = [&](const std::string&) -> Result<std::vector<Address>> {
      return std::vector<Address>{*parse_address(n++ < n_good ? "127.0.0.1" : "127.0.0.2")};
    };
    PageFetcher fetcher(options, allow_first(server));
    const auto page = fetcher.fetch(url + "/turn", {});
    if (n_good == 1) {  // robots.txt had the good address, the page has the bad one
      ASSERT_FALSE(page);
      EXPECT_EQ(page.error().message, "refused: 127.0.0.2 is a loopback address");
      EXPECT_EQ(server.targets(), std::vector<std::string>{"/robots.txt"});
    } else {  // both good: the control
      ASSERT_TRUE(page) << page.error().message;
    }
  }
}

// x, and then 258 more of it in 13 bits each: the most that deflate can do.
std::string gzip_of_x(size_t n_bytes) {
  std::string out("\x1F\x8B\x08\0\0\0\0\0\0\x03", 10);
  uint32_t bits = 0;
  int n_bits = 0;
  const auto put = [&](uint32_t value, int n) {
    for (int i = 0; i < n; ++i) {
      bits |= (value >> i & 1) << n_bits;
      if (++n_bits == 8) {
        out += static_cast<char>(bits);
        bits = 0;
        n_bits = 0;
      }
    }
  };
  const auto put_code = [&](uint32_t code, int n) {
    for (int i = n - 1; i >= 0; --i) put(code >> i & 1, 1);
  };
  put(1, 1);                // the last block
  put(1, 2);                // fixed codes
  put_code(0x30 + 'x', 8);  // a literal
  for (size_t n = 1; n < n_bytes; n += 258) {
    put_code(0xC5, 8);  // 258 bytes
    put_code(0, 5);     // from one byte back
  }
  put_code(0, 7);
  put(0, 7);
  return out;
}

TEST(Guard, LargeSlowAndForeignAnswersEnd) {
  const std::string bomb = gzip_of_x(64 * 1024 * 1024);
  ASSERT_LT(bomb.size(), 500'000u);
  TestServer server([&](const Asked& asked, Peer& peer) {
    if (asked.target == "/robots.txt") return void(peer.answer("text/plain", "", "", "404 Not Found"));
    if (asked.target == "/bomb") return void(peer.answer("text/html", bomb, "Content-Encoding: gzip\r\n"));
    if (asked.target == "/endless") {
      peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n");
      while (peer.send(std::string(65536, 'x'))) {
      }
      return;
    }
    if (asked.target == "/slow") {
      peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n");
      while (!peer.is_gone() && peer.send("x")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    if (asked.target == "/video") return void(peer.answer("video/mp4", "x"));
    if (asked.target == "/none") return void(peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"));
    if (asked.target == "/pdf") return void(peer.answer("application/pdf", "%PDF-1.4"));
    if (asked.target == "/gone") return void(peer.answer("text/html", "<p>x", "", "410 Gone"));
    peer.answer("text/html", "<script>only</script>");  // /empty
  });
  PageFetcher::Options options = quick_options();
  options.page_time = std::chrono::milliseconds(1500);
  PageFetcher fetcher(options, allow_first(server));
  const std::pair<const char*, Code> expected[] = {
      {"/bomb", Code::exhausted},   {"/endless", Code::exhausted}, {"/video", Code::unsupported},
      {"/none", Code::unsupported}, {"/pdf", Code::unsupported},   {"/gone", Code::not_found},
      {"/empty", Code::not_found},
  };
  for (const auto& row : expected) {
    const auto page = fetcher.fetch(server.url(row.first), {});
    ASSERT_FALSE(page) << row.first;
    EXPECT_EQ(page.error().code, row.second) << row.first << ": " << page.error().message;
  }
  const auto slow = fetcher.fetch(server.url("/slow"), WebContext().within(std::chrono::milliseconds(200)));
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, Code::exhausted);
}

TEST(Url, PartsKeysAndReferences) {
  auto url = parse_url("HTTPS://Www.Example.COM:443/a%20b?x=1#part");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->text, "https://www.example.com/a%20b?x=1");
  EXPECT_EQ(url->origin(), "https://www.example.com:443");
  EXPECT_EQ(url->target, "/a%20b?x=1");
  EXPECT_EQ(parse_url("http://[2001:DB8::1]:81")->text, "http://[2001:db8::1]:81/");
  EXPECT_EQ(parse_url("http://b\u00FCcher.example/")->host, "xn--bcher-kva.example");
  EXPECT_EQ(resolve_url(*url, "../c?d#e")->text, "https://www.example.com/c?d");
  EXPECT_EQ(resolve_url(*url, "//other.example")->text, "https://other.example/");
  EXPECT_FALSE(resolve_url(*url, "javascript:x"));
  EXPECT_FALSE(parse_url("http://example.com/" + std::string(5000, 'x')));

  const std::string key = url_key(*parse_url("https://www.example.com/page/?id=7"));
  for (const char* same : {"http://example.com/page?id=7", "https://example.com./page?utm_source=a&id=7&utm_medium=b",
                           "https://EXAMPLE.com:443/page?id=7&fbclid=x#y"}) {
    EXPECT_EQ(url_key(*parse_url(same)), key) << same;
  }
  for (const char* other : {"http://example.com/page?id=8", "http://example.com/Page?id=7",
                            "http://example.com:8080/page?id=7", "http://example.com/page"}) {
    EXPECT_NE(url_key(*parse_url(other)), key) << other;
  }
  EXPECT_EQ(percent_encoded("a b&\u00E9"), "a%20b%26%C3%A9");
}

}  // namespace
}  // namespace chimere::web
