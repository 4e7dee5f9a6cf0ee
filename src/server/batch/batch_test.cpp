// batch_test.cpp  Uploads, batches that outlive a server, and people who come first.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "base/scratch_for_test.h"
#include "server/batch/batch_store.h"
#include "server/batch/multipart.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAskedPath = "/v1/chat/completions";

std::string line_of(const std::string& id, const std::string& fields = R"("max_tokens":3)") {
  return R"({"custom_id":")" + id + R"(","method":"POST","url":"/v1/chat/completions","body":)" + chat_body(fields) +
         "}";
}

TEST(Multipart, ReadsFieldsAndFiles) {
  const std::string body =
      "--x y\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"
      "--x y\r\ncontent-disposition: form-data; name=file; filename=\"a \\\"b\\\".jsonl\"\r\nContent-Type: "
      "text/plain\r\n\r\n"
      "one\r\n--x\r\n\r\n--x y--\r\n";
  const auto parts = parse_multipart("multipart/form-data; boundary=\"x y\"", body);
  ASSERT_TRUE(parts) << parts.error().message;
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].name, "purpose");
  EXPECT_EQ((*parts)[0].content, "batch");
  EXPECT_EQ((*parts)[1].filename, "a \"b\".jsonl");
  EXPECT_EQ((*parts)[1].content, "one\r\n--x\r\n");
}

TEST(Multipart, RefusesWhatIsNone) {
  const std::string type = "multipart/form-data; boundary=b";
  const std::string good = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b--";
  ASSERT_TRUE(parse_multipart(type, good));
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(parse_multipart(type, good.substr(0, n))) << n;
  for (const char* other : {"", "text/plain", "multipart/form-data", "multipart/form-data; boundary=",
                            "multipart/form-data; boundary=c", "multipart/form-data; x"}) {
    EXPECT_FALSE(parse_multipart(other, good)) << other;
  }
  EXPECT_FALSE(parse_multipart("multipart/form-data; boundary=" + std::string(71, 'b'), good));
  EXPECT_FALSE(parse_multipart(type, "--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--")) << "no name";
  EXPECT_FALSE(parse_multipart(type, "--b\r\nnothing\r\n\r\nx\r\n--b--"));
  EXPECT_FALSE(parse_multipart(type, "--b\r\nA: " + std::string(5000, 'x') + "\r\n\r\nx\r\n--b--"));
  std::string many;
  for (size_t i = 0; i <= kMaxFormParts; ++i) many += "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n";
  EXPECT_FALSE(parse_multipart(type, many + "--b--"));
}

class BatchStoreTest : public testing::Test {
 protected:
  std::shared_ptr<BatchStore> open(BatchLimits limits = {}) const {
    auto store = BatchStore::open(folder_.string(), limits);
    EXPECT_TRUE(store) << store.error().message;
    return *store;
  }
  static Batch asked(const std::string& owner, const std::string& input) {
    Batch batch;
    batch.owner = owner;
    batch.input = input;
    batch.endpoint = kAskedPath;
    batch.window = "24h";
    batch.metadata = R"({"for":"me"})";
    return batch;
  }
  static std::string text_of(const BatchStore& store, const std::string& owner, const std::string& id) {
    const auto in = store.content(owner, id);
    EXPECT_TRUE(in);
    return in ? std::string((std::istreambuf_iterator<char>(**in)), {}) : std::string();
  }
  const fs::path folder_ = fixture::scratch_folder();
};

