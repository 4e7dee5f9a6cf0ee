// openai_completion_test.cpp  Text completions: what their bodies become, and what their answers look like.
#include <gtest/gtest.h>

#include "server/protocols/openai_completion_request.h"
#include "server/protocols/openai_completion_response.h"
#include "server/protocols/protocols_for_test.h"

namespace chimere::server {
namespace {

using orchestrator::ChatChunk;

CompletionCall completion(const std::string& body) { return accepted(parse_completion_call(body, {})); }

TEST(CompletionRequest, ReadsPromptsOfEveryKind) {
  EXPECT_EQ(completion(R"({"prompt":"a"})").prompts[0].prompt, "a");
  EXPECT_EQ(completion(R"({"prompt":["a","b"]})").prompts[1].prompt, "b");
  EXPECT_EQ(completion(R"({"prompt":[1,2]})").prompts[0].prompt_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(completion(R"({"prompt":[[1],[2,3]]})").prompts[1].prompt_ids, (std::vector<int32_t>{2, 3}));
  const CompletionCall call =
      completion(R"({"prompt":"a","max_tokens":5,"logprobs":3,"n":2,"best_of":2,"stop":"x","mood":1})");
  EXPECT_EQ(call.prompts[0].max_tokens, 5);
  EXPECT_TRUE(call.prompts[0].logprobs);
  EXPECT_EQ(call.prompts[0].sampling.top_logprobs, 3);
  EXPECT_EQ(call.n, 2);
  EXPECT_EQ(call.ignored, std::vector<std::string>{"mood"});
}

TEST(CompletionRequest, RefusesWhatItCanNotDo) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "prompt"},
      {R"({"prompt":3})", "prompt"},
      {R"({"prompt":[]})", "prompt"},
      {R"({"prompt":["a",1]})", "prompt"},
      {R"({"prompt":[-1]})", "prompt"},
      {R"({"prompt":"a","best_of":3})", "best_of"},
      {R"({"prompt":"a","echo":true,"logprobs":1})", "logprobs"},
      {R"({"prompt":"a","logprobs":21})", "logprobs"},
  };
  for (const auto& [body, param] : cases) EXPECT_EQ(refused_param(parse_completion_call(body, {})), param) << body;
}

TEST(CompletionResponse, EchoesAndListsLogprobs) {
  ResponseHead head{"cmpl-1", "m", 1, true, false};
  ChatChunk sum;
  sum.content = "ab";
  sum.tokens.resize(2);
  sum.tokens[0].token = {"a", -1};
  sum.tokens[0].top.push_back({"a", -1});
  sum.tokens[1].token = {"b", -2};
  sum.tokens[1].top.push_back({"c", -0.5f});
  const auto json = parse_json(completion_writer(head, {"> "})->body({sum}, {}));
  ASSERT_TRUE(json);
  const Json& choice = (*json)["choices"][0];
  EXPECT_EQ(choice["text"], "> ab");
  EXPECT_EQ(choice["logprobs"]["tokens"], Json::array({"a", "b"}));
  EXPECT_EQ(choice["logprobs"]["text_offset"], Json::array({0, 1}));
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][1]["c"], -0.5);
}

}  // namespace
}  // namespace chimere::server
