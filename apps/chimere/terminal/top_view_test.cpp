// top_view_test.cpp  A server's figures on screens of several sizes.
#include "terminal/top_view.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chimere::apps {
namespace top_view_test {

TopFacts busy_server() {
  TopFacts facts;
  facts.status = R"({"version":"1.2.3","uptime_seconds":7325,"is_sleeping":false,
    "model":{"name":"nano","backend":"cpu","context_length":4096},
    "load":{"running":2,"queued":1,"max_running":8,"max_queued":64},
    "tokens":{"prompt_total":1234567,"generated_total":89,"prompt_per_second":456.78,"generated_per_second":12.34},
    "speculation":{"draft_tokens":200,"accepted_tokens":150,"mean_accepted_length":2.5,"draft_time_share":0.051,
                   "draft_gain":1.234},
    "cache":{"lookups":40,"hits":30,"tokens_reused":300,"tokens_computed":100,"ram_bytes":1500000,"disk_bytes":0,
             "budget_bytes":2000000000},
    "experts_on_disk":{"bytes":4000000000,"ram_bytes":1000000000,"hits":9,"misses":1,"bytes_read":5000000},
    "memory":[{"purpose":"states","bytes":1000000},{"purpose":"weights","bytes":25000000},{"purpose":"none","bytes":0}]})";
  facts.requests = R"({"data":[
    {"id":"req-1","state":"decode","thinking":false,"prompt_tokens":120,"cached_tokens":64,"completion_tokens":300,
     "age_seconds":75.5,"user":"u","client":"ann"},
    {"id":"req-2","state":"decode","thinking":true,"prompt_tokens":9,"cached_tokens":0,"completion_tokens":1,
     "age_seconds":1.25,"user":null,"client":null},
    {"id":"req-3","state":"queued","age_seconds":0.5}]})";
  facts.metrics =
      "# HELP x y\n"
      "chimere_http_requests_total{route=\"/v1/chat/completions\",status=\"200\"} 10\n"
      "chimere_http_requests_total{route=\"/v1/embeddings\",status=\"200\"} 5\n"
      "chimere_http_requests_total{route=\"none\",status=\"404\"} 2\n"
      "chimere_http_requests_total{route=\"none\",status=\"503\"} 1\n"
      "chimere_http_requests_total{route=\"none\",status=\"client_left\"} 3\n"
      "chimere_time_to_first_token_seconds_bucket{le=\"0.05\"} 4\n"
      "chimere_time_to_first_token_seconds_bucket{le=\"0.1\"} 9\n"
      "chimere_time_to_first_token_seconds_bucket{le=\"2.5\"} 10\n"
      "chimere_time_to_first_token_seconds_bucket{le=\"+Inf\"} 10\n"
      "chimere_time_to_first_token_seconds_count 10\n"
      "process_resident_memory_bytes 123456789\n";
  return facts;
}

TEST(TopView, SaysWhatTheServerSays) {
  const auto lines = top_lines(busy_server(), 0, 0);
  ASSERT_TRUE(lines) << lines.error().message;
  const std::vector<std::string> expected = {
      "nano on cpu, context of 4,096 tokens; chimere 1.2.3, up 2 h 02 min",
      "Answers   2 of 8 running, 1 of 64 waiting",
      "Speed     12.3 tok/s generated, 456.8 tok/s of prompts",
      "Tokens    89 generated, 1,234,567 of prompts computed",
      "Requests  15 answered, 2 refused, 1 failed, 3 left",
      "First     token within 0.1 s for half of the requests, 2.5 s for 95 %",
      "Cache     75 % of prompt tokens, 30 of 40 prompts; 1.5 MB of 2.00 GB in RAM, 0 B on disk",
      "Guesses   75 % of 200 were right, 2.50 a draft; 5.1 % of the time, about 1.23 times as fast",
      "Experts   90 % found in RAM (1.00 GB of 4.00 GB), 5.0 MB read from disk",
      "Memory    123.5 MB of the process; weights 25.0 MB, states 1.0 MB",
      "",
      "STATE           AGE   PROMPT   CACHED   ANSWER  REQUEST, KEY, USER",
      "decode   1 min 15 s      120       64      300  req-1 ann u",
      "think         1.2 s        9        0        1  req-2",
      "queued        0.5 s        0        0        0  req-3",
  };
  EXPECT_EQ(*lines, expected);
}

TEST(TopView, KeepsToTheScreen) {
  for (const int columns : {1, 20, 79}) {
    for (const int rows : {5, 13, 14, 15}) {
      const auto lines = top_lines(busy_server(), columns, rows);
      ASSERT_TRUE(lines);
      // The head is told whatever the screen is like.
      EXPECT_LE(lines->size(), static_cast<size_t>(std::max(rows, 13)));
      for (const std::string& line : *lines) EXPECT_LE(line.size(), static_cast<size_t>(columns));
    }
  }
  EXPECT_EQ(top_lines(busy_server(), 0, 14)->back(), "and 2 more");
  EXPECT_EQ(top_lines(busy_server(), 0, 15)->back(), "queued        0.5 s        0        0        0  req-3");
}

TEST(TopView, NamesAreCutBetweenCharactersAndSteerNothing) {
  TopFacts facts;
  facts.status = R"({"model":{"name":"été\u001b[2Jé\nx","backend":"cpu"}})";
  facts.requests = R"({"data":[]})";
  EXPECT_EQ(top_lines(facts, 3, 0)->front(), "été");
  const auto lines = top_lines(facts, 0, 0);
  ASSERT_TRUE(lines);
  for (const std::string& line : *lines) {
    EXPECT_EQ(line.find('\033'), std::string::npos);
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

TEST(TopView, TakesAnAnswerThatSaysLittle) {
  const auto lines = top_lines({"{}", "{}", ""}, 0, 0);
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->back(), "No request is under way.");
  EXPECT_FALSE(top_lines({"<html>", "{}", ""}, 0, 0));
  EXPECT_TRUE(top_lines({"[1]", "[2]", "x\ny z"}, 0, 0));
}

}  // namespace top_view_test
}  // namespace chimere::apps
