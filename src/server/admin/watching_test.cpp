// watching_test.cpp  What those see who watch the server, and how requests under way are steered.
#include <spdlog/spdlog.h>

#include <map>
#include <sstream>

#include "server/admin/metrics_text.h"
#include "server/admin/stall_watch.h"
#include "server/http/log.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

constexpr const char* kChat = "/v1/chat/completions";

Json error_of(const std::string& body) {
  const auto json = parse_json(body);
  return json && json->contains("error") ? (*json)["error"] : Json();
}

// The data of the last event before [DONE].
Json last_event(const std::string& body) {
  constexpr std::string_view kDone = "data: [DONE]\n\n";
  EXPECT_TRUE(body.ends_with(kDone)) << body;
  const std::string events = body.substr(0, body.size() - std::min(body.size(), kDone.size()));
  const size_t at = events.rfind("data: ");
  if (at == std::string::npos) return {};
  const auto json = parse_json(events.substr(at + 6));
  EXPECT_TRUE(json) << events;
  return json ? *json : Json();
}

// An empty object when there is none.
Json find_request(const ServerForTest& server, const std::string& id) {
  const Json list = server.get_json("/v1/requests");
  for (const Json& entry : list["data"]) {
    if (entry["id"] == id) return entry;
  }
  return Json::object();
}

TEST(Watching, AnswersWhileTheEngineIsHeld) {
  ServerForTest server;
  server.start();
  EngineBrake brake(*server.service);
  EXPECT_EQ(server.get_json("/health")["running"], 1);
  EXPECT_EQ(server.get("/metrics").status, 200);
  EXPECT_EQ(server.get_json("/v1/status")["load"]["running"], 1);
  EXPECT_EQ(server.get("/v1/requests").status, 200);
}

TEST(Watching, StatusHasTheModelAndTheLoad) {
  ServerForTest server;
  server.start();
  ASSERT_EQ(server.post(kChat, chat_body(R"("max_tokens":5)")).status, 200);
  const Json status = server.get_json("/v1/status");
  EXPECT_EQ(status["version"], "1.2.3");
  EXPECT_GE(status["uptime_seconds"], 0.0);
  const Json& model = status["model"];
  EXPECT_EQ(model["name"], server.service->model_info().name);
  EXPECT_EQ(model["backend"], "reference");
  EXPECT_EQ(model["context_length"], 1000);
  EXPECT_GT(model["parameters"], 1000);
  ASSERT_FALSE(model["layers"].empty());
  int recurrent = 0, attention = 0;
  for (const Json& layer : model["layers"]) {
    recurrent += layer["mixer"] == "gdn" ? 1 : 0;
    attention += layer["mixer"] == "attention" ? 1 : 0;
    EXPECT_NE(layer["ffn"], "none");
  }
  EXPECT_GT(recurrent, 0);
  EXPECT_GT(attention, 0);
  ASSERT_FALSE(model["formats"].empty());
  EXPECT_GT(model["formats"][0]["bytes"], 0);
  EXPECT_EQ(status["load"]["max_running"], 4);
  EXPECT_EQ(status["tokens"]["generated_total"], 5);
  EXPECT_GT(status["cache"]["tokens_computed"], 0);
  EXPECT_TRUE(status["cache"]["misses"].is_object());
  EXPECT_FALSE(status["memory"].empty());
  EXPECT_EQ(status["state_memory"]["is_short"], false);
  EXPECT_GT(status["state_memory"]["wanted_bytes"], 0);
  EXPECT_EQ(status["state_memory"]["limit_bytes"], status["state_memory"]["wanted_bytes"]);
}

