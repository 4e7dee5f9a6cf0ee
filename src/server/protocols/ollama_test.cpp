// Ollama's API: bodies, lines of a stream, errors as strings.
#include "server/protocols/ollama_request.h"

#include <sstream>

#include "server/protocols/ollama_response.h"
#include "server/protocols/protocols_for_test.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

using orchestrator::ChatRequest;
using orchestrator::CompletionRequest;

ChatRequest ollama_chat(const std::string& body) {
  return std::get<ChatRequest>(accepted(parse_ollama_chat(body, {})).request);
}

TEST(OllamaRequest, ReadsAConversation) {
  const OllamaCall call = accepted(parse_ollama_chat(
      R"({"model":"x:latest","messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},
          {"role":"assistant","content":"","thinking":"t","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},
          {"role":"tool","tool_name":"f","content":"r"}],
          "tools":[{"type":"function","function":{"name":"f"}}],"keep_alive":"5m"})",
      {}));
  EXPECT_EQ(call.model, "x");
  EXPECT_EQ(call.named, "x:latest");
  EXPECT_TRUE(call.stream);
  EXPECT_FALSE(call.only_loads);
  EXPECT_EQ(call.ignored, std::vector<std::string>{"keep_alive"});
  const ChatRequest& request = std::get<ChatRequest>(call.request);
  ASSERT_EQ(request.messages.size(), 4u);
  EXPECT_EQ(request.messages[2].reasoning_content, "t");
  ASSERT_EQ(request.messages[2].tool_calls.size(), 1u);
  EXPECT_EQ(request.messages[2].tool_calls[0].arguments_json, R"({"a":1})");
  EXPECT_EQ(request.messages[3].name, "f");
  EXPECT_EQ(request.tools.size(), 1u);
  EXPECT_FALSE(request.enable_thinking.has_value());
}

TEST(OllamaRequest, ReadsOptionsFormsAndThoughts) {
  const std::string hello = R"({"messages":[{"role":"user","content":"u"}],)";
  const ChatRequest asked = ollama_chat(hello + R"("think":"low","format":{"type":"object"},"options":{
      "num_predict":7,"temperature":0.5,"top_k":3,"top_p":0.5,"min_p":0.1,"repeat_penalty":1.5,"repeat_last_n":9,
      "seed":4,"stop":["a","b"],"num_ctx":99}})");
  EXPECT_EQ(asked.max_tokens, 7);
  EXPECT_EQ(asked.sampling.top_k, 3);
  EXPECT_FLOAT_EQ(asked.sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(asked.sampling.penalty_last_n, 9);
  EXPECT_EQ(asked.seed, 4u);
  EXPECT_EQ(asked.stop.size(), 2u);
  EXPECT_EQ(asked.enable_thinking, true);
  EXPECT_EQ(asked.form.json_schema, R"({"type":"object"})");
  EXPECT_TRUE(ollama_chat(hello + R"("format":"json"})").form.json_object);
  EXPECT_TRUE(ollama_chat(hello + R"("format":""})").form.is_free());
  EXPECT_EQ(ollama_chat(hello + R"("options":{"num_predict":-1,"seed":-1}})").max_tokens, -1);
  EXPECT_EQ(ollama_chat(hello + R"("think":false})").enable_thinking, false);
}

TEST(OllamaRequest, ReadsPrompts) {
  const auto generate = [](const std::string& body) { return accepted(parse_ollama_generate(body, {})); };
  const ChatRequest chat = std::get<ChatRequest>(generate(R"({"prompt":"p","system":"s"})").request);
  ASSERT_EQ(chat.messages.size(), 2u);
  EXPECT_EQ(chat.messages[0].role, "system");
  const OllamaCall raw = generate(R"({"prompt":"p","raw":true,"options":{"num_predict":3}})");
  EXPECT_EQ(std::get<CompletionRequest>(raw.request).prompt, "p");
  EXPECT_EQ(std::get<CompletionRequest>(raw.request).max_tokens, 3);
  EXPECT_TRUE(generate(R"({"model":"m"})").only_loads);
  const EmbeddingShapeOf shape_of = [](const std::string&) { return EmbeddingShape{.dimensions = 8}; };
  EXPECT_EQ(accepted(parse_ollama_embed(R"({"prompt":"p"})", shape_of, true)).inputs.front().text, "p");
}

