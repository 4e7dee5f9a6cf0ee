// llama.cpp's own endpoints: prompts in all their shapes, answers in its shape, its paths.
#include <sstream>

#include "server/protocols/llama_request.h"
#include "server/protocols/llama_response.h"
#include "server/protocols/protocols_for_test.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

class LlamaServer : public testing::Test {
 protected:
  void SetUp() override { server_.start(); }
  Json ask(const std::string& path, const std::string& body, int status = 200) {
    const ClientResponse response = server_.post(path, body);
    EXPECT_EQ(response.status, status) << response.body;
    auto json = parse_json(response.body);
    return json ? *json : Json();
  }
  std::variant<LlamaCall, ApiError> parse(const std::string& body) {
    return parse_llama_completion(body, {}, server_.service->tokenizer());
  }

  ServerForTest server_;
};

TEST(LlamaWriter, AnEventHasTheProbabilitiesOfOneToken) {
  const auto contents = [](std::vector<std::string> tokens, const std::string& content, bool with_probabilities) {
    LlamaHead head;
    head.probabilities = with_probabilities;
    orchestrator::ChatChunk chunk;
    chunk.content = content;
    for (std::string& bytes : tokens) chunk.tokens.push_back({{std::move(bytes), -1.0f, 7}});
    std::vector<std::string> found;
    std::istringstream events(llama_writer(head)->events(0, chunk));
    for (std::string line; std::getline(events, line);) {
      if (!line.starts_with("data: ")) continue;
      const Json json = *parse_json(line.substr(6));
      const auto chances = json.find("completion_probabilities");
      EXPECT_EQ(chances == json.end() ? 0u : chances->size(), with_probabilities ? 1u : 0u);
      EXPECT_EQ(json["tokens_predicted"], with_probabilities ? found.size() + 1 : tokens.size());
      found.push_back(json["content"]);
    }
    return found;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(contents({"Once", " upon", " a"}, "Once upon a", true), (Texts{"Once", " upon", " a"}));
  EXPECT_EQ(contents({"Once", " upon", " a"}, "Once upon a", false), Texts{"Once upon a"});
  EXPECT_EQ(contents({"\xc3", "\xa9"}, "\xc3\xa9", true), (Texts{"", "\xc3\xa9"})) << "half a letter is no text";
  EXPECT_EQ(contents({"a", " st"}, "a", true), (Texts{"", "a"})) << "the rest may become a stop text";
}

TEST_F(LlamaServer, ReadsPromptsInAllTheirShapes) {
  const LlamaCall text = accepted(parse(R"({"prompt":"a b","n_predict":5,"seed":-1,"repeat_penalty":1.5})"));
  ASSERT_EQ(text.prompts.size(), 1u);
  EXPECT_FALSE(text.is_list);
  EXPECT_EQ(text.prompts[0].prompt, "a b");
  EXPECT_EQ(text.prompts[0].max_tokens, 5);
  EXPECT_FALSE(text.prompts[0].seed);
  EXPECT_FLOAT_EQ(text.prompts[0].sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(accepted(parse(R"({"prompt":[3,4]})")).prompts[0].prompt_ids, (std::vector<int32_t>{3, 4}));
  const LlamaCall mixed = accepted(parse(R"({"prompt":[3,"a b",4]})"));
  ASSERT_EQ(mixed.prompts.size(), 1u);
  EXPECT_GT(mixed.prompts[0].prompt_ids.size(), 2u);
  EXPECT_EQ(mixed.prompts[0].prompt_ids.back(), 4);
  const LlamaCall list = accepted(parse(R"({"prompt":["a",[3,4],{"prompt_string":"b"}]})"));
  ASSERT_EQ(list.prompts.size(), 3u);
  EXPECT_TRUE(list.is_list);
  EXPECT_EQ(list.prompts[2].prompt, "b");
  EXPECT_EQ(accepted(parse(R"({"prompt":"a","ignore_eos":true})")).prompts[0].sampling.logit_bias.size(),
            server_.service->tokenizer().eog_ids().size());
}

TEST_F(LlamaServer, RefusesWhatIsNoPrompt) {
  for (const char* prompt :
       {"7", "[]", "{}", "[[]]", R"([{"a":1}])", R"({"prompt_string":"a","multimodal_data":["x"]})"}) {
    EXPECT_EQ(refused_param(parse("{\"prompt\":" + std::string(prompt) + "}")), "prompt") << prompt;
  }
  EXPECT_EQ(refused_param(parse("{}")), "prompt");
  EXPECT_EQ(refused_param(parse(R"({"prompt":"a","n_predict":0})")), "n_predict");
  EXPECT_EQ(refused_param(parse(R"({"prompt":"a","logit_bias":[["",1]]})")), "logit_bias");
}

TEST_F(LlamaServer, CompletesInItsShape) {
  const std::string asked = R"({"prompt":"Hello","n_predict":6,"temperature":0,"ignore_eos":true,)";
  const Json whole = ask("/completion", asked + R"("n_probs":3,"return_tokens":true})");
  EXPECT_TRUE(whole["content"].is_string());
  EXPECT_EQ(whole["tokens"].size(), 6u);
  EXPECT_EQ(whole["stop"], true);
  EXPECT_EQ(whole["stop_type"], "limit");
  EXPECT_EQ(whole["tokens_predicted"], 6);
  EXPECT_EQ(whole["generation_settings"]["n_predict"], 6);
  EXPECT_EQ(whole["timings"]["predicted_n"], 6);
  ASSERT_EQ(whole["completion_probabilities"].size(), 6u);
  EXPECT_EQ(whole["completion_probabilities"][0]["id"], whole["tokens"][0]);
  EXPECT_EQ(whole["completion_probabilities"][0]["top_logprobs"].size(), 3u);
  EXPECT_EQ(ask("/completion", asked + R"("x":1})")["tokens"].size(), 0u);
  const Json some = ask("/completions", asked + R"("response_fields":["content","timings/predicted_n","none"]})");
  EXPECT_EQ(some, (Json{{"content", whole["content"]}, {"timings/predicted_n", 6}}));
  const Json list = ask("/completion", R"({"prompt":["a","b"],"n_predict":2})");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1]["index"], 1);
}