// Every line of the format is one of: a comment of a family, or a sample of the family named last.
void check_metrics(const std::string& text, std::map<std::string, double>& samples) {
  std::istringstream lines(text);
  std::string line, family, type;
  double last_bucket = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string first, word;
    words >> first;
    if (first == "#") {
      words >> word >> family >> type;
      if (word == "TYPE") {
        EXPECT_TRUE(type == "counter" || type == "gauge" || type == "histogram") << line;
      }
      last_bucket = 0;
      continue;
    }
    // A label may have spaces, a value has none.
    const size_t space = line.rfind(' ');
    ASSERT_NE(space, std::string::npos) << line;
    first = line.substr(0, space);
    const double value = std::strtod(line.c_str() + space, nullptr);
    EXPECT_EQ(first.rfind(family, 0), 0u) << line;
    EXPECT_GE(value, 0) << line;
    if (first.find("_bucket{") != std::string::npos) {
      EXPECT_GE(value, last_bucket) << line;
      last_bucket = value;
    }
    // Behind it may come the buckets of another label.
    if (type == "histogram" && first.rfind(family + "_count", 0) == 0) {
      EXPECT_EQ(value, last_bucket) << line;
      last_bucket = 0;
    }
    EXPECT_TRUE(samples.emplace(first, value).second) << "twice: " << line;
  }
}

