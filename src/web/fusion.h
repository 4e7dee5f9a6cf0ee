// fusion.h  Many lists of results as one: a page that several engines or queries found stands higher.
#pragma once

#include <vector>

#include "web/searxng.h"

namespace chimere::web {

struct Source {
  UntrustedText title;
  std::string url;
  UntrustedText snippet;
  double score = 0;  // of the best source 1, of all others less
};

// Reciprocal rank fusion: each list (one engine's answer to one query) gives a page 1 / (60 + position). `answers` are
// the queries' in their order; the order in which engines answered changes nothing. Addresses of one page (url_key) are
// one source, with the title of the first and the longest snippet. Ties keep the order in which the pages were first
// met.
std::vector<Source> fuse_hits(const std::vector<SearchHits>& answers, size_t max_sources);

}  // namespace chimere::web
