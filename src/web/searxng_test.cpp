// searxng_test.cpp  Questions to a SearXNG server, its answers good and bad, and many answers as one list.
#include "web/searxng.h"

#include <gtest/gtest.h>

#include "web/fusion.h"
#include "web/server_for_test.h"

namespace chimere::web {
namespace {

using fixture::Asked;
using fixture::Peer;
using fixture::TestServer;

TEST(Searxng, TheQueryAsATarget) {
  EXPECT_EQ(*searxng_target({"  a\n b&c ", "", {}, "", 1}), "?q=a%20b%26c&format=json");
  EXPECT_EQ(*searxng_target({"x", "pt-BR", {"science", "social media"}, "week", 3}),
            "?q=x&format=json&language=pt-BR&categories=science,social%20media&time_range=week&pageno=3");
  const std::string cut = *searxng_target({std::string(300, 'a') + " " + std::string(300, 'b'), "", {}, "", 1});
  EXPECT_EQ(cut, "?q=" + std::string(300, 'a') + "&format=json");
  const SearchQuery bad[] = {{"", "", {}, "", 1},         {" \n", "", {}, "", 1},
                             {"x", "fr&x=1", {}, "", 1},  {"x", "", {"a,b"}, "", 1},
                             {"x", "", {}, "century", 1}, {"x", "", {}, "", 0},
                             {"x", "", {}, "", 11},       {"x", "", std::vector<std::string>(11, "a"), "", 1}};
  for (const SearchQuery& query : bad) EXPECT_FALSE(searxng_target(query));
}

TEST(Searxng, AnswersAndWhatIsWrongWithThem) {
  const auto hits = parse_searxng(
      R"({"results": [{"url": "https://a.example/x#f", "title": " A\n title ", "content": "text", "engines": ["e", "f"],
      "positions": [2, 5], "score": 1.5}, {"url": "file:///etc/passwd"}, 7, {"title": "no address"},
      {"url": "http://b.example", "title": null, "engine": "g", "positions": ["x"], "engines": "e", "score": "high"}],
      "unresponsive_engines": [["slow", "timeout"], "x", []]})",
      10);
  ASSERT_TRUE(hits) << hits.error().message;
  ASSERT_EQ(hits->hits.size(), 2u);
  EXPECT_EQ(hits->hits[0].url, "https://a.example/x");
  EXPECT_EQ(hits->hits[0].title.as_data(), "A title");
  EXPECT_EQ(hits->hits[0].ranks[1].engine, "f");
  EXPECT_EQ(hits->hits[0].ranks[1].position, 5);
  EXPECT_EQ(hits->hits[0].score, 1.5);
  EXPECT_EQ(hits->hits[1].ranks[0].engine, "g");
  EXPECT_EQ(hits->hits[1].ranks[0].position, 4);  // its place among objects
  EXPECT_EQ(hits->note, "no answer from slow (timeout)");
  for (const char* bad : {"", "<html>", "[]", "{}", "{\"results\": {}}", "{\"results\": [}", "null"}) {
    EXPECT_FALSE(parse_searxng(bad, 10)) << bad;
  }
  std::string deep(1000, '[');
  EXPECT_FALSE(parse_searxng("{\"results\": " + deep, 10));
}

TEST(Searxng, EndpointsAreChecked) {
  for (const char* bad : {"", "searx", "ftp://x.example", "http://u:p@x.example", "http://x.example/?q=1"}) {
    Searxng::Options options;
    options.endpoint = bad;
    EXPECT_FALSE(Searxng::create(options)) << bad;
  }
}

TEST(Searxng, ErrorsAreNamedAndTheCacheKnowsEveryParameter) {
  int status = 403;
  TestServer server([&](const Asked&, Peer& peer) {
    const std::string line = std::to_string(status) + " X";
    if (status == 302) return void(peer.redirect("http://127.0.0.1:1/"));
    peer.answer("application/json", status == 201 ? "" : R"({"results": [{"url": "http://a.example/", "title": "A"}]})",
                "", line);
  });
  Searxng::Options options;
  options.endpoint = server.url("/searx/");
  auto searxng = Searxng::create(options);
  ASSERT_TRUE(searxng) << searxng.error().message;
  const std::pair<int, const char*> problems[] = {
      {403, "search.formats"}, {429, "too many questions"}, {500, "500"}, {302, "302"}, {404, "404"}};
  for (const auto& row : problems) {
    status = row.first;
    const auto hits = (*searxng)->search({"x", "", {}, "", 1}, {});
    ASSERT_FALSE(hits) << row.first;
    EXPECT_NE(hits.error().message.find(row.second), std::string::npos) << hits.error().message;
  }
  status = 200;
  const int before = server.n_asked();
  const SearchQuery queries[] = {{"x", "", {}, "", 1},    {"x", "fr", {}, "", 1}, {"x", "", {"it"}, "", 1},
                                 {"x", "", {}, "day", 1}, {"x", "", {}, "", 2},   {"y", "", {}, "", 1}};
  for (int round = 0; round < 2; ++round) {
    for (const SearchQuery& query : queries) ASSERT_TRUE((*searxng)->search(query, {}));
  }
  EXPECT_EQ(server.n_asked() - before, 6);
  EXPECT_EQ(server.targets().back(), "/searx/search?q=y&format=json");
  EXPECT_EQ((*searxng)->counters().searches_from_cache, 6u);
  EXPECT_EQ((*searxng)->counters().searches_failed, 5u);
}

SearchHit hit(const std::string& url, std::vector<EngineRank> ranks, const std::string& snippet = "") {
  SearchHit out;
  out.url = url;
  out.title = UntrustedText("title of " + url);
  out.snippet = UntrustedText(snippet);
  out.ranks = std::move(ranks);
  return out;
}

TEST(Fusion, RanksOfEnginesAndQueriesAdd) {
  // b is second everywhere, which beats being first once.
  const std::vector<SearchHits> answers = {
      {{hit("http://a.example/", {{"e", 1}}), hit("http://b.example/?utm_source=x", {{"e", 2}, {"f", 2}}, "short")},
       ""},
      {{hit("https://www.b.example", {{"e", 2}}, "a longer snippet"), hit("http://c.example/", {{"e", 1}})}, ""}};
  const auto sources = fuse_hits(answers, 10);
  ASSERT_EQ(sources.size(), 3u);
  EXPECT_EQ(sources[0].url, "http://b.example/?utm_source=x");
  EXPECT_EQ(sources[0].snippet.as_data(), "a longer snippet");
  EXPECT_EQ(sources[0].score, 1);
  EXPECT_NEAR(sources[1].score, (1.0 / 61) / (3.0 / 62), 1e-12);
  EXPECT_EQ(sources[1].url, "http://a.example/");  // a tie with c: the first met
  EXPECT_EQ(fuse_hits(answers, 2).size(), 2u);
  // One list counts a page once, at its best place.
  const auto twice = fuse_hits({{{hit("http://a.example/", {{"e", 1}}), hit("http://a.example/#x", {{"e", 9}}),
                                  hit("http://b.example/", {{"e", 1}})},
                                 ""}},
                               10);
  ASSERT_EQ(twice.size(), 2u);
  EXPECT_EQ(twice[1].score, 1);
  EXPECT_TRUE(fuse_hits({}, 10).empty());
}

}  // namespace
}  // namespace chimere::web
