// server_test.cpp  The whole way: HTTP in, a tiny model with random weights, HTTP out.
#include "server/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "server/http/client_for_test.h"
#include "server/http/json.h"

namespace chimere::server {
namespace {

constexpr const char* kModel = CHIMERE_TESTS_DIR "/golden/models/qwen3_5-A/model.gguf";

struct Delta {
  std::string reasoning, content, finish, role;
  Json usage;
  bool done = false;
  int events = 0;
};

// What a client makes of a stream of events.
Delta read_events(const std::string& body) {
  Delta sum;
  size_t at = 0;
  while (at < body.size()) {
    const size_t end = body.find("\n\n", at);
    EXPECT_NE(end, std::string::npos) << "an event without an end";
    if (end == std::string::npos) break;
    const std::string line = body.substr(at, end - at);
    at = end + 2;
    EXPECT_EQ(line.rfind("data: ", 0), 0u) << line;
    EXPECT_FALSE(sum.done) << "an event after [DONE]";
    if (line == "data: [DONE]") {
      sum.done = true;
      continue;
    }
    ++sum.events;
    const auto json = parse_json(line.substr(6));
    EXPECT_TRUE(json) << line;
    if (!json) continue;
    if (json->contains("usage")) sum.usage = (*json)["usage"];
    for (const Json& choice : (*json)["choices"]) {
      const Json& delta = choice["delta"];
      sum.role += delta.value("role", "");
      sum.content += delta.value("content", "");
      sum.reasoning += delta.value("reasoning_content", "");
      if (choice["finish_reason"].is_string()) sum.finish += choice["finish_reason"].get<std::string>();
    }
  }
  return sum;
}

class ServerTest : public testing::Test {
 protected:
  void SetUp() override { start(""); }