TEST(Watching, MetricsCountWhatHappened) {
  ServerForTest server;
  server.start();
  ASSERT_EQ(server.post(kChat, chat_body(R"("max_tokens":5)")).status, 200);
  ASSERT_EQ(server.post(kChat, "{").status, 400);
  ASSERT_EQ(server.get("/nowhere").status, 404);
  const ClientResponse response = server.get("/metrics");
  EXPECT_EQ(response.header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  std::map<std::string, double> samples;
  check_metrics(response.body, samples);
  EXPECT_EQ(samples[R"(chimere_http_requests_total{route="/v1/chat/completions",status="200"})"], 1);
  EXPECT_EQ(samples[R"(chimere_http_requests_total{route="/v1/chat/completions",status="400"})"], 1);
  EXPECT_EQ(samples[R"(chimere_http_requests_total{route="none",status="404"})"], 1);
  EXPECT_EQ(samples["chimere_generated_tokens_total"], 5);
  EXPECT_EQ(samples[R"(chimere_answers_total{reason="length"})"], 1);
  EXPECT_EQ(samples["chimere_time_to_first_token_seconds_count"], 1);
  EXPECT_EQ(samples["chimere_generated_tokens_per_second_count"], 1);
  EXPECT_EQ(samples["chimere_queue_seconds_count"], 1);
  EXPECT_GE(samples["chimere_batch_rows_count"], 5);
  EXPECT_GT(samples[R"(chimere_memory_bytes{purpose="weights"})"], 0);
  EXPECT_GT(samples["process_resident_memory_bytes"], 0);
}

TEST(Watching, StagesOfTheOrchestratorAreHistograms) {
  std::map<std::string, odo::StageCount> stages;
  for (const double seconds : {0.00001, 0.0001, 0.0002}) stages["route"].add(seconds);
  stages["answer"].add(1.5);
  stages["answer"].add(1000);
  stages["answer"].failed = 1;
  Monitor monitor;
  std::map<std::string, double> samples;
  check_metrics(metrics_text(monitor, engine::EngineStats(), 0, std::nullopt, stages), samples);
  const auto bucket = [&](const std::string& stage, const std::string& bound) {
    return samples.at("chimere_odo_stage_seconds_bucket{stage=\"" + stage + "\",le=\"" + bound + "\"}");
  };
  EXPECT_EQ(bucket("route", "0.0001"), 2);  // a bound belongs to its bucket
  EXPECT_EQ(bucket("route", "0.001"), 3);
  EXPECT_EQ(bucket("answer", "1"), 0);
  EXPECT_EQ(bucket("answer", "60"), 1);
  EXPECT_EQ(bucket("answer", "+Inf"), 2);
  EXPECT_EQ(samples.at(R"(chimere_odo_stage_seconds_sum{stage="answer"})"), 1001.5);
  EXPECT_EQ(samples.at(R"(chimere_odo_stage_seconds_count{stage="answer"})"), 2);
  EXPECT_EQ(samples.at(R"(chimere_odo_steps_total{stage="answer",result="failed"})"), 1);
  EXPECT_EQ(samples.count("chimere_odo_step_seconds_total"), 0u);
}

TEST(Watching, RequestsAreListedAndCancelled) {
  ServerForTest server;
  server.start();
  EngineBrake brake(*server.service);
  Client client(server.port());
  client.send(post_text(kChat, chat_body(R"("stream":true,"user":"ann")"), "X-Request-Id: mine-1\r\n"));
  Json entry;
  brake.step_until([&] {
    entry = find_request(server, "mine-1");
    return !entry.empty() && entry["state"] == "decode";
  });
  EXPECT_GT(entry["prompt_tokens"], 3);
  EXPECT_EQ(entry["user"], "ann");
  EXPECT_GE(entry["age_seconds"], 0.0);
  EXPECT_EQ(server.post("/v1/requests/other/cancel", "").status, 404);
  const ClientResponse cancelled = server.post("/v1/requests/mine-1/cancel", "");
  EXPECT_EQ(cancelled.status, 200);
  EXPECT_EQ(cancelled.body, R"({"id":"mine-1","cancelled":true})");
  brake.step_until([&] { return find_request(server, "mine-1").empty(); });
  const ClientResponse stream = client.read_response();
  EXPECT_EQ(stream.status, 200);
  EXPECT_EQ(stream.header("X-Request-Id"), "mine-1");
  EXPECT_EQ(last_event(stream.body)["error"]["code"], "cancelled");
}

TEST(Watching, AWholeAnswerThatIsCancelledIsNotTriedAgain) {
  ServerForTest server;
  server.start();
  EngineBrake brake(*server.service);
  Client client(server.port());
  client.send(post_text(kChat, chat_body(R"("stream":false)"), "X-Request-Id: mine-2\r\n"));
  brake.step_until([&] { return !find_request(server, "mine-2").empty(); });
  EXPECT_EQ(server.post("/v1/requests/mine-2/cancel", "").status, 200);
  brake.step_until([&] { return find_request(server, "mine-2").empty(); });
  const ClientResponse response = client.read_response();
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(error_of(response.body)["code"], "cancelled");
}

TEST(Watching, AThoughtCanBeStopped) {
  // The model in the box thinks; the others have no word for it.
  ServerForTest server;
  server.model_path = CHIMERE_TESTS_DIR "/../assets/chimere-nano.gguf";
  server.backend = models::BackendKind::cpu;
  server.start();
  std::string no_end;
  for (const int32_t id : server.service->tokenizer().eog_ids()) {
    no_end += (no_end.empty() ? "\"" : ",\"") + std::to_string(id) + "\":-100";
  }
  EngineBrake brake(*server.service);
  Client client(server.port());
  const std::string fields =
      R"("stream":true,"enable_thinking":true,"thinking_budget":900,"max_tokens":60,"logit_bias":{)" + no_end + "}";
  client.send(post_text(kChat, chat_body(fields), "X-Request-Id: thinker\r\n"));
  brake.step_until([&] {
    const Json entry = find_request(server, "thinker");
    return !entry.empty() && entry["state"] == "decode" && entry["thinking"] == true;
  });
  EXPECT_EQ(server.post("/v1/requests/other/stop_thinking", "").status, 404);
  const ClientResponse stopped = server.post("/v1/requests/thinker/stop_thinking", "");
  EXPECT_EQ(stopped.status, 200);
  EXPECT_EQ(stopped.body, R"({"id":"thinker","stopped":true})");
  brake.step_until([&] { return find_request(server, "thinker").value("thinking", true) == false; });
  EXPECT_EQ(server.post("/v1/requests/thinker/stop_thinking", "").status, 409);
  brake.step_until([&] { return find_request(server, "thinker").empty(); });
  EXPECT_NE(client.read_response().body.find(R"("content")"), std::string::npos);
}

TEST(Watching, AFullQueueIsTooManyRequests) {
  ServerForTest server;
  server.engine.max_running = 1;
  server.engine.max_queued = 1;
  server.start();
  EngineBrake brake(*server.service);
  Client waiting(server.port());
  waiting.send(post_text(kChat, chat_body(R"("max_tokens":1)")));
  brake.step_until([&] { return server.service->engine().stats().queued == 1; });
  Client refused(server.port());
  refused.send(post_text(kChat, chat_body(R"("max_tokens":1)"), "X-Request-Id: second\r\n"));
  const ClientResponse response = refused.read_response();
  EXPECT_EQ(response.status, 429) << response.body;
  EXPECT_EQ(response.header("Retry-After"), "1");
  EXPECT_EQ(error_of(response.body)["code"], "overloaded");
}

TEST(Watching, AClientThatLeavesEndsItsRequest) {
  ServerForTest server;
  server.start();
  EngineBrake brake(*server.service);
  Client client(server.port());
  client.send(post_text(kChat, chat_body(R"("stream":true)"), "X-Request-Id: leaver\r\n"));
  brake.step_until([&] { return !find_request(server, "leaver").empty(); });
  brake.step_until([&] { return server.service->engine().list().size() == 2; });
  client.close();
  while (!find_request(server, "leaver").empty()) std::this_thread::yield();
  // The engine is held, and the word to cancel waits for it: it is heard before the next step.
  brake.step();
  while (server.service->engine().list().size() != 1) std::this_thread::yield();
}

TEST(Watching, DeadlinesEndAnswers) {
  ServerForTest server;
  server.config.request_timeout = std::chrono::milliseconds(1);
  server.start();
  const ClientResponse response = server.post(kChat, chat_body(R"("max_tokens":900)"));
  EXPECT_EQ(response.status, 200) << response.body;
  const auto json = parse_json(response.body);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["choices"][0]["finish_reason"], "length");
  EXPECT_LT((*json)["usage"]["completion_tokens"], 900);
}