TEST_F(BatchStoreTest, EverythingIsThereAfterARestart) {
  std::string id, input, output;
  {
    auto store = open();
    input =
        store->add_file("ann", "in.jsonl", "batch", line_of("1") + "\n\n" + line_of("2") + "\r\n" + line_of("3"))->id;
    id = store->create(asked("ann", input))->id;
    EXPECT_EQ(store->begin("ann", id)->size(), 3u);
    output = store->add_results("ann", id, {{true, R"({"custom_id":"2"})"}, {false, R"({"custom_id":"1"})"}})->output;
  }
  std::ofstream(folder_ / "key-ann" / output, std::ios::app) << R"({"custom_id":"3","resp)";  // cut off by a crash
  auto store = open();
  const auto batch = store->batch("ann", id);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->status, "in_progress");
  EXPECT_EQ(batch->metadata, R"({"for":"me"})");
  ASSERT_EQ(store->open_batches().size(), 1u);
  EXPECT_EQ(store->open_batches()[0].id, id);
  EXPECT_EQ(store->open_batches()[0].owner, "ann");
  const auto left = store->begin("ann", id);
  ASSERT_TRUE(left) << left.error().message;
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ((*left)[0].custom_id, "3");
  EXPECT_EQ(text_of(*store, "ann", output), "{\"custom_id\":\"2\"}\n") << "without what was cut off";
  EXPECT_EQ(store->batch("ann", id)->total, 3u);
  EXPECT_EQ(store->batch("ann", id)->completed, 1u);
  EXPECT_EQ(store->batch("ann", id)->failed, 1u);
  EXPECT_FALSE(store->remove_file("ann", input)) << "a batch needs it";
  ASSERT_TRUE(store->end("ann", id, "completed"));
  EXPECT_TRUE(store->open_batches().empty());
  EXPECT_TRUE(store->remove_file("ann", input));
  EXPECT_FALSE(*BatchStore::open(folder_.string())) << "another server has it";
  store.reset();
  store = open();
  EXPECT_EQ(store->files("ann").size(), 2u);
  EXPECT_TRUE(store->files("bob").empty());
  EXPECT_FALSE(store->batch("bob", id));
}

TEST_F(BatchStoreTest, InputsAreCheckedAndTheLineIsSaid) {
  const std::pair<std::string, int> cases[] = {
      {"", 1},
      {line_of("1") + "\nnonsense", 2},
      {line_of("1") + "\n" + line_of("1"), 2},
      {"[]", 1},
      {R"({"custom_id":"","method":"POST","url":"/v1/chat/completions","body":{}})", 1},
      {R"({"method":"POST","url":"/v1/chat/completions","body":{}})", 1},
      {line_of("1") + "\n" + line_of("2") + "\n" + line_of("3"), 3},
  };
  BatchLimits limits;
  limits.lines = 2;
  auto store = open(limits);
  for (const auto& [text, line] : cases) {
    const std::string input = store->add_file("", "in", "batch", text)->id;
    const std::string id = store->create(asked("", input))->id;
    EXPECT_TRUE(store->begin("", id)->empty()) << text;
    EXPECT_EQ(store->batch("", id)->status, "failed") << text;
    EXPECT_EQ(store->batch("", id)->problem_line, line) << text << store->batch("", id)->problem;
  }
}

TEST_F(BatchStoreTest, LinesThatCanNotBeMadeSayWhy) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"custom_id":"1","method":"GET","url":"/v1/chat/completions","body":{}})", "method"},
      {R"({"custom_id":"1","method":"POST","url":"/v1/embeddings","body":{}})", "url"},
      {R"({"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":3})", "body"},
      {R"({"custom_id":"1","method":"POST","url":"/v1/chat/completions"})", "body"},
      {line_of("1", R"("stream":true)"), "body.stream"},
  };
  for (const auto& [text, field] : cases) {
    const auto line = parse_batch_line(text, kAskedPath);
    ASSERT_TRUE(line) << text;
    EXPECT_EQ(line->problem.substr(0, field.size() + 1), field + ":");
    EXPECT_TRUE(line->body.empty());
  }
  EXPECT_TRUE(parse_batch_line(line_of("1", R"("stream":false)"), kAskedPath)->problem.empty());
}

TEST_F(BatchStoreTest, WhatWasDamagedOutsideIsPassedOver) {
  std::string id, input;
  {
    auto store = open();
    input = store->add_file("ann", "in", "batch", line_of("1"))->id;
    id = store->create(asked("ann", input))->id;
  }
  std::ofstream(folder_ / "key-ann" / "batch_x.json") << "{";
  std::ofstream(folder_ / "key-ann" / "file-x.json") << R"({"id":"file-x","filename":"x"})";  // without its content
  std::ofstream(folder_ / "notes") << "x";
  fs::remove(folder_ / "key-ann" / input);
  auto store = open();
  EXPECT_TRUE(store->files("ann").empty());
  EXPECT_EQ(store->batches("ann").size(), 1u);
  EXPECT_FALSE(store->begin("ann", id)) << "its input is gone";
}

TEST_F(BatchStoreTest, OneThatNeverBeganIsCancelledAtOnce) {
  auto store = open();
  const std::string id = store->create(asked("a", store->add_file("a", "x", "batch", line_of("1"))->id))->id;
  EXPECT_EQ(store->cancel("a", id)->status, "cancelled");
  EXPECT_TRUE(store->begin("a", id)->empty());
  EXPECT_EQ(store->batch("a", id)->status, "cancelled") << "and stays so";
}

