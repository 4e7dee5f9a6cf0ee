// lobby_batch_test.cpp  Batches of a server with several models: by name, below people, without taking a model from them.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

#include "server/shelf/lobby_for_test.h"

namespace chimere::server {
namespace {

class LobbyBatches : public LobbyTest {
 protected:
  void open_batches(ShelfLimits limits = {}) {
    batches_.reset();
    batches_ = *BatchStore::open((folder_ / "batches").string());
    start(limits);
  }
  ClientResponse send(const std::string& method, const std::string& path, const std::string& body = {},
                      const std::string& headers = {}) const {
    return Client(server_->port()).request(method, path, body, headers + key_);
  }
  Json json_at(const std::string& path) const {
    const auto json = parse_json(send("GET", path).body);
    return json ? *json : Json();
  }
  static std::string line(const std::string& id, const std::string& model, int n = 4) {
    return R"({"custom_id":")" + id + R"(","method":"POST","url":"/v1/completions","body":{"model":")" + model +
           R"(","prompt":"Hello","temperature":0,"ignore_eos":true,"max_tokens":)" + std::to_string(n) + "}}\n";
  }
  std::string create(const std::string& lines) const {
    const std::string form =
        "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--b\r\nContent-Disposition: "
        "form-data; name=\"file\"; filename=\"in.jsonl\"\r\n\r\n" +
        lines + "\r\n--b--\r\n";
    const auto file =
        parse_json(send("POST", "/v1/files", form, "Content-Type: multipart/form-data; boundary=b\r\n").body);
    EXPECT_TRUE(file && file->contains("id"));
    const Json body{{"input_file_id", (*file)["id"]}, {"endpoint", "/v1/completions"}};
    const auto made = parse_json(send("POST", "/v1/batches", body.dump()).body);
    EXPECT_TRUE(made && made->contains("id"));
    return (*made)["id"];
  }
  Json wait_for(const std::string& id, const std::function<bool(const Json& batch)>& so) const {
    Json batch;
    for (int i = 0; i < 6000; ++i) {
      batch = json_at("/v1/batches/" + id);
      if (so(batch)) return batch;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << batch.dump();
    return batch;
  }
  Json wait_for_end(const std::string& id) const {
    return wait_for(id, [](const Json& batch) { return batch["status"] == "completed"; });
  }
  // Lines of one of its files, by their ids, in the order in which they came.
  std::vector<Json> results(const Json& batch, const char* which) const {
    std::vector<Json> lines;
    if (!batch[which].is_string()) return lines;
    std::istringstream text(send("GET", "/v1/files/" + batch[which].get<std::string>() + "/content").body);
    for (std::string one; std::getline(text, one);) lines.push_back(*parse_json(one));
    return lines;
  }
  std::string key_;
};

TEST_F(LobbyBatches, EachRequestIsAnsweredByTheModelItNames) {
  const auto alone = answers_alone();
  open_batches({.count = 1});
  std::string lines;
  for (int i = 0; i < 12; ++i) lines += line(std::to_string(i), kModels[i % 3], 6);
  lines += line("unknown", "no-such") + line("odd", "broken");
  std::ofstream(folder_ / "broken.gguf") << "GGUF and nothing else";
  const Json batch = wait_for_end(create(lines));
  EXPECT_EQ(batch["request_counts"], (Json{{"total", 14}, {"completed", 12}, {"failed", 2}}));
  for (const Json& result : results(batch, "output_file_id")) {
    const int i = std::stoi(result["custom_id"].get<std::string>());
    EXPECT_EQ(result["response"]["body"]["model"], kModels[i % 3]);
    EXPECT_EQ(result["response"]["body"]["choices"][0]["text"], alone.at(kModels[i % 3]));
  }
  for (const Json& result : results(batch, "error_file_id")) {
    EXPECT_NE(result.dump().find(result["custom_id"] == "odd" ? "broken" : "no-such"), std::string::npos);
  }
  EXPECT_LE(n_loads_, 4 + 3) << "not in turns: each model once, after answers_alone(), and the broken one";
  EXPECT_NE(send("GET", "/metrics").body.find("chimere_batch_requests_total{result=\"completed\"} 12"),
            std::string::npos);
}

TEST_F(LobbyBatches, AModelThatPeopleUseStaysUntilTheyRest) {
  batches_load_after_ = std::chrono::hours(1);
  open_batches({.count = 1});
  EXPECT_EQ(ask("qwen2-A").status, 200);
  const std::string id = create(line("other", "mamba-A") + line("same", "qwen2-A"));
  const Json batch = wait_for(id, [](const Json& now) { return now["request_counts"]["completed"] == 1; });
  EXPECT_EQ(results(batch, "output_file_id").at(0)["custom_id"], "same") << "what is loaded answers at once";
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // a tick or two
  EXPECT_EQ(state_of("mamba-A"), "unloaded");
  EXPECT_EQ(ask("mamba-A").status, 200);  // a person loads it
  EXPECT_EQ(wait_for_end(id)["request_counts"]["completed"], 2);
}

TEST_F(LobbyBatches, GivesItsModelsPlaceToAPersonWhoWaitsForAnother) {
  load_ = [](const ModelFile& file, const ModelMemory&) { return open_tiny(file.path, 60'000); };
  open_batches({.count = 1});
  const std::string id = create(line("long", "qwen2-A", 30'000));
  wait_for(id, [&](const Json&) { return send("GET", "/v1/requests").body.find("\"decode\"") != std::string::npos; });
  EXPECT_EQ(ask("mamba-A").status, 200);
  const Json batch = wait_for(id, [&](const Json&) { return n_loads_ == 3; });  // its model went and came back
  EXPECT_EQ(batch["status"], "in_progress");
  EXPECT_EQ(batch["request_counts"]["completed"], 0);
  EXPECT_EQ(send("POST", "/v1/batches/" + id + "/cancel").status, 200);
  wait_for(id, [](const Json& now) { return now["status"] == "cancelled"; });
}

TEST_F(LobbyBatches, BelongToTheirKey) {
  ASSERT_TRUE(keys_.add("ann", "ann"));
  ASSERT_TRUE(keys_.add("bob", "bob"));
  open_batches();
  key_ = "x-api-key: ann\r\n";
  const std::string id = create(line("a", "qwen2-A"));
  EXPECT_EQ(wait_for_end(id)["request_counts"]["completed"], 1);
  key_ = "x-api-key: bob\r\n";
  EXPECT_EQ(send("GET", "/v1/batches/" + id).status, 404);
  key_ = {};
  EXPECT_EQ(send("GET", "/v1/batches").status, 401);
}

TEST_F(LobbyBatches, WithoutAStoreThePathsAreNotThereAndNothingIsLoaded) {
  start({});
  for (const char* path : {"/v1/files", "/v1/batches"}) {
    EXPECT_GE(send("GET", path).status, 404);
    EXPECT_EQ(send("POST", path, R"({"model":"no-such"})").status, 404);
  }
  EXPECT_EQ(n_loads_, 0);
}

}  // namespace
}  // namespace chimere::server
