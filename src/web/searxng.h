// searxng.h  Asks a SearXNG (or searx) server for results: GET {endpoint}/search?format=json.
//
// The endpoint is the one that the owner of the machine configured, so it may be on this machine or its network; what
// it answers is a stranger's all the same.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "web/context.h"
#include "web/counters.h"
#include "web/http_client.h"
#include "web/timed_cache.h"
#include "web/untrusted.h"

namespace chimere::web {

inline constexpr size_t kMaxQueryBytes = 500;

struct SearchQuery {
  std::string text;                     // what is longer than kMaxQueryBytes is cut between words
  std::string language;                 // "fr", "pt-BR"; empty: as the server is set
  std::vector<std::string> categories;  // "general", "science", "it"; empty: as the server is set
  std::string time_range;               // "day", "week", "month", "year"; empty: any
  int page = 1;                         // 1 to 10
};

struct EngineRank {
  std::string engine;
  int position = 0;  // from 1
};

struct SearchHit {
  std::string url;
  UntrustedText title, snippet;
  std::vector<EngineRank> ranks;  // at least one
  double score = 0;               // the server's own
};

struct SearchHits {
  std::vector<SearchHit> hits;
  std::string note;  // engines that did not answer, and why; empty when all did
};

class Searxng {
 public:
  struct Options {
    std::string endpoint;             // "http://127.0.0.1:8888"; a path before "/search" is kept
    std::vector<HttpHeader> headers;  // a key of a proxy before it, for example
    std::chrono::milliseconds time{10'000};
    size_t answer_bytes = 4 * 1024 * 1024;
    size_t max_hits = 100;
    size_t cache_bytes = 8 * 1024 * 1024;
    std::chrono::seconds ttl{3600};
    TimedCache<SearchHits>::Now now = [] { return std::chrono::steady_clock::now(); };
  };
  // An error where the endpoint is no address of http or https.
  static Result<std::unique_ptr<Searxng>> create(Options options);

  // Any thread; blocks. Errors name what is wrong with the server (no JSON configured, too many questions, not there).
  // Only answers with results are remembered, under every parameter of the query.
  Result<SearchHits> search(const SearchQuery& query, const WebContext& context);

  WebCounters& counters() { return counters_; }

 private:
  Searxng(Options options, Url endpoint);
  Result<SearchHits> search_now(const std::string& target, const WebContext& context) const;

  const Options options_;
  const Url endpoint_;
  const HttpClient client_;
  WebCounters counters_;
  TimedCache<SearchHits> cache_;
};

// The parameters of a query as they stand behind "/search". An error for values that are none.
Result<std::string> searxng_target(const SearchQuery& query);
// An answer's JSON. Results without a usable address are left out.
Result<SearchHits> parse_searxng(std::string_view json, size_t max_hits);

}  // namespace chimere::web