TEST_F(BatchStoreTest, LimitsHold) {
  BatchLimits limits;
  limits.files = 3;
  limits.owner_bytes = 1000;
  limits.open_batches = 1;
  limits.batches = 2;
  limits.result_file_bytes = 30;
  limits.all_bytes = 1500;
  auto store = open(limits);
  ASSERT_TRUE(store->add_file("b", "x", "batch", std::string(900, 'x')));
  const auto all = store->add_file("a", "x", "batch", std::string(601, 'x'));
  ASSERT_FALSE(all) << "of all keys together";
  EXPECT_EQ(all.error().code, Code::exhausted);
  EXPECT_FALSE(store->add_file("a", "x", "batch", std::string(1001, 'x')));
  const std::string input = store->add_file("a", "x", "batch", line_of("1"))->id;
  EXPECT_FALSE(store->create(asked("a", "file-none")));
  const std::string first = store->create(asked("a", input))->id;
  EXPECT_FALSE(store->create(asked("a", input))) << "one is open";
  ASSERT_TRUE(store->begin("a", first));
  const auto much = store->add_results("a", first, {{true, std::string(40, 'x')}});
  ASSERT_FALSE(much);
  EXPECT_EQ(much.error().code, Code::exhausted);
  for (int i = 0; i < 3; ++i) {
    for (const Batch& batch : store->batches("a")) ASSERT_TRUE(store->end("a", batch.id, "completed"));
    ASSERT_TRUE(store->create(asked("a", input)));
  }
  EXPECT_EQ(store->batches("a").size(), 2u);
  EXPECT_FALSE(store->batch("a", first)) << "the oldest gave way";
  ASSERT_TRUE(store->add_file("a", "y", "batch", "y"));
  EXPECT_FALSE(store->add_file("a", "z", "batch", "z")) << "three files";
}

class BatchApi : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.config.keys.add_lines(key_line({"ann", sha256_hex("ann"), 0, false}) + "\n" +
                                                  key_line({"bob", sha256_hex("bob"), 0, false}) + "\n" +
                                                  key_line({"poor", sha256_hex("poor"), 1, false}),
                                              "keys"));
    server_.config.key_usage = std::make_shared<KeyUsage>();
  }
  void start(BatchLimits limits = {}) {
    server_.config.batches.reset();
    server_.config.batches = *BatchStore::open(folder_, limits);
    server_.start();
  }
  ClientResponse ask(const std::string& method, const std::string& path, const std::string& body = {},
                     const std::string& who = "ann", const std::string& headers = {}) const {
    return Client(server_.port()).request(method, path, body, "x-api-key: " + who + "\r\n" + headers);
  }
  static Json json_of(const ClientResponse& response) {
    const auto json = parse_json(response.body);
    return json ? *json : Json();
  }
  ClientResponse upload(const std::string& content, const std::string& who = "ann",
                        const std::string& purpose = "batch", const std::string& name = "in.jsonl") const {
    const std::string body = "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n" + purpose +
                             "\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name +
                             "\"\r\n\r\n" + content + "\r\n--b--\r\n";
    return ask("POST", "/v1/files", body, who, "Content-Type: multipart/form-data; boundary=b\r\n");
  }
  std::string create(const std::string& content, const std::string& who = "ann",
                     const std::string& endpoint = kAskedPath) const {
    const ClientResponse file = upload(content, who);
    EXPECT_EQ(file.status, 200) << file.body;
    const Json body{{"input_file_id", json_of(file)["id"]}, {"endpoint", endpoint}, {"completion_window", "24h"}};
    const ClientResponse made = ask("POST", "/v1/batches", body.dump(), who);
    EXPECT_EQ(made.status, 200) << made.body;
    return json_of(made)["id"];
  }
  Json shown(const std::string& id, const std::string& who = "ann") const {
    return json_of(ask("GET", "/v1/batches/" + id, {}, who));
  }
  Json wait_for(const std::string& id, const std::string& status, const std::string& who = "ann") const {
    Json batch;
    const auto is_so = [&] { return (batch = shown(id, who))["status"] == status; };
    wait_until(is_so, status.c_str());
    EXPECT_EQ(batch["status"], status) << batch.dump();
    return batch;
  }
  // The lines of one of its files, by their ids.
  std::map<std::string, Json> results(const Json& batch, const char* which, const std::string& who = "ann") const {
    std::map<std::string, Json> lines;
    if (!batch[which].is_string()) return lines;
    std::istringstream text(ask("GET", "/v1/files/" + batch[which].get<std::string>() + "/content", {}, who).body);
    for (std::string line; std::getline(text, line);) {
      const auto json = parse_json(line);
      EXPECT_TRUE(json) << line;
      EXPECT_FALSE(lines.contains((*json)["custom_id"])) << "each has one result";
      if (json) lines[(*json)["custom_id"]] = *json;
    }
    return lines;
  }
  static void wait_until(const std::function<bool()>& so, const char* what) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < end) {
      if (so()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    FAIL() << what;
  }

  // The brake's own request has but a thousand steps.
  void step_slowly(EngineBrake& brake, const std::function<bool()>& so) const {
    const auto step_and_look = [&] {
      brake.step();
      return so();
    };
    wait_until(step_and_look, "a state of the engine");
  }

  const std::string folder_ = fixture::scratch_folder().string();
  ServerForTest server_;
};

