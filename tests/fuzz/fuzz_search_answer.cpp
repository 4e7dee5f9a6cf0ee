// fuzz_search_answer.cpp  libFuzzer target: bytes as a search server's answer, and as the address of a page.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/utf8.h"
#include "web/chunks.h"
#include "web/fusion.h"
#include "web/guard.h"
#include "web/searxng.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace chimere::web;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  if (auto hits = parse_searxng(all, 20)) {
    CHECK(hits->hits.size() <= 20);
    for (const SearchHit& hit : hits->hits) {
      CHECK(parse_url(hit.url) && !hit.ranks.empty());
      CHECK(chimere::is_valid_utf8(hit.title.as_data()) && chimere::is_valid_utf8(hit.snippet.as_data()));
    }
    for (const Source& source : fuse_hits({*hits, *hits}, 10)) CHECK(source.score > 0 && source.score <= 1);
  }
  if (const auto url = parse_url(all)) {
    // What is read once more is the same, and the guard has a word about it.
    const auto again = parse_url(url->text);
    CHECK(again && again->text == url->text && again->host == url->host && again->port == url->port);
    (void)Guard().check_url(*url);
    (void)url_key(*url);
  }
  if (chimere::is_valid_utf8(all)) {
    ChunkSizes sizes;
    sizes.bytes = 60;
    sizes.overlap = 20;
    for (const std::string& chunk : chunk_text(all, sizes)) {
      CHECK(!chunk.empty() && chunk.size() <= 4 * sizes.bytes && chimere::is_valid_utf8(chunk));
    }
  }
  return 0;
}
