// server_for_test.h  A server with a tiny model of random weights, and a brake on its engine.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>

#include "server/http/client_for_test.h"
#include "server/http/json.h"
#include "server/server.h"

namespace chimere::server {

struct ServerForTest {
  std::string model_path = CHIMERE_TESTS_DIR "/golden/models/qwen3_5-A/model.gguf";
  models::BackendKind backend = models::BackendKind::reference;
  engine::EngineConfig engine;
  ServerConfig config;
  std::string engram;  // folder of tables
  retrieval::NoteLimits note_limits;
  orchestrator::Embedder* embedder = nullptr;               // of another model
  std::function<void(orchestrator::ChatService&)> prepare;  // what needs the service and the server needs

  ServerForTest() {
    engine.max_running = 4;
    engine.prefill_tokens = 32;
    engine.context_length = 1000;
    config.http.port = 0;
    config.version = "1.2.3";
  }
  ~ServerForTest() { stop(); }

  void start() {
    LoadOptions options;
    options.max_rows = 64;
    auto model = models::Model::load(model_path, backend, options);
    ASSERT_TRUE(model) << model.error().message;
    auto chat_model = orchestrator::ChatModel::from_model(std::move(*model));
    ASSERT_TRUE(chat_model) << chat_model.error().message;
    if (!engram.empty()) chat_model->open_memories(engram, {}, note_limits);
    service = std::make_unique<orchestrator::ChatService>(std::move(*chat_model), engine);
    if (prepare) prepare(*service);
    auto listening = Server::listen(config, *service, embedder);
    ASSERT_TRUE(listening) << listening.error().message;
    server = std::move(*listening);
    thread = std::thread([this] { server->run(); });
  }
  void stop() {
    if (server) {
      server->stop();
      thread.join();
    }
    server.reset();
    service.reset();
  }

  uint16_t port() const { return server->port(); }
  ClientResponse get(const std::string& path, const std::string& headers = {}) const {
    return Client(port()).request("GET", path, {}, headers);
  }
  ClientResponse post(const std::string& path, const std::string& body, const std::string& headers = {}) const {
    return Client(port()).request("POST", path, body, headers);
  }
  Json get_json(const std::string& path) const {
    const ClientResponse response = get(path);
    auto json = parse_json(response.body);
    EXPECT_TRUE(json) << response.status << " " << response.body;
    return json ? *json : Json();
  }

  std::unique_ptr<orchestrator::ChatService> service;
  std::unique_ptr<Server> server;
  std::thread thread;
};

inline std::string chat_body(const std::string& fields) {
  return R"({"messages":[{"role":"user","content":"Hello"}],"seed":1,)" + fields + "}";
}

inline std::string post_text(const std::string& path, const std::string& body, const std::string& headers = {}) {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// A request of its own, next to those of a test, that lets the engine make a step only when it is told to: the engine's
// thread calls the notification of each event, and that waits for leave. As every step takes a token of each request
// that decodes, the others are held with it.
class EngineBrake {
 public:
  explicit EngineBrake(orchestrator::ChatService& service) {
    orchestrator::ChatRequest request;
    chat::Message message;
    message.role = "user";
    message.content = "x";
    request.messages.push_back(std::move(message));
    request.seed = 1;
    // It must not end by itself.
    for (const int32_t id : service.tokenizer().eog_ids()) request.sampling.logit_bias.push_back({id, -100.0f});
    stream_ = service.start(std::move(request), [steps = steps_] { steps->acquire(); });
    // The thread that prepares the prompt rings as well.
    steps_->release();
    while (service.engine().stats().running == 0) std::this_thread::yield();
  }
  ~EngineBrake() {
    steps_->release(1'000'000);
    stream_->cancel();
  }

  void step() { steps_->release(); }
  // Step by step until it is so.
  void step_until(const std::function<bool()>& so) {
    while (!so()) {
      step();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  std::shared_ptr<std::counting_semaphore<>> steps_ = std::make_shared<std::counting_semaphore<>>(0);
  std::unique_ptr<orchestrator::ChatStream> stream_;
};

}  // namespace chimere::server
