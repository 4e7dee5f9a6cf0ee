// web_bench.cpp  The time of each stage of a web search on loopback: 20 pages, no model, no network.
//
//   web_bench [RUNS]     medians of RUNS searches (21), each with empty caches; then one with full ones
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>

#include "text/json.h"
#include "web/html_text.h"
#include "web/server_for_test.h"
#include "web/web_search.h"

namespace {

using namespace chimere;
using namespace chimere::web;

constexpr size_t kPages = 20;

std::string page_html(size_t number) {
  std::string body =
      "<html lang=en><head><title>Page " + std::to_string(number) +
      "</title><script>var x = 1;</script></head><body><nav><a href=/>Home</a></nav><main><h1>Rivers</h1>";
  for (size_t i = 0; i < 400; ++i) {
    body += "<p>Paragraph <b>" + std::to_string(i) + "</b> of page " + std::to_string(number) +
            " tells of <a href=\"/x\">rivers</a>, their otters, their fish and the floods of the year " +
            std::to_string(1600 + (i * 7 + number) % 400) +
            ", at some length and with few surprises.</p><ul><li>an item</li></ul>";
  }
  return body + "</main></body></html>";
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const size_t n_runs = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 21;
  std::vector<std::string> bodies;
  for (size_t i = 0; i < kPages; ++i) bodies.push_back(page_html(i));
  web::fixture::TestServer server([&](const web::fixture::Asked& asked, web::fixture::Peer& peer) {
    const std::string host = asked.head.substr(asked.head.find("Host: ") + 6);
    if (asked.target.rfind("/search", 0) == 0) {
      Json results = Json::array();
      for (size_t i = 0; i < kPages; ++i) {
        results.push_back({{"url", "http://" + host.substr(0, host.find("\r\n")) + "/" + std::to_string(i)},
                           {"title", "Page"},
                           {"content", "snippet"},
                           {"engines", {"a", "b"}},
                           {"positions", {i + 1, kPages - i}}});
      }
      peer.answer("application/json", to_text(Json{{"results", results}}));
    } else if (asked.target == "/robots.txt") {
      peer.answer("text/plain", "User-agent: *\nDisallow: /private\n");
    } else {
      peer.answer("text/html", bodies[std::strtoul(asked.target.c_str() + 1, nullptr, 10) % kPages]);
    }
  });

  SearchOptions options;
  options.depth = {5, kPages, 12, kPages};
  SearchHooks hooks;
  hooks.expand = [](const std::string&, size_t, const WebContext&) -> Result<std::vector<std::string>> {
    return std::vector<std::string>{"otters", "floods", "fish of rivers", "years of floods"};
  };
  std::map<std::string, std::vector<double>> times;
  std::vector<SearchStep> cached;
  for (size_t run = 0; run < n_runs; ++run) {
    Searxng::Options searxng;
    searxng.endpoint = server.url("");
    auto search_server = Searxng::create(searxng);
    PageFetcher::Options fetching;
    fetching.pause = std::chrono::milliseconds(0);
    PageFetcher fetcher(fetching, {{*parse_address("127.0.0.1")}, {server.port()}});
    const WebSearch search(**search_server, fetcher);
    for (const bool is_first : {true, false}) {
      const auto outcome = search.run("Which floods did the otters of the river see in 1700?", options, hooks, {});
      if (!outcome || outcome->steps[3].n != kPages) {
        std::fprintf(stderr, "web_bench: %s\n",
                     outcome ? outcome->steps[3].note.c_str() : outcome.error().message.c_str());
        return 1;
      }
      for (const SearchStep& step : outcome->steps)
        times[step.stage + (is_first ? "" : " (cached)")].push_back(step.ms);
      cached = outcome->steps;
    }
  }
  std::printf("%zu pages of %zu bytes, 5 queries, %zu runs: median and minimum in ms, empty caches and full ones\n",
              kPages, bodies[0].size(), n_runs);
  for (const SearchStep& step : cached) {
    const std::vector<double>&empty = times[step.stage], &full = times[step.stage + " (cached)"];
    std::printf("  %-8s n %4zu  %8.2f %8.2f   %8.2f %8.2f\n", step.stage.c_str(), step.n, median(empty),
                *std::min_element(empty.begin(), empty.end()), median(full),
                *std::min_element(full.begin(), full.end()));
  }
  const std::clock_t began = std::clock();
  for (const std::string& body : bodies) {
    if (!html_text(body)) return 1;
  }
  const double s = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  std::printf("  html_text alone: %.0f MB a second of processor time\n",
              static_cast<double>(kPages * bodies[0].size()) / s / 1e6);
  return 0;
}