TEST_F(BatchApi, RunsToItsEndAndKeepsResultsApart) {
  start();
  const std::string id = create(line_of("a") + "\n" + line_of("bad", R"("max_tokens":-3)") + "\n" + line_of("c") +
                                "\n" + line_of("stream", R"("stream":true)") + "\n");
  const Json batch = wait_for(id, "completed");
  EXPECT_EQ(batch["request_counts"], (Json{{"total", 4}, {"completed", 2}, {"failed", 2}}));
  const auto good = results(batch, "output_file_id");
  ASSERT_EQ(good.size(), 2u);
  const Json& first = good.at("a");
  EXPECT_EQ(first["response"]["status_code"], 200);
  EXPECT_EQ(first["response"]["request_id"], first["id"]);
  EXPECT_EQ(first["response"]["body"]["usage"]["completion_tokens"], 3);
  EXPECT_TRUE(first["error"].is_null());
  // What a person gets for the same request.
  const Json same = json_of(ask("POST", kAskedPath, chat_body(R"("max_tokens":3)")));
  EXPECT_EQ(first["response"]["body"]["choices"], same["choices"]);
  const auto failed = results(batch, "error_file_id");
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed.at("bad")["response"]["status_code"], 400);
  EXPECT_NE(failed.at("bad")["error"]["message"].get<std::string>().find("max_tokens"), std::string::npos);
  EXPECT_TRUE(failed.at("stream")["response"].is_null());
  EXPECT_EQ(failed.at("stream")["error"]["code"], "invalid_request");
  EXPECT_GT(server_.config.key_usage->of("ann", KeyUsage::Clock::now()).all.computed(), 0u) << "counted for the key";
  EXPECT_NE(
      server_.get("/metrics", "x-api-key: ann\r\n").body.find("chimere_batch_requests_total{result=\"completed\"} 2"),
      std::string::npos);

  const std::string output = batch["output_file_id"];
  EXPECT_EQ(ask("GET", "/v1/batches/" + id, {}, "bob").status, 404);
  EXPECT_EQ(ask("POST", "/v1/batches/" + id + "/cancel", {}, "bob").status, 404);
  EXPECT_EQ(ask("GET", "/v1/files/" + output, {}, "bob").status, 404);
  EXPECT_EQ(ask("GET", "/v1/files/" + output + "/content", {}, "bob").status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/files/" + output, {}, "bob").status, 404);
  EXPECT_EQ(json_of(ask("GET", "/v1/files"))["data"].size(), 3u);
  EXPECT_EQ(json_of(ask("GET", "/v1/files?limit=2"))["has_more"], true);
  EXPECT_EQ(json_of(ask("GET", "/v1/files?purpose=batch"))["data"].size(), 1u);
  EXPECT_EQ(json_of(ask("GET", "/v1/files", {}, "bob"))["data"].size(), 0u);
  EXPECT_EQ(ask("DELETE", "/v1/files/" + output).status, 200);
  EXPECT_EQ(ask("GET", "/v1/files/" + output).status, 404);
  EXPECT_EQ(json_of(ask("GET", "/v1/batches"))["data"][0]["id"], id);
}

