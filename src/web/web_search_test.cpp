// web_search_test.cpp  The stages of a search, against a server that is SearXNG and the web at once.
#include "web/web_search.h"

#include <gtest/gtest.h>

#include <set>

#include "text/json.h"
#include "web/server_for_test.h"

namespace chimere::web {
namespace {

using fixture::Asked;
using fixture::Peer;
using fixture::TestServer;
using std::chrono::milliseconds;

TEST(WebSearchParts, QueriesDepthsAndDiversity) {
  EXPECT_EQ(queries_of("What is X?", {"what  is x?", " ", "X history", "x HISTORY", "X uses", "more"}, 3),
            (std::vector<std::string>{"What is X?", "X history", "X uses"}));
  EXPECT_EQ(search_depth("quick")->n_queries, 2u);
  EXPECT_EQ(search_depth("standard")->n_sources, 12u);
  EXPECT_EQ(search_depth("deep")->n_passages, 12u);
  EXPECT_FALSE(search_depth("bottomless"));
  std::vector<Passage> passages;
  for (int i = 0; i < 6; ++i) passages.push_back({UntrustedText("a"), "a", UntrustedText(), 10.0 - i});
  passages.push_back({UntrustedText("b"), "b", UntrustedText(), 1});
  const auto chosen = diverse_passages(passages, 4);
  ASSERT_EQ(chosen.size(), 4u);
  EXPECT_EQ(chosen[3].url, "b");
  EXPECT_EQ(chosen[2].score, 8);  // nobody else had one for the last place
}

// A SearXNG and the web in one: /search answers with pages of this server that have a word of the query.
class Searching : public testing::Test {
 protected:
  Searching() {
    TestAllowance allowance{{*parse_address("127.0.0.1")}, {web_.port()}};
    PageFetcher::Options options;
    options.pause = milliseconds(0);
    pages_ = std::make_unique<PageFetcher>(options, allowance);
    Searxng::Options searxng;
    searxng.endpoint = web_.url();
    server_ = std::move(*Searxng::create(searxng));
    search_ = std::make_unique<WebSearch>(*server_, *pages_);
  }

  void answer(const Asked& asked, Peer& peer) {
    if (asked.target == "/robots.txt") return void(peer.answer("text/plain", "User-agent: *\nDisallow: /closed\n"));
    if (asked.target.rfind("/search?", 0) == 0) {
      if (asked.target.find("q=broken") != std::string::npos) return void(peer.answer("text/html", "no", "", "500 X"));
      if (asked.target.find("q=nothing") != std::string::npos)
        return void(peer.answer("application/json", R"({"results": []})"));
      Json results = Json::array();
      int position = 0;
      for (const std::string& name : listed_) {
        results.push_back({{"url", web_.url("/" + name)},
                           {"title", name},
                           {"content", "snippet of " + name},
                           {"engines", {"local"}},
                           {"positions", {++position}}});
      }
      return void(peer.answer("application/json", to_text(Json{{"results", results}})));
    }
    if (asked.target == "/slow") {
      while (!peer.is_gone() && !web_.is_stopping()) std::this_thread::sleep_for(milliseconds(5));
      return;
    }
    if (asked.target.rfind("/missing", 0) == 0) return void(peer.answer("text/html", "", "", "404 Not Found"));
    std::string body = "<title>" + asked.target + "</title><h1>About</h1>";
    for (int i = 0; i < 30; ++i) {
      body += "<p>Paragraph " + std::to_string(i) + " of " + asked.target + " has words that fill the room. </p>";
    }
    body += "<p>The otter of " + asked.target + " sleeps holding hands.</p>";
    peer.answer("text/html", body);
  }

  SearchOptions small(const SearchDepth& depth = kQuickSearch) {
    SearchOptions options;
    options.depth = depth;
    options.chunks.bytes = 300;
    options.chunks.overlap = 50;
    return options;
  }
  static std::string note_of(const SearchOutcome& outcome, const std::string& stage) {
    for (const SearchStep& step : outcome.steps) {
      if (step.stage == stage) return step.note;
    }
    return "no such stage";
  }

  std::vector<std::string> listed_ = {"one", "two", "three", "four"};
  TestServer web_{[this](const Asked& asked, Peer& peer) { answer(asked, peer); }};
  std::unique_ptr<PageFetcher> pages_;
  std::unique_ptr<Searxng> server_;
  std::unique_ptr<WebSearch> search_;
};

TEST_F(Searching, AllStages) {
  SearchHooks hooks;
  std::vector<std::string> asked, stages;
  hooks.expand = [&](const std::string& question, size_t n, const WebContext&) -> Result<std::vector<std::string>> {
    EXPECT_EQ(n, 1u);
    return std::vector<std::string>{question, "otters asleep", "too many"};
  };
  hooks.score = [&](const std::string&, const std::vector<Passage>& passages,
                    const WebContext&) -> Result<std::vector<double>> {
    EXPECT_LE(passages.size(), 20u);
    EXPECT_NE(passages[0].text.as_data().find("otter"), std::string::npos);  // words came first
    std::vector<double> scores;
    for (const Passage& passage : passages)
      scores.push_back(passage.text.as_data().find("/two sleeps") != std::string::npos);
    return scores;
  };
  hooks.grade = [&](const std::string&, const std::vector<Passage>& passages,
                    const WebContext&) -> Result<std::vector<bool>> {
    std::vector<bool> helps;
    for (const Passage& passage : passages) helps.push_back(passage.text.as_data().find("otter") != std::string::npos);
    return helps;
  };
  hooks.on_step = [&](const SearchStep& step) { stages.push_back(step.stage); };
  const auto outcome = search_->run("How does an otter sleep?", small(), hooks, {});
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(stages, (std::vector<std::string>{"expand", "search", "fuse", "fetch", "chunk", "rerank", "grade"}));
  const size_t expected[] = {2, 8, 4, 2};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(outcome->steps[i].n, expected[i]) << stages[i];
    EXPECT_EQ(outcome->steps[i].note, "");
  }
  ASSERT_EQ(outcome->sources.size(), 4u);
  EXPECT_EQ(outcome->sources[0].url, web_.url("/one"));
  EXPECT_EQ(outcome->sources[0].snippet.as_data(), "snippet of one");
  ASSERT_EQ(outcome->passages.size(), 2u);
  EXPECT_EQ(outcome->passages[0].url, web_.url("/two"));
  EXPECT_EQ(outcome->passages[0].title.as_data(), "two");
  EXPECT_NE(note_of(*outcome, "grade"), "");