TEST(OllamaRequest, RefusesWhatItCanNotDo) {
  const std::string hello = R"({"messages":[{"role":"user","content":"u"}],)";
  const std::pair<std::string, std::string> cases[] = {
      {hello + R"("think":"much"})", "think"},
      {hello + R"("format":7})", "format"},
      {hello + R"("options":{"top_p":2}})", "options.top_p"},
      {hello + R"("options":[]})", "options"},
      {R"({"messages":[{"role":"user","content":"u","images":["x"]}]})", "messages[0].images"},
      {R"({"messages":[{"role":"me","content":"u"}]})", "messages[0].role"},
      {R"({"messages":[7]})", "messages[0]"},
  };
  for (const auto& [body, param] : cases) EXPECT_EQ(refused_param(parse_ollama_chat(body, {})), param) << body;
  EXPECT_EQ(refused_param(parse_ollama_show("{}")), "model");
}

TEST(OllamaResponse, IsLinesOfAStream) {
  const auto writer = ollama_writer({"m", true, false, {}});
  std::vector<Json> lines;
  for (const orchestrator::ChatChunk& chunk : chunks()) {
    std::istringstream text(writer->events(0, chunk));
    for (std::string line; std::getline(text, line);) lines.push_back(*parse_json(line));
  }
  ASSERT_GE(lines.size(), 4u);
  EXPECT_EQ(lines.front()["message"]["thinking"], "hm");
  std::string content;
  Json calls = Json::array();
  for (const Json& line : lines) {
    content += line["message"]["content"].get<std::string>();
    for (const Json& call : line["message"].value("tool_calls", Json::array())) calls.push_back(call);
    EXPECT_EQ(line["done"], &line == &lines.back());
  }
  EXPECT_TRUE(content.starts_with("Let me"));
  ASSERT_EQ(calls.size(), 2u);
  for (const Json& call : calls) EXPECT_TRUE(call["function"]["arguments"].is_object()) << call;
  EXPECT_EQ(lines.back()["done_reason"], "stop");
}

TEST(OllamaResponse, TimesAreInUtc) {
  EXPECT_EQ(ollama_time(std::chrono::system_clock::from_time_t(0)), "1970-01-01T00:00:00.000000000Z");
}

TEST(OllamaServer, AnswersAndRefusesInItsOwnWords) {
  ServerForTest server;
  server.start();
  const ClientResponse answer = server.post(
      "/api/chat",
      R"({"messages":[{"role":"user","content":"Hello"}],"think":false,"options":{"num_predict":4,"seed":1}})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("Content-Type"), "application/x-ndjson");
  for (const auto& [path, status] : {std::pair{"/api/chat", 400}, {"/api/none", 404}}) {
    const ClientResponse refused = server.post(path, "{\"messages\":1}");
    EXPECT_EQ(refused.status, status);
    EXPECT_TRUE((*parse_json(refused.body))["error"].is_string()) << refused.body;
  }
  EXPECT_EQ(server.get("/api/chat").status, 405);
  EXPECT_EQ(server.get_json("/api/tags")["models"].size(), 1u);
  EXPECT_EQ(server.post("/api/show", R"({"model":"any"})").status, 200);
}

// Programs that split documents by letters do not know how many tokens a part has.
TEST(OllamaEmbed, CutsATextThatIsTooLongUnlessToldNotTo) {
  ServerForTest server;
  server.engine.context_length = 50;
  server.start();
  const std::string text = R"("input":[")" + std::string(400, 'x') + R"(","a cat"])";
  const ClientResponse cut = server.post("/api/embed", "{" + text + "}");
  ASSERT_EQ(cut.status, 200) << cut.body;
  const auto json = parse_json(cut.body);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["embeddings"].size(), 2u);
  EXPECT_LT((*json)["prompt_eval_count"].get<int>(), 60) << "fifty of one, and those of the other";
  EXPECT_EQ(server.post("/api/embed", R"({"truncate":true,)" + text + "}").header("X-Chimere-Ignored"), "");
  EXPECT_EQ(server.post("/api/embed", R"({"truncate":false,)" + text + "}").status, 400);
  EXPECT_EQ(server.post("/api/embed", R"({"truncate":3,)" + text + "}").status, 400);
}

}  // namespace
}  // namespace chimere::server