TEST_F(BatchApi, AsksTheOtherEndpointsToo) {
  start();
  const auto line = [](const std::string& url, const std::string& body) {
    return R"({"custom_id":"1","method":"POST","url":")" + url + R"(","body":)" + body + "}";
  };
  const std::pair<std::string, std::string> cases[] = {
      {"/v1/completions", R"({"prompt":"Hello","max_tokens":2,"seed":1})"},
      {"/v1/embeddings", R"({"input":"Hello"})"},
      {"/v1/responses", R"({"input":"Hello","max_output_tokens":2})"},
  };
  std::vector<std::string> ids;
  for (const auto& [url, body] : cases) ids.push_back(create(line(url, body), "ann", url));
  for (const std::string& id : ids) {
    EXPECT_EQ(results(wait_for(id, "completed"), "output_file_id").size(), 1u) << shown(id).dump();
  }
}

TEST_F(BatchApi, LongResultsAreReadWhole) {
  start();
  std::string text;
  for (int i = 0; text.size() < 1'000'000; ++i) text += "line " + std::to_string(i) + "\n";
  const std::string id = json_of(upload(text))["id"];
  EXPECT_EQ(json_of(ask("GET", "/v1/files/" + id))["bytes"], text.size());
  EXPECT_TRUE(ask("GET", "/v1/files/" + id + "/content").body == text);
  const std::string empty = json_of(upload(""))["id"];
  const ClientResponse nothing = ask("GET", "/v1/files/" + empty + "/content");
  EXPECT_EQ(nothing.status, 200);
  EXPECT_EQ(nothing.body, "");
}

TEST_F(BatchApi, PeopleComeFirst) {
  start();
  std::optional<EngineBrake> brake(std::in_place, *server_.service);
  Client person(server_.port());
  person.send(
      post_text(kAskedPath, chat_body(R"("max_tokens":400,"ignore_eos":true,"stream":true)"), "x-api-key: bob\r\n"));
  brake->step_until([&] { return server_.service->engine().stats().running == 2; });
  const std::string id = create(line_of("a"));
  wait_for(id, "in_progress");
  for (int i = 0; i < 20; ++i) shown(id);  // the end of each makes the runner look
  EXPECT_EQ(server_.service->engine().stats().running, 2) << "nothing of the batch beside the person's";
  EXPECT_EQ(server_.service->engine().stats().queued, 0);
  person.close();
  brake.reset();
  wait_for(id, "completed");
}

TEST_F(BatchApi, GivesItsPlaceToAPersonWhoWaits) {
  server_.engine.max_running = 2;  // of which the brake has one
  start();
  std::optional<EngineBrake> brake(std::in_place, *server_.service);
  const std::string id = create(line_of("a", R"("max_tokens":400,"ignore_eos":true)"));
  step_slowly(*brake, [&] { return server_.service->engine().stats().running == 2; });
  EXPECT_NE(ask("GET", "/v1/requests").body.find("batch_req_"), std::string::npos);
  // Of the same key: one of another has a turn beside it at once.
  Client person(server_.port());
  person.send(post_text(kAskedPath, chat_body(R"("max_tokens":500,"ignore_eos":true)"), "x-api-key: ann\r\n"));
  step_slowly(*brake, [&] {
    const std::string requests = ask("GET", "/v1/requests").body;
    return requests.find("batch_req_") == std::string::npos && requests.find("decode") != std::string::npos;
  });
  EXPECT_EQ(shown(id)["request_counts"]["completed"], 0);
  person.close();
  brake.reset();
  EXPECT_EQ(results(wait_for(id, "completed"), "output_file_id").size(), 1u) << "made again";
}

TEST_F(BatchApi, GoesOnAfterARestart) {
  start();
  const std::string id =
      create(line_of("a") + "\n" + line_of("long", R"("max_tokens":900,"ignore_eos":true)") + "\n" + line_of("c"));
  wait_until([&] { return server_.service->engine().stats().running > 0; }, "it has begun");
  server_.stop();
  start();
  const Json batch = wait_for(id, "completed");
  EXPECT_EQ(batch["request_counts"]["completed"], 3);
  EXPECT_EQ(results(batch, "output_file_id").size(), 3u);
}

