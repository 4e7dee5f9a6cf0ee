// web_search.h  A question, asked to the web: passages of pages that may answer it, and where they stand.
//
//   expand    the question and further queries           a given function (a model); else the question alone
//   search    all queries, at the same time              SearXNG
//   fuse      one list of sources                        reciprocal ranks
//   fetch     the best pages                             through the guard
//   chunk     their text in pieces
//   rerank    pieces by the question                     BM25, then a given function
//   grade     without those that do not help             a given function
//
// The eighth stage, an answer with citations, is the caller's. A stage that fails or runs out of time is left out, and
// its step says so; the whole is an error only where no query was answered, or when it was cancelled. Nothing is sent
// to anybody but the configured server and the pages it names.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "web/chunks.h"
#include "web/context.h"
#include "web/fusion.h"
#include "web/page_fetcher.h"
#include "web/searxng.h"

namespace chimere::web {

struct SearchDepth {
  size_t n_queries = 3;   // the question is the first
  size_t n_pages = 3;     // fetched
  size_t n_passages = 8;  // handed back
  size_t n_sources = 12;  // handed back
};
inline constexpr SearchDepth kQuickSearch{2, 2, 5, 8}, kStandardSearch{3, 3, 8, 12}, kDeepSearch{5, 5, 12, 20};
// "quick", "standard", "deep".
std::optional<SearchDepth> search_depth(std::string_view name);

struct SearchOptions {
  SearchDepth depth = kStandardSearch;
  std::string language;  // these three as in SearchQuery
  std::vector<std::string> categories;
  std::string time_range;
  ChunkSizes chunks;
};

struct Passage {
  UntrustedText text;
  std::string url;
  UntrustedText title;
  double score = 0;  // of the last stage that gave one: larger is better, comparable inside one search alone
};

struct SearchStep {
  std::string stage;
  double ms = 0;
  size_t n = 0;      // queries, hits, sources, pages, chunks, passages
  std::string note;  // what failed or was left out, and why; empty when all went well
};

// Given functions run on the caller's thread, must end by the deadline of the context they get, and may fail.
struct SearchHooks {
  // At most `n` further queries.
  std::function<Result<std::vector<std::string>>(const std::string& question, size_t n, const WebContext&)> expand;
  // One score a passage.
  std::function<Result<std::vector<double>>(const std::string& question, const std::vector<Passage>&,
                                            const WebContext&)>
      score;
  // For each passage whether it helps.
  std::function<Result<std::vector<bool>>(const std::string& question, const std::vector<Passage>&, const WebContext&)>
      grade;
  std::function<void(const SearchStep&)> on_step;  // as each ends
};

struct SearchOutcome {
  std::vector<Source> sources;    // the best first
  std::vector<Passage> passages;  // the best first; from snippets where no page could be read
  std::vector<SearchStep> steps;
};

class WebSearch {
 public:
  // Both must outlive it.
  WebSearch(Searxng& server, PageFetcher& pages) : server_(server), pages_(pages) {}

  // Any thread; blocks.
  Result<SearchOutcome> run(const std::string& question, const SearchOptions& options, const SearchHooks& hooks,
                            const WebContext& context) const;

 private:
  Searxng& server_;
  PageFetcher& pages_;
};

// The question first, then those of `more` that are no repetition, at most `n` together.
std::vector<std::string> queries_of(const std::string& question, const std::vector<std::string>& more, size_t n);

// The best `n` in their order; no page gives more than half of them while another has some left.
std::vector<Passage> diverse_passages(std::vector<Passage> passages, size_t n);

// The body of /v1/search: {"sources": [{"title", "url", "snippet", "score"}], "n_sources", "search_ms", "synthesis"},
// and beside them "passages": [{"n", "title", "url", "text", "score"}], whose numbers [n] the synthesis cites, and "steps".
std::string search_answer(const SearchOutcome& outcome, const std::string& synthesis);

}  // namespace chimere::web