TEST(Watching, ShutdownEndsStreamsWithAWord) {
  ServerForTest server;
  server.config.http.shutdown_grace = std::chrono::milliseconds(1);
  server.start();
  EngineBrake brake(*server.service);
  Client client(server.port());
  client.send(post_text(kChat, chat_body(R"("stream":true)"), "X-Request-Id: last\r\n"));
  brake.step_until([&] { return find_request(server, "last").value("state", "") == "decode"; });
  server.server->stop();
  // The engine goes on, slowly: a thousand tokens would take far longer than the grace period.
  std::atomic<bool> ended{false};
  std::thread steps([&] { brake.step_until([&] { return ended.load(); }); });
  const ClientResponse response = client.read_response();
  ended = true;
  steps.join();
  EXPECT_EQ(last_event(response.body)["error"]["message"], "the server is stopping");
}

TEST(Watching, RateLimitsAreKept) {
  ServerForTest server;
  server.config.rate_limit = 2;
  server.start();
  EXPECT_EQ(server.get("/v1/models").status, 200);
  EXPECT_EQ(server.get("/v1/models").status, 200);
  const ClientResponse third = server.get("/v1/models");
  EXPECT_EQ(third.status, 429);
  EXPECT_NE(third.header("Retry-After"), "");
  EXPECT_EQ(error_of(third.body)["code"], "rate_limit_exceeded");
  // Those who watch are not counted.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(server.get("/v1/status").status, 200);
}

std::string logged_by(LogFormat format, bool log_prompts) {
  testing::internal::CaptureStderr();
  start_log(format);
  {
    ServerForTest server;
    EXPECT_TRUE(server.config.keys.add("ann", "secret"));
    server.config.watch.log_prompts = log_prompts;
    server.start();
    const std::string key = "Authorization: Bearer secret\r\n";
    EXPECT_EQ(server.post(kChat, chat_body(R"("max_tokens":3)"), key + "X-Request-Id: one\r\n").status, 200);
    EXPECT_EQ(server.get("/v1/status", key + "X-Request-Id: polled\r\n").status, 200);
    EXPECT_EQ(server.get("/v1/status", "X-Request-Id: stranger\r\n").status, 401);
    spdlog::warn("a \"word\"");
  }
  start_log(LogFormat::text);
  return testing::internal::GetCapturedStderr();
}