TEST_F(LlamaServer, TellsThePromptAndWhetherTheContextWasFull) {
  const Json whole = ask("/completion", R"({"prompt":"Hello","n_predict":2,"temperature":0})");
  EXPECT_NE(whole["prompt"].get<std::string>().find("Hello"), std::string::npos);
  EXPECT_EQ(whole["truncated"], false);
  const Json full = ask("/completion", R"({"prompt":"Hello","temperature":0,"ignore_eos":true})");
  EXPECT_EQ(full["tokens_evaluated"].get<int>() + full["tokens_predicted"].get<int>(), 1000);
  EXPECT_EQ(full["truncated"], true);
}

TEST_F(LlamaServer, TextsCanBeBiased) {
  const std::string asked = R"({"prompt":"Hello","n_predict":4,"temperature":0,"logit_bias":)";
  EXPECT_EQ(ask("/completion", asked + R"({"z":100}})")["content"], "zzzz");
  EXPECT_EQ(ask("/completion", asked + R"([["z",100]]})")["content"], "zzzz");
  const Json without = ask("/completion", asked + R"([["z",100],["z",false],["y",50]]})");
  EXPECT_EQ(without["content"], "yyyy");
}

TEST_F(LlamaServer, AModelThatFillsNoGapsSaysSo) {
  const Json refused = ask("/infill", R"({"input_prefix":"a","input_suffix":"b"})", 400);
  EXPECT_NE(refused["error"]["message"].get<std::string>().find("fill in gaps"), std::string::npos);
  for (const char* extra : {"{}", R"({"filename":"a"})", R"({"filename":1,"text":"a"})", R"({"text":1})", "1"}) {
    const Json wrong = ask("/infill", R"({"input_prefix":"a","input_extra":[)" + std::string(extra) + "]}", 400);
    EXPECT_EQ(wrong["error"]["param"], "input_extra") << extra;
  }
}

TEST_F(LlamaServer, CountsAndShowsWhatTheModelIsGiven) {
  const std::string hello = R"({"messages":[{"role":"user","content":"Hello"}],"max_tokens":2)";
  const Json answer = ask("/v1/chat/completions", hello + R"(,"verbose":true})");
  EXPECT_NE(answer["__verbose"]["prompt"].get<std::string>().find("Hello"), std::string::npos);
  EXPECT_FALSE(ask("/v1/chat/completions", hello + "}").contains("__verbose"));
  const Json counted = ask("/chat/completions/input_tokens", hello + "}");
  EXPECT_EQ(counted["input_tokens"], answer["usage"]["prompt_tokens"]);
  EXPECT_EQ(ask("/v1/responses/input_tokens", R"({"input":"Hello"})")["input_tokens"], counted["input_tokens"]);
}