TEST_F(BatchApi, ASpentBudgetHoldsNobodyElse) {
  start();
  std::string lines;
  for (int i = 0; i < 8; ++i) lines += line_of(std::to_string(i)) + "\n";
  const std::string waits = create(lines, "poor");
  wait_until([&] { return shown(waits, "poor")["request_counts"]["completed"] > 0; }, "the first ones were made");
  const std::string other = create(line_of("a"), "bob");
  wait_for(other, "completed", "bob");
  const Json batch = shown(waits, "poor");
  EXPECT_EQ(batch["status"], "in_progress");
  EXPECT_LT(batch["request_counts"]["completed"], 8);
}

TEST_F(BatchApi, WithoutItsKeyItWaits) {
  start();
  const std::string id = create(line_of("a"));
  server_.stop();
  ASSERT_TRUE(server_.config.batches->batch("ann", id)->is_open());
  server_.config.keys = ApiKeys();
  ASSERT_TRUE(server_.config.keys.add("bob", "bob"));
  start();
  wait_for(create(line_of("b"), "bob"), "completed", "bob");
  EXPECT_EQ(server_.config.batches->batch("ann", id)->completed, 0u);
}

TEST_F(BatchApi, IsCancelled) {
  start();
  std::optional<EngineBrake> brake(std::in_place, *server_.service);
  const std::string id = create(line_of("a", R"("max_tokens":900,"ignore_eos":true)"));
  step_slowly(*brake, [&] { return server_.service->engine().stats().running == 2; });
  EXPECT_EQ(json_of(ask("POST", "/v1/batches/" + id + "/cancel"))["status"], "cancelling");
  const Json batch = wait_for(id, "cancelled");
  EXPECT_FALSE(batch["cancelled_at"].is_null());
  EXPECT_EQ(json_of(ask("POST", "/v1/batches/" + id + "/cancel"))["status"], "cancelled");
  EXPECT_EQ(ask("POST", "/v1/batches/batch_none/cancel").status, 404);
}

TEST_F(BatchApi, Expires) {
  BatchLimits limits;
  limits.window = std::chrono::seconds(2);
  start(limits);
  std::optional<EngineBrake> brake(std::in_place, *server_.service);
  const std::string id = create(line_of("a", R"("max_tokens":900,"ignore_eos":true)") + "\n" + line_of("b"));
  const Json batch = wait_for(id, "expired");
  EXPECT_FALSE(batch["expired_at"].is_null());
  const auto failed = results(batch, "error_file_id");
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed.at("a")["error"]["code"], "batch_expired");
}

TEST_F(BatchApi, RefusesWhatItCanNotDo) {
  start();
  EXPECT_EQ(upload("x", "ann", "fine-tune").status, 400);
  EXPECT_EQ(upload("x", "ann", "batch", "\xff").status, 400);
  EXPECT_EQ(ask("POST", "/v1/files", "{}").status, 400);
  EXPECT_EQ(ask("GET", "/v1/files/file-none").status, 404);
  EXPECT_EQ(ask("GET", "/v1/files/..%2F..%2Fetc/content").status, 404);
  const std::string input = json_of(upload("x"))["id"];
  const auto create_with = [&](const std::string& fields) {
    return ask("POST", "/v1/batches", R"({"input_file_id":")" + input + "\"," + fields + "}").status;
  };
  EXPECT_EQ(create_with(R"("endpoint":"/v1/status","completion_window":"24h")"), 400);
  EXPECT_EQ(create_with(R"("endpoint":"/v1/embeddings","completion_window":"1h")"), 400);
  EXPECT_EQ(create_with(R"("endpoint":"/v1/embeddings","metadata":[1])"), 400);
  EXPECT_EQ(ask("POST", "/v1/batches", R"({"input_file_id":"file-none","endpoint":"/v1/embeddings"})").status, 404);
  EXPECT_EQ(ask("POST", "/v1/batches", R"({"endpoint":"/v1/embeddings"})").status, 400);
  const std::string id =
      json_of(ask("POST", "/v1/batches", R"({"input_file_id":")" + input + R"(","endpoint":"/v1/embeddings"})"))["id"];
  const Json failed = wait_for(id, "failed");
  EXPECT_EQ(failed["errors"]["data"][0]["line"], 1);
}

TEST(BatchesOff, ThePathsAreNotThere) {
  ServerForTest server;
  server.start();
  EXPECT_EQ(server.get("/v1/files").status, 404);
  EXPECT_EQ(server.get("/v1/batches").status, 404);
}

}  // namespace
}  // namespace chimere::server
