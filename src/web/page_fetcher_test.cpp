// page_fetcher_test.cpp  robots.txt, caches, turns, and what pages become.
#include "web/page_fetcher.h"

#include <gtest/gtest.h>

#include "web/server_for_test.h"

namespace chimere::web {
namespace {

using fixture::Asked;
using fixture::Peer;
using fixture::TestServer;
using std::chrono::milliseconds;

TEST(Robots, RulesOfGroupsAndTheLongestOne) {
  const char* text =
      "# a comment\nUser-agent: other\nDisallow: /\n\nUSER-AGENT: nobody\nuser-agent: ChiMere/2.0\nDisallow: /private\n"
      "Allow: /private/open # yes\nDisallow: /*.pdf$\nDisallow: /a*b*c\nAllow: /same\nDisallow: /same\nSitemap: x\n"
      "Disallow:\nDisallow: /caf\xC3\xA9\nDisallow: /%7Euser\n\nUser-agent: *\nDisallow: /all\n";
  const Robots robots = Robots::parse(text, "chimere");
  for (const char* allowed :
       {"/", "/private/open/x", "/x.pdf?download", "/ab", "/same", "/all", "/robots.txt", "/privat"}) {
    EXPECT_TRUE(robots.allows(allowed)) << allowed;
  }
  for (const char* refused : {"/private", "/privateer", "/private/x", "/x.pdf", "/d/y.pdf", "/a1b2c3", "/abc",
                              "/caf%C3%A9", "/caf\xC3\xA9", "/caf%c3%a9/x", "/~user", "/%7euser"}) {
    EXPECT_FALSE(robots.allows(refused)) << refused;
  }
  const Robots everybody = Robots::parse(text, "somebody");
  EXPECT_FALSE(everybody.allows("/all/x"));
  EXPECT_TRUE(everybody.allows("/private"));
  EXPECT_FALSE(Robots::parse(text, "other").allows("/x"));
}

TEST(Robots, OddFilesAndLimits) {
  EXPECT_TRUE(Robots::parse("", "chimere").allows("/x"));
  EXPECT_TRUE(Robots::parse("<html>not found</html>", "chimere").allows("/x"));
  EXPECT_TRUE(Robots::parse("Disallow: /x\n", "chimere").allows("/x"));  // of no group
  EXPECT_FALSE(Robots::parse("\xEF\xBB\xBFUser-agent: *\rDisallow: /x\r", "chimere").allows("/x"));
  EXPECT_FALSE(Robots::parse("User-agent: *\nCrawl-delay: 5\nUser-agent: b\nDisallow: /x", "chimere").allows("/x"));
  EXPECT_TRUE(Robots::parse("User-agent: *\nDisallow: /x\nUser-agent: chimere\nAllow:", "chimere").allows("/x"));
  std::string many = "User-agent: *\n";
  while (many.size() < 100'000) many += "Disallow: /" + std::to_string(many.size()) + "\n";
  EXPECT_FALSE(Robots::parse(many, "chimere").allows("/other"));  // too many to keep
  // Rules for others cost nothing.
  many.replace(0, 13, "User-agent: b");
  EXPECT_TRUE(Robots::parse(many, "chimere").allows("/other"));
  EXPECT_TRUE(Robots::parse("User-agent: *\nDisallow: /" + std::string(50'000, '*') + "x", "chimere")
                  .allows("/" + std::string(4000, 'y')));
}

TEST(TimedCache, KeepsForATimeAndWithinItsBudget) {
  auto now = std::chrono::steady_clock::time_point();
  TimedCache<int> cache(3000, std::chrono::seconds(10), [&] { return now; });
  cache.put("a", 1, 700);
  cache.put("b", 2, 700);
  cache.put("c", 3, 700);
  EXPECT_EQ(cache.find("a"), 1);
  cache.put("d", 4, 700);  // b was used longest ago
  EXPECT_EQ(cache.find("b"), std::nullopt);
  EXPECT_EQ(cache.find("a"), 1);
  EXPECT_LE(cache.n_bytes(), 3000u);
  cache.put("huge", 5, 4000);
  EXPECT_EQ(cache.find("huge"), std::nullopt);
  EXPECT_EQ(cache.size(), 3u);
  now += std::chrono::seconds(9);
  cache.put("a", 6, 100);
  now += std::chrono::seconds(1);
  EXPECT_EQ(cache.find("c"), std::nullopt);
  EXPECT_EQ(cache.find("a"), 6);
  EXPECT_EQ(cache.size(), 2u);  // d is over, too, but nobody asked
}

class Fetching : public testing::Test {
 protected:
  Fetching()
      : server_([this](const Asked& asked, Peer& peer) {
          if (asked.target == "/robots.txt") return void(peer.answer("text/plain", robots_, "", robots_status_));
          if (asked.target == "/text") return void(peer.answer("text/plain; charset=iso-8859-1", "caf\xE9"));
          if (asked.target == "/json") return void(peer.answer("application/json", "{\"a\":1}"));
          if (asked.target == "/pdf") return void(peer.answer("application/pdf", "%PDF"));
          if (asked.target == "/broken") return void(peer.answer("text/html", "x", "", "500 Oh"));
          peer.answer("Text/HTML; charset=utf-8", "<html lang=fr><title>T</title><p>words of " + asked.target + "</p>");
        }) {
    options_.pause = milliseconds(0);
    options_.now = [this] { return now_; };
  }
  int times_asked(const std::string& target) const {
    const std::vector<std::string> targets = server_.targets();
    return static_cast<int>(std::count(targets.begin(), targets.end(), target));
  }

  std::string robots_, robots_status_ = "200 OK";
  std::chrono::steady_clock::time_point now_;
  PageFetcher::Options options_;
  TestServer server_;
};

TEST_F(Fetching, TypesBecomeText) {
  PageFetcher pages(options_, {{*parse_address("127.0.0.1")}, {server_.port()}});
  const auto html = pages.fetch(server_.url("/page#part"), {});
  ASSERT_TRUE(html) << html.error().message;
  EXPECT_EQ((*html)->title.as_data(), "T");
  EXPECT_EQ((*html)->text.as_data(), "words of /page");
  EXPECT_EQ((*html)->language, "fr");
  EXPECT_EQ((*html)->type, "text/html");
  EXPECT_EQ((*html)->url, server_.url("/page"));
  EXPECT_EQ((*pages.fetch(server_.url("/text"), {}))->text.as_data(), "caf\u00E9");
  EXPECT_EQ((*pages.fetch(server_.url("/json"), {}))->text.as_data(), "{\"a\":1}");
  EXPECT_FALSE(pages.fetch(server_.url("/pdf"), {}));

  options_.pdf_text = [](std::string_view bytes, const WebContext&) -> Result<std::string> {
    return "read from " + std::string(bytes);
  };
  PageFetcher with_pdf(options_, {{*parse_address("127.0.0.1")}, {server_.port()}});
  EXPECT_EQ((*with_pdf.fetch(server_.url("/pdf"), {}))->text.as_data(), "read from %PDF");
}

TEST_F(Fetching, PagesAndFailuresAreKeptApart) {
  PageFetcher pages(options_, {{*parse_address("127.0.0.1")}, {server_.port()}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(pages.fetch(server_.url("/a"), {}));
    EXPECT_FALSE(pages.fetch(server_.url("/broken"), {}));
  }
  EXPECT_EQ(times_asked("/a"), 1);
  EXPECT_EQ(times_asked("/broken"), 1);
  EXPECT_EQ(times_asked("/robots.txt"), 1);
  EXPECT_EQ(pages.counters().pages, 1u);
  EXPECT_EQ(pages.counters().pages_from_cache, 2u);
  EXPECT_EQ(pages.counters().pages_failed, 3u);
  now_ += options_.failure_ttl;
  EXPECT_FALSE(pages.fetch(server_.url("/broken"), {}));
  EXPECT_TRUE(pages.fetch(server_.url("/a"), {}));
  EXPECT_EQ(times_asked("/broken"), 2);
  EXPECT_EQ(times_asked("/a"), 1);
  now_ += options_.page_ttl;
  EXPECT_TRUE(pages.fetch(server_.url("/a"), {}));
  EXPECT_EQ(times_asked("/a"), 2);
  EXPECT_EQ(times_asked("/robots.txt"), 2);
}

TEST_F(Fetching, WhatTheCallerEndedIsNoFailureOfThePage) {
  PageFetcher pages(options_, {{*parse_address("127.0.0.1")}, {server_.port()}});
  WebContext cancelled;
  cancelled.is_cancelled = [] { return true; };
  auto page = pages.fetch(server_.url("/a"), cancelled);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, Code::cancelled);
  WebContext late;
  late.deadline = WebContext::Clock::now();
  page = pages.fetch(server_.url("/a"), late);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, Code::exhausted);
  EXPECT_TRUE(pages.fetch(server_.url("/a"), {}));
}

TEST_F(Fetching, RobotsAreRespected) {
  robots_ = "User-agent: *\nDisallow: /private\n";
  PageFetcher pages(options_, {{*parse_address("127.0.0.1")}, {server_.port()}});
  EXPECT_TRUE(pages.fetch(server_.url("/open"), {}));
  const auto refused = pages.fetch(server_.url("/private/x"), {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("robots.txt"), std::string::npos);
  EXPECT_EQ(times_asked("/private/x"), 0);
  EXPECT_EQ(pages.counters().refused, 1u);

  robots_status_ = "503 Later";
  PageFetcher unsure(options_, {{*parse_address("127.0.0.1")}, {server_.port()}});
  EXPECT_FALSE(unsure.fetch(server_.url("/open"), {}));
  robots_status_ = "200 OK";
  EXPECT_FALSE(unsure.fetch(server_.url("/open2"), {}));  // for a while
  now_ += options_.failure_ttl;
  EXPECT_TRUE(unsure.fetch(server_.url("/open"), {}));

  robots_status_ = "404 Not Found";
  PageFetcher none(options_, {{*parse_address("127.0.0.1")}, {server_.port()}});
  EXPECT_TRUE(none.fetch(server_.url("/private/x"), {}));
}

TEST_F(Fetching, RobotsAreAskedForOnceByAllAtTheSameTime) {
  PageFetcher pages(options_, {{*parse_address("127.0.0.1")}, {server_.port()}});
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] { EXPECT_TRUE(pages.fetch(server_.url("/" + std::to_string(i)), {})); });
    }
  }
  EXPECT_EQ(times_asked("/robots.txt"), 1);
  EXPECT_EQ(server_.n_asked(), 9);
}

TEST(Pacer, TurnsComeInOrderAndNotTooLate) {
  Pacer pacer(std::chrono::hours(1));
  EXPECT_TRUE(pacer.wait("a", {}));
  EXPECT_TRUE(pacer.wait("b", {}));
  const Status late = pacer.wait("a", WebContext().within(milliseconds(1000)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::exhausted);
  int n_asked = 0;
  WebContext cancelled;
  cancelled.is_cancelled = [&] { return ++n_asked > 1; };
  const Status gone = pacer.wait("a", cancelled);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::cancelled);

  Pacer brief(milliseconds(20));
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(brief.wait("a", {}));
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(60));
}

}  // namespace
}  // namespace chimere::web