TEST_F(LlamaServer, APromptThatDoesNotFitHasItsOwnTypeThere) {
  const std::string text(20'000, 'x');
  const std::string hello = R"({"messages":[{"role":"user","content":")" + text + R"("}]})";
  EXPECT_EQ(ask("/chat/completions", hello, 400)["error"]["type"], "exceed_context_size_error");
  EXPECT_EQ(ask("/v1/chat/completions", hello, 400)["error"]["type"], "invalid_request_error");
  EXPECT_EQ(ask("/completion", R"({"prompt":")" + text + "\"}", 400)["error"]["type"], "exceed_context_size_error");
}

TEST_F(LlamaServer, TellsHowFarAPromptIsRead) {
  const std::string prompt(300, 'x');
  const auto progress = [&](const std::string& path, const std::string& body) {
    std::vector<Json> seen;
    const std::string text = server_.post(path, body).body;
    for (size_t at = text.find("data: {"); at != std::string::npos; at = text.find("data: {", at + 1)) {
      const auto json = parse_json(text.substr(at + 6, text.find('\n', at) - at - 6));
      if (json && json->contains("prompt_progress")) seen.push_back((*json)["prompt_progress"]);
    }
    return seen;
  };
  const std::string fields = R"(,"stream":true,"return_progress":true,"max_tokens":2})";
  const std::vector<Json> first = progress("/completion", R"({"prompt":")" + prompt + '"' + fields);
  ASSERT_GE(first.size(), 2u);
  for (size_t i = 1; i < first.size(); ++i) {
    EXPECT_EQ(first[i]["total"], first[0]["total"]);
    EXPECT_GT(first[i]["processed"], first[i - 1]["processed"]);
  }
  EXPECT_EQ(first.back()["processed"], first.back()["total"]);
  const std::vector<Json> again = progress("/completion", R"({"prompt":")" + prompt + '"' + fields);
  ASSERT_FALSE(again.empty());
  EXPECT_GT(again[0]["cache"], 0);
  const std::string message = R"({"messages":[{"role":"user","content":")" + prompt + R"("}])";
  EXPECT_GE(progress("/v1/chat/completions", message + fields).size(), 2u);
  EXPECT_TRUE(progress("/v1/chat/completions", message + R"(,"stream":true,"max_tokens":2})").empty());
}

TEST_F(LlamaServer, StreamsTheSame) {
  const std::string asked = R"({"prompt":"Hello","n_predict":6,"temperature":0,"ignore_eos":true)";
  const Json whole = ask("/completion", asked + "}");
  const std::string text = server_.post("/completion", asked + R"(,"stream":true})").body;
  std::string content;
  size_t n_tokens = 0, n_ends = 0;
  for (size_t at = text.find("data: "); at != std::string::npos; at = text.find("data: ", at + 1)) {
    const auto json = parse_json(text.substr(at + 6, text.find('\n', at) - at - 6));
    ASSERT_TRUE(json) << text;
    content += (*json)["content"].get<std::string>();
    n_tokens += (*json)["tokens"].size();
    n_ends += (*json)["stop"] == true;
  }
  EXPECT_EQ(content, whole["content"]);
  EXPECT_EQ(n_tokens, 6u);
  EXPECT_EQ(n_ends, 1u);
}

TEST_F(LlamaServer, HasItsPathsAndFacts) {
  const std::string hello = R"({"messages":[{"role":"user","content":"Hello"}],"max_tokens":2})";
  EXPECT_EQ(ask("/chat/completions", hello)["object"], "chat.completion");
  EXPECT_NE(ask("/apply-template", hello)["prompt"].get<std::string>().find("Hello"), std::string::npos);
  EXPECT_EQ(server_.get_json("/models")["data"].size(), 1u);
  EXPECT_EQ(server_.get("/v1/health").status, 200);
  EXPECT_EQ(ask("/embeddings", R"({"input":"a"})")["data"].size(), 1u);
  const Json props = server_.get_json("/props");
  EXPECT_EQ(props["total_slots"], 4);
  EXPECT_EQ(props["default_generation_settings"]["n_ctx"], 1000);
  const Json slots = server_.get_json("/slots");
  ASSERT_EQ(slots.size(), 4u);
  EXPECT_EQ(slots[0]["is_processing"], false);
  EXPECT_EQ(slots[0]["speculative"], false) << "this server drafts for those who ask for it";
}

TEST_F(LlamaServer, RanksAsTextEmbeddingsInference) {
  const Json ranks = ask("/rerank", R"({"query":"a","texts":["a","b"],"return_text":true})");
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_TRUE(ranks[0]["score"].is_number());
  EXPECT_TRUE(ranks[0]["text"].is_string());
  EXPECT_EQ(ask("/rerank", R"({"query":"a","documents":["a"]})")["results"].size(), 1u);
  ask("/rerank", R"({"query":"a","texts":[]})", 400);
}

}  // namespace
}  // namespace chimere::server