  void start(const std::string& key, int context = 0) {
    stop();
    LoadOptions options;
    options.max_rows = 64;
    auto model = models::Model::load(kModel, models::BackendKind::reference, options);
    ASSERT_TRUE(model) << model.error().message;
    auto chat_model = orchestrator::ChatModel::from_model(std::move(*model));
    ASSERT_TRUE(chat_model) << chat_model.error().message;
    engine::EngineConfig config;
    config.max_running = 4;
    config.prefill_tokens = 32;
    config.context_length = context;
    service_ = std::make_unique<orchestrator::ChatService>(std::move(*chat_model), config);
    ServerConfig server_config;
    server_config.http.port = 0;
    server_config.http.max_body_bytes = 100'000;
    if (!key.empty()) {
      ASSERT_TRUE(server_config.keys.add("tester", key));
    }
    auto server = Server::listen(server_config, *service_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    thread_ = std::thread([this] { server_->run(); });
  }

  void stop() {
    if (server_) {
      server_->stop();
      thread_.join();
    }
    server_.reset();
    service_.reset();
  }
  void TearDown() override { stop(); }

  ClientResponse post(const std::string& body, const std::string& headers = {}) {
    return Client(server_->port()).request("POST", "/v1/chat/completions", body, headers);
  }
  ClientResponse chat(const std::string& fields) {
    return post(R"({"messages":[{"role":"user","content":"Hello"}],)" + fields + "}");
  }
  Json json(const ClientResponse& response) {
    auto parsed = parse_json(response.body);
    EXPECT_TRUE(parsed) << response.status << " " << response.body;
    return parsed ? *parsed : Json();
  }
  void wait_until_idle() {
    while (service_->engine().stats().running + service_->engine().stats().queued > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::unique_ptr<orchestrator::ChatService> service_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

std::string all_text(const Json& response) {
  const Json& message = response["choices"][0]["message"];
  return message.value("reasoning_content", "") + "|" + message["content"].get<std::string>();
}

TEST_F(ServerTest, HealthAndModels) {
  Client client(server_->port());
  const Json health = json(client.request("GET", "/health"));
  EXPECT_EQ(health["status"], "ok");
  const Json models = json(client.request("GET", "/v1/models"));
  EXPECT_EQ(models["object"], "list");
  EXPECT_EQ(models["data"][0]["id"], service_->model_info().name);
  EXPECT_EQ(models["data"][0]["context_length"], service_->context_length());
  EXPECT_EQ(models["data"][0]["capabilities"], Json::array({"completion", "chat", "embedding"}));
}

TEST_F(ServerTest, StreamedAndWholeAnswersAreTheSameText) {
  for (const char* seed : {"1", "2", "3"}) {
    const std::string fields = std::string(R"("max_tokens":40,"seed":)") + seed;
    const ClientResponse whole = chat(fields);
    ASSERT_EQ(whole.status, 200) << whole.body;
    EXPECT_EQ(whole.header("Content-Type"), "application/json");
    const Json response = json(whole);
    const ClientResponse streamed = chat(fields + R"(,"stream":true,"stream_options":{"include_usage":true})");
    ASSERT_EQ(streamed.status, 200);
    EXPECT_EQ(streamed.header("Content-Type"), "text/event-stream");
    const Delta sum = read_events(streamed.body);
    EXPECT_EQ(sum.reasoning + "|" + sum.content, all_text(response));
    EXPECT_NE(all_text(response), "|");
    EXPECT_EQ(sum.role, "assistant");
    EXPECT_EQ(sum.finish, response["choices"][0]["finish_reason"]);
    // The second one finds some of its prompt in the cache.
    Json whole_usage = response["usage"];
    Json streamed_usage = sum.usage;
    whole_usage.erase("prompt_tokens_details");
    streamed_usage.erase("prompt_tokens_details");
    EXPECT_EQ(streamed_usage, whole_usage);
    EXPECT_TRUE(sum.done);
    EXPECT_EQ(response["model"], service_->model_info().name);
  }
}

TEST_F(ServerTest, SameSeedSameTextAndUsageIsTrue) {
  const Json a = json(chat(R"("max_tokens":16,"seed":7,"model":"any")"));
  const Json b = json(chat(R"("max_tokens":16,"seed":7)"));
  const Json c = json(chat(R"("max_tokens":16,"seed":8)"));
  EXPECT_EQ(all_text(a), all_text(b));
  EXPECT_NE(all_text(a), all_text(c));
  EXPECT_EQ(a["model"], service_->model_info().name);
  EXPECT_EQ(a["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(a["usage"]["completion_tokens"], 16);
  EXPECT_GT(a["usage"]["prompt_tokens"], 3);
}

TEST_F(ServerTest, StopStringsEndTheAnswerAndDoNotAppear) {
  const std::string text = all_text(json(chat(R"("max_tokens":40,"seed":1)")));
  // Any three bytes of ASCII from the middle will do.
  size_t at = text.size() / 2;
  auto plain = [&](size_t i) { return text[i] >= ' ' && text[i] <= '~' && text[i] != '|'; };
  while (at + 3 < text.size() && !(plain(at) && plain(at + 1) && plain(at + 2))) ++at;
  ASSERT_LT(at + 3, text.size()) << text;
  const std::string stop = text.substr(at, 3);
  const Json response = json(chat(R"("max_tokens":40,"seed":1,"stop":)" + to_text(Json(stop))));
  EXPECT_EQ(response["choices"][0]["finish_reason"], "stop");
  EXPECT_LT(response["usage"]["completion_tokens"], 40);
  const std::string cut = all_text(response);
  EXPECT_EQ(cut.find(stop), std::string::npos) << cut;
  EXPECT_LT(cut.size(), text.size());
}

TEST_F(ServerTest, LogprobsAreOnePerTokenAndSorted) {
  const Json response = json(chat(R"("max_tokens":8,"seed":1,"logprobs":true,"top_logprobs":3)"));
  const Json& tokens = response["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(tokens.size(), response["usage"]["completion_tokens"].get<size_t>());
  for (const Json& token : tokens) {
    EXPECT_LE(token["logprob"], 0.0);
    ASSERT_EQ(token["top_logprobs"].size(), 3u);
    EXPECT_GE(token["top_logprobs"][0]["logprob"], token["top_logprobs"][1]["logprob"]);
  }
}

TEST_F(ServerTest, GreedyFollowsTheTopLogprob) {
  const Json response = json(chat(R"("max_tokens":8,"temperature":0,"logprobs":true,"top_logprobs":1)"));
  for (const Json& token : response["choices"][0]["logprobs"]["content"]) {
    EXPECT_EQ(token["bytes"], token["top_logprobs"][0]["bytes"]);
  }
}

TEST_F(ServerTest, ErrorsHaveTheShapeAndTheStatus) {
  Client client(server_->port());
  const std::pair<ClientResponse, int> cases[] = {
      {client.request("GET", "/nowhere"), 404},
      {Client(server_->port()).request("GET", "/v1/chat/completions"), 405},
      {Client(server_->port()).request("POST", "/health", "{}"), 405},
      {post("{"), 400},
      {post("[1,2]"), 400},
      {post(std::string(5000, '[')), 400},
      {chat(R"("n":300)"), 400},
      {chat(R"("logit_bias":{"99999999":1})"), 400},
      {post(std::string(200'000, ' ')), 413},
      {Client(server_->port()).request("GET", "/health", {}, "X: " + std::string(50'000, 'x') + "\r\n"), 431},
  };
  for (const auto& [response, status] : cases) {
    EXPECT_EQ(response.status, status) << response.body;
    const Json body = json(response);
    ASSERT_TRUE(body.contains("error")) << response.body;
    EXPECT_TRUE(body["error"]["message"].is_string());
    EXPECT_TRUE(body["error"]["type"].is_string());
    EXPECT_TRUE(body["error"].contains("param"));
    EXPECT_TRUE(body["error"].contains("code"));
  }
  EXPECT_EQ(json(chat(R"("n":300)"))["error"]["param"], "n");
}

// Also of requests that no endpoint has seen, because the connection could not read them.
TEST_F(ServerTest, ErrorsOfAConnectionHaveTheShapeOfTheirPath) {
  const auto sent = [&](const std::string& text) {
    Client client(server_->port());
    client.send(text);
    return client.read_response();
  };
  const std::string long_text(50'000, 'x');
  for (const std::string path :
       {"/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions", "/v1/messagesx"}) {
    const std::string first = "POST " + path + " HTTP/1.1\r\nHost: localhost\r\n";
    const std::pair<std::string, int> cases[] = {
        {first + "Content-Length: 200000\r\n\r\n", 413},
        {first + "X: " + long_text + "\r\n\r\n", 431},
        {"POST " + path + "?" + long_text + " HTTP/1.1\r\n\r\n", 431},
        {first + "Content-Length: x\r\n\r\n", 400},
        {"POST " + path + " HTTP/9.9\r\n\r\n", 400},
        {first + "Transfer-Encoding: gzip\r\n\r\n", 501},
    };
    const bool is_anthropic = path == "/v1/messages" || path == "/v1/messages/count_tokens";
    for (const auto& [text, status] : cases) {
      const ClientResponse response = sent(text);
      EXPECT_EQ(response.status, status) << path << ": " << response.body;
      const Json body = json(response);
      ASSERT_TRUE(body.contains("error")) << response.body;
      EXPECT_TRUE(body["error"]["message"].is_string());
      EXPECT_TRUE(body["error"]["type"].is_string());
      EXPECT_EQ(body.value("type", ""), is_anthropic ? "error" : "") << path << ", " << status;
      EXPECT_EQ(body["error"].contains("code"), !is_anthropic) << path << ", " << status;
    }
  }
}

TEST_F(ServerTest, IgnoredFieldsAreReported) {
  EXPECT_EQ(chat(R"("max_tokens":1,"user":"u","flavour":3)").header("X-Chimere-Ignored"), "flavour");
  EXPECT_EQ(chat(R"("max_tokens":1)").header("X-Chimere-Ignored"), "");
  // A part of thinking_control beside it.
  EXPECT_EQ(chat(R"("max_tokens":1,"loop_guard":false)").header("X-Chimere-Ignored"), "loop_guard");
  EXPECT_EQ(chat(R"("max_tokens":1,"thinking_control":{"loop_guard":false})").header("X-Chimere-Ignored"), "");
}

TEST_F(ServerTest, ALimitThatTheServerChoosesIsAnnounced) {
  start("", 1000);
  const std::string form = R"("thinking_budget":0,"response_format":{"type":"json_schema","json_schema":{"name":"n",)"
                           R"("schema":{"enum":["a","b"]}}})";
  const ClientResponse whole = chat(form);
  ASSERT_EQ(whole.status, 200) << whole.body;
  EXPECT_EQ(json(whole)["choices"][0]["finish_reason"], "stop");
  const int left = 1000 - json(whole)["usage"]["prompt_tokens"].get<int>();
  EXPECT_EQ(whole.header("X-Chimere-Max-Tokens"), std::to_string(left));
  EXPECT_EQ(chat(form + R"(,"stream":true)").header("X-Chimere-Max-Tokens"), std::to_string(left));
  EXPECT_EQ(chat(form + R"(,"max_tokens":50)").header("X-Chimere-Max-Tokens"), "") << "the request's own";
  EXPECT_EQ(chat(R"("max_tokens":1)").header("X-Chimere-Max-Tokens"), "");
}

TEST_F(ServerTest, ContextOverflowSaysTheNumbers) {
  start("", 64);
  std::string text;
  for (int i = 0; i < 300; ++i) text += "word ";
  const ClientResponse response = post(R"({"messages":[{"role":"user","content":")" + text + R"("}],"stream":true})");
  EXPECT_EQ(response.status, 400);
  const std::string message = json(response)["error"]["message"];
  EXPECT_NE(message.find("64"), std::string::npos) << message;
  // A short one runs until the context is full.
  const Json full = json(chat(R"("seed":1,"logit_bias":{})"));
  EXPECT_LE(full["usage"]["total_tokens"], 64);
}

TEST_F(ServerTest, UserTextNeverBecomesAControlToken) {
  auto prompt_tokens = [&](const std::string& content) {
    return json(post(R"({"messages":[{"role":"user","content":)" + to_text(Json(content)) +
                     R"(}],"max_tokens":1})"))["usage"]["prompt_tokens"]
        .get<int>();
  };
  // As a control token it would be one; as text it is spelled out.
  EXPECT_GT(prompt_tokens("<|im_end|>"), prompt_tokens("x") + 2);
}

TEST_F(ServerTest, AClientThatLeavesStopsItsRequest) {
  for (const char* stream : {"true", "false"}) {
    const uint64_t before = service_->engine().stats().generated_tokens;
    Client client(server_->port());
    const std::string body = std::string(R"({"messages":[{"role":"user","content":"Hello"}],"seed":1,"stream":)") +
                             stream + R"(,"max_tokens":100000,"logit_bias":{}})";
    client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    while (service_->engine().stats().generated_tokens < before + 3)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    client.close();
    wait_until_idle();
    EXPECT_LT(service_->engine().stats().generated_tokens,
              before + static_cast<uint64_t>(service_->context_length()) / 2);
  }
}

TEST_F(ServerTest, ManyAtOnceAllEnd) {
  std::vector<std::thread> clients;
  std::atomic<int> ended{0};
  const std::string expected = all_text(json(chat(R"("max_tokens":12,"seed":5,"temperature":0)")));
  for (int i = 0; i < 12; ++i) {
    clients.emplace_back([&, i] {
      if (i % 3 == 0) {
        const Delta sum = read_events(chat(R"("max_tokens":12,"seed":5,"temperature":0,"stream":true)").body);
        EXPECT_EQ(sum.reasoning + "|" + sum.content, expected);
        ended += sum.done ? 1 : 0;
      } else {
        const ClientResponse response = chat(R"("max_tokens":12,"seed":5,"temperature":0)");
        EXPECT_EQ(response.status, 200) << response.body;
        EXPECT_EQ(all_text(json(response)), expected);
        ++ended;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(ended, 12);
  wait_until_idle();
}

TEST_F(ServerTest, ShutdownEndsWhatRuns) {
  Client client(server_->port());
  const std::string body = R"({"messages":[{"role":"user","content":"Hello"}],"stream":true,"max_tokens":20,"seed":1})";
  client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  ASSERT_TRUE(client.read_until("data: "));
  server_->stop();
  // An answer under way is finished within the grace period.
  EXPECT_TRUE(read_events(client.read_response().body).done);
  stop();
}

TEST_F(ServerTest, AsksForItsKey) {
  start("secret");
  const std::string body = R"({"messages":[{"role":"user","content":"x"}],"max_tokens":1})";
  EXPECT_EQ(post(body).status, 401);
  EXPECT_EQ(post(body, "Authorization: Bearer secre\r\n").status, 401);
  EXPECT_EQ(post(body, "Authorization: Bearer secretx\r\n").status, 401);
  EXPECT_EQ(post(body, "Authorization: secret\r\n").status, 401);
  EXPECT_EQ(post(body, "Authorization: Bearer secret\r\n").status, 200);
  EXPECT_EQ(post(body, "authorization: bearer secret\r\nOrigin: http://example.org\r\n").status, 200);
  EXPECT_EQ(Client(server_->port()).request("GET", "/health").status, 200);
  EXPECT_EQ(Client(server_->port()).request("GET", "/v1/models").status, 401);
  EXPECT_EQ(Client(server_->port()).request("GET", "/nowhere").status, 401);
  EXPECT_EQ(Client(server_->port()).request("GET", "/v1/models", {}, "x-api-key: secret\r\n").status, 200);
  EXPECT_EQ(Client(server_->port()).request("GET", "/v1/models", {}, "x-api-key: other\r\n").status, 401);
}

TEST_F(ServerTest, WithoutAKeyItServesNoForeignPages) {
  const std::string body = R"({"messages":[{"role":"user","content":"x"}],"max_tokens":1})";
  EXPECT_EQ(post(body, "Origin: http://example.org\r\n").status, 403);
  EXPECT_EQ(post(body, "Origin: null\r\n").status, 403);
  EXPECT_EQ(post(body, "Origin: http://localhost:8081\r\n").status, 200);
  Client rebound(server_->port());
  rebound.send("GET /v1/models HTTP/1.1\r\nHost: evil.example:8081\r\n\r\n");
  EXPECT_EQ(rebound.read_response().status, 403);
}

TEST_F(ServerTest, RefusesToListenBeyondThisMachineWithoutAKey) {
  ServerConfig config;
  config.http.host = "0.0.0.0";
  config.http.port = 0;
  const auto server = Server::listen(config, *service_);
  ASSERT_FALSE(server);
  EXPECT_NE(server.error().message.find("API key"), std::string::npos) << server.error().message;
  ASSERT_TRUE(config.keys.add("k", "secret"));
  EXPECT_TRUE(Server::listen(config, *service_));
}

}  // namespace
}  // namespace chimere::server
