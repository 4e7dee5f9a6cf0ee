// web_for_test.h  A SearXNG and the pages it finds, on loopback, for tests of those who search.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "text/json.h"
#include "web/server_for_test.h"
#include "web/web_search.h"

namespace chimere::web::fixture {

struct WebForTest {
  struct Body {
    std::string type, text;
  };

  // Pages are found for every query, in the order of their names.
  explicit WebForTest(std::map<std::string, Body> found, PageFetcher::Options options = {}) : bodies(std::move(found)) {
    options.pause = std::chrono::milliseconds(0);
    pages = std::make_unique<PageFetcher>(options, TestAllowance{{*parse_address("127.0.0.1")}, {site.port()}});
    Searxng::Options at;
    at.endpoint = site.url();
    server = std::move(*Searxng::create(at));
    search = std::make_unique<WebSearch>(*server, *pages);
  }

  void answer(const Asked& asked, Peer& peer) {
    std::lock_guard lock(mutex);
    if (asked.target.rfind("/search?", 0) == 0) {
      Json results = Json::array();
      for (const auto& [name, body] : bodies) {
        results.push_back({{"url", site.url("/" + name)}, {"title", ""}, {"content", ""}, {"engines", {"local"}}});
      }
      return void(peer.answer("application/json", to_text(Json{{"results", results}})));
    }
    const auto body = bodies.find(asked.target.substr(1));
    if (body == bodies.end()) return void(peer.answer("text/plain", "", "", "404 Not Found"));
    peer.answer(body->second.type, body->second.text);
  }
  // What was looked for, as it stood in the address.
  std::vector<std::string> queries() const {
    std::vector<std::string> all;
    for (const std::string& target : site.targets()) {
      if (target.rfind("/search?", 0) == 0) all.push_back(target);
    }
    return all;
  }

  std::mutex mutex;  // guards bodies
  std::map<std::string, Body> bodies;
  TestServer site{[this](const Asked& asked, Peer& peer) { answer(asked, peer); }};
  std::unique_ptr<PageFetcher> pages;
  std::unique_ptr<Searxng> server;
  std::unique_ptr<WebSearch> search;
};

}  // namespace chimere::web::fixture