TEST(Log, HasNamesAndFiguresButNoPromptsAndNoKeys) {
  const std::string log = logged_by(LogFormat::text, false);
  EXPECT_NE(log.find("one ann POST /v1/chat/completions 200"), std::string::npos) << log;
  for (const char* figure : {"queue ", "first token ", "cached", "answer 3 tokens"}) {
    EXPECT_NE(log.find(figure), std::string::npos) << figure << "\n" << log;
  }
  EXPECT_EQ(log.find("polled"), std::string::npos) << log;
  EXPECT_NE(log.find("stranger"), std::string::npos) << log;
  EXPECT_EQ(log.find("Hello"), std::string::npos) << log;
  EXPECT_EQ(log.find("secret"), std::string::npos) << log;
  EXPECT_NE(logged_by(LogFormat::text, true).find("Hello"), std::string::npos);
}

TEST(Log, CanBeJson) {
  std::istringstream lines(logged_by(LogFormat::json, false));
  std::string line;
  int requests = 0, words = 0;
  while (std::getline(lines, line)) {
    const auto json = parse_json(line);
    ASSERT_TRUE(json) << line;
    EXPECT_TRUE(json->contains("time") && json->contains("level")) << line;
    if (json->value("request_id", "") == "one") {
      ++requests;
      EXPECT_EQ((*json)["client"], "ann");
      EXPECT_EQ((*json)["completion_tokens"], 3);
      EXPECT_GE((*json)["first_token_ms"], 0.0);
    }
    if (json->value("message", "") == "a \"word\"") ++words;
  }
  EXPECT_EQ(requests, 1);
  EXPECT_EQ(words, 1);
}

TEST(StallWatch, TellsOnceForEachStall) {
  using std::chrono::seconds;
  StallWatch watch(seconds(10));
  const StallWatch::Clock::time_point start = StallWatch::Clock::time_point{} + seconds(100);
  engine::EngineStats stats;
  stats.place = "runs a batch";
  EXPECT_FALSE(watch.is_stalled(stats, start));
  EXPECT_FALSE(watch.is_stalled(stats, start + seconds(60))) << "idle";
  stats.running = 1;
  EXPECT_FALSE(watch.is_stalled(stats, start + seconds(61)));
  EXPECT_FALSE(watch.is_stalled(stats, start + seconds(69)));
  EXPECT_TRUE(watch.is_stalled(stats, start + seconds(71)));
  EXPECT_FALSE(watch.is_stalled(stats, start + seconds(72)));
  EXPECT_TRUE(watch.stands_still());
  ++stats.steps;
  EXPECT_FALSE(watch.is_stalled(stats, start + seconds(80)));
  EXPECT_FALSE(watch.stands_still());
  EXPECT_TRUE(watch.is_stalled(stats, start + seconds(90)));
  engine::RequestInfo request;
  request.id = 7;
  request.prompt_tokens = 42;
  const std::string text = describe_stall(stats, {request}, seconds(10), start);
  for (const char* part : {"runs a batch", "request 7", "42 tokens", "no step for 10 s"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(StallWatch, IsWiredToTheTick) {
  testing::internal::CaptureStderr();
  start_log(LogFormat::text);
  {
    ServerForTest server;
    server.config.watch.dump_on_stall = std::chrono::seconds(1);
    server.start();
    EXPECT_EQ(server.get("/livez").status, 200);
    EXPECT_EQ(server.get("/readyz").status, 200);
    {
      EngineBrake brake(*server.service);
      while (server.get("/metrics").body.find("\nchimere_engine_stalls_total 1\n") == std::string::npos) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      const ClientResponse alive = server.get("/livez");
      EXPECT_EQ(alive.status, 503);
      EXPECT_NE(alive.body.find("makes no step"), std::string::npos) << alive.body;
      EXPECT_EQ(server.get("/readyz").status, 503);
      EXPECT_EQ(server.get("/health").status, 200) << "says what there is, and is no probe";
    }
    // It goes on, and is alive again.
    while (server.get("/livez").status != 200) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(server.get("/readyz").status, 200);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  start_log(LogFormat::text);
  EXPECT_NE(log.find("the engine has made no step for 1 s"), std::string::npos) << log;
}

}  // namespace
}  // namespace chimere::server