  const Json json = *parse_json(search_answer(*outcome, "They hold hands [1]."));
  EXPECT_EQ(json["n_sources"], 4);
  EXPECT_EQ(json["sources"][0]["url"], web_.url("/one"));
  EXPECT_EQ(json["sources"][0]["score"], 1);
  EXPECT_EQ(json["synthesis"], "They hold hands [1].");
  EXPECT_GT(json["search_ms"].get<double>(), 0);
  EXPECT_EQ(json["steps"].size(), 7u);
}

TEST_F(Searching, StagesThatFailAreLeftOutAndNamed) {
  SearchHooks hooks;
  hooks.expand = [](const std::string&, size_t, const WebContext&) -> Result<std::vector<std::string>> {
    return Error{Code::exhausted, "no time for the model"};
  };
  hooks.score = [](const std::string&, const std::vector<Passage>&, const WebContext&) -> Result<std::vector<double>> {
    return std::vector<double>{1};
  };
  hooks.grade = [](const std::string&, const std::vector<Passage>&, const WebContext&) -> Result<std::vector<bool>> {
    return Error{Code::internal, "the grader is ill"};
  };
  listed_ = {"missing1", "closed/a", "one", "missing2", "two"};
  const auto outcome = search_->run("otter", small(), hooks, {});
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(note_of(*outcome, "expand"), "left out: no time for the model");
  EXPECT_NE(note_of(*outcome, "fetch").find("404"), std::string::npos);
  EXPECT_NE(note_of(*outcome, "fetch").find("robots.txt"), std::string::npos);
  EXPECT_NE(note_of(*outcome, "rerank").find("no score for each"), std::string::npos);
  EXPECT_EQ(note_of(*outcome, "grade"), "left out: the grader is ill");
  std::set<std::string> urls;
  for (const Passage& passage : outcome->passages) urls.insert(passage.url);
  EXPECT_EQ(urls, (std::set<std::string>{web_.url("/one"), web_.url("/two")}));  // in the place of those that failed
  EXPECT_NE(outcome->passages[0].text.as_data().find("otter"), std::string::npos);
}

TEST_F(Searching, SnippetsStandForPagesThatCannotBeRead) {
  listed_ = {"missing1", "missing2"};
  const auto outcome = search_->run("snippet", small(), {}, {});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->passages.size(), 2u);
  EXPECT_NE(note_of(*outcome, "chunk"), "");
}

TEST_F(Searching, OneQueryOfTwoIsEnoughAndNoneIsAnError) {
  SearchHooks hooks;
  hooks.expand = [](const std::string&, size_t, const WebContext&) -> Result<std::vector<std::string>> {
    return std::vector<std::string>{"broken"};
  };
  auto outcome = search_->run("otter", small(), hooks, {});
  ASSERT_TRUE(outcome);
  EXPECT_NE(note_of(*outcome, "search").find("500"), std::string::npos);
  EXPECT_FALSE(outcome->passages.empty());
  outcome = search_->run("broken", small(), {}, {});
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("no query was answered"), std::string::npos);
  outcome = search_->run("nothing", small(), {}, {});
  ASSERT_TRUE(outcome);  // an answer: there is nothing
  EXPECT_TRUE(outcome->sources.empty() && outcome->passages.empty());
  EXPECT_EQ(outcome->steps.size(), 7u);
}

TEST_F(Searching, TheDeadlineReachesEveryStage) {
  listed_ = {"slow", "one"};
  const auto outcome = search_->run("otter", small(), {}, WebContext().within(milliseconds(1500)));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_NE(note_of(*outcome, "fetch").find("/slow"), std::string::npos);
  EXPECT_FALSE(outcome->passages.empty());

  SearchHooks hooks;
  std::vector<milliseconds> left;
  hooks.expand = [&](const std::string&, size_t, const WebContext& context) -> Result<std::vector<std::string>> {
    left.push_back(context.left());
    return std::vector<std::string>{};
  };
  const WebContext context = WebContext().within(milliseconds(10'000));
  listed_ = {"one"};
  ASSERT_TRUE(search_->run("otters", small(), hooks, context));
  ASSERT_EQ(left.size(), 1u);
  EXPECT_LE(left[0], milliseconds(2500));
}

TEST_F(Searching, CancellationEndsAnyStage) {
  listed_ = {"slow"};
  std::atomic<bool> is_cancelled{false};
  WebContext context;
  context.is_cancelled = [&] { return is_cancelled.load(); };
  SearchHooks hooks;
  hooks.on_step = [&](const SearchStep& step) { is_cancelled = is_cancelled || step.stage == "fuse"; };
  auto outcome = search_->run("otter", small(), hooks, context);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::cancelled);
  outcome = search_->run("otter", small(), hooks, context);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::cancelled);
}

}  // namespace
}  // namespace chimere::web
