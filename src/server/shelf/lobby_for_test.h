// lobby_for_test.h  A server of three tiny models in a folder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/scratch_for_test.h"
#include "odo/odo.h"
#include "server/batch/batch_store.h"
#include "server/http/client_for_test.h"
#include "server/http/json.h"
#include "server/server.h"
#include "server/shelf/lobby.h"

namespace chimere::server {

inline constexpr const char* kModels[] = {"qwen3_5-A", "qwen2-A", "mamba-A"};

inline std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(CHIMERE_TESTS_DIR) / "golden" / "models" / name / "model.gguf";
}

inline constexpr uint64_t kStateBytes = 32 << 20;

inline Result<ModelShelf::Opened> open_tiny(const std::string& path, int context = 200) {
  LoadOptions options;
  options.max_rows = 64;
  TRY_ASSIGN(auto model, models::Model::load(path, models::BackendKind::reference, options));
  TRY_ASSIGN(auto chat_model, orchestrator::ChatModel::from_model(std::move(model)));
  engine::EngineConfig engine;
  engine.max_running = 4;
  engine.context_length = context;
  engine.state_bytes = kStateBytes;
  ModelShelf::Opened opened{std::make_unique<orchestrator::ChatService>(std::move(chat_model), engine)};
  opened.memory = memory_of(*opened.service, kStateBytes);
  return Result<ModelShelf::Opened>{std::move(opened)};
}

class LobbyTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "maker");
    for (const char* name : kModels)
      std::filesystem::copy_file(golden(name), folder_ / "maker" / (std::string(name) + ".gguf"));
  }
  void TearDown() override {
    if (server_) {
      server_->stop();
      thread_.join();
    }
    server_.reset();
    odo_.reset();
    shelf_.reset();
    collections_.reset();
  }
  // The orchestrator for all of them, with no tools.
  void start_with_odo(ShelfLimits limits = {}) {
    odo::Shelves shelves;
    shelves.collections = collections_.get();
    odo_ = std::make_unique<odo::Odo>(nullptr, box_, shelves, odo::OdoConfig());
    start(limits);
  }
  ClientResponse chat(const std::string& fields, std::optional<uint16_t> port = std::nullopt) const {
    const std::string body =
        R"({"messages":[{"role":"user","content":"Hello"}],"max_tokens":4,"temperature":0)" + fields + "}";
    return Client(port.value_or(server_->port())).request("POST", "/v1/chat/completions", body, {});
  }
  void start(ShelfLimits limits) {
    const auto find = [this] {
      auto files = find_models(folder_.string());
      return files ? *files : std::vector<ModelFile>();
    };
    const auto load = [this](const ModelFile& file, const ModelMemory& share, const ModelShelf::Progress& progress) {
      progress(1, 2);
      ++n_loads_;
      return load_ ? load_(file, share) : open_tiny(file.path);
    };
    shelf_ = std::make_unique<ModelShelf>(find, load, limits, plan_);
    ServerConfig config;
    config.http.port = 0;
    config.keys = keys_;
    config.odo = odo_.get();
    config.collections = collections_;
    config.http.side_port = side_port_;
    config.batches = batches_;
    config.batches_load_after = batches_load_after_;
    auto listening = Server::listen(config, *shelf_);
    ASSERT_TRUE(listening) << listening.error().message;
    server_ = std::move(*listening);
    thread_ = std::thread([this] { server_->run(); });
  }
  ClientResponse ask(const std::string& model) const {
    return Client(server_->port())
        .request("POST", "/v1/completions",
                 R"({"model":")" + model + R"(","prompt":"Hello","max_tokens":6,"temperature":0})", {});
  }
  Json get(const std::string& path) const {
    const auto json = parse_json(Client(server_->port()).request("GET", path, {}, {}).body);
    EXPECT_TRUE(json);
    return json ? *json : Json();
  }
  std::string state_of(const std::string& name) const {
    const Json list = get("/v1/models");
    for (const Json& model : list["data"]) {
      if (model["id"] == name) return model["status"]["value"];
    }
    return "not listed";
  }
  // What each says alone.
  std::map<std::string, std::string> answers_alone() {
    std::map<std::string, std::string> alone;
    for (const char* name : kModels) {
      start({});
      alone[name] = text_of(ask(name));
      TearDown();
    }
    return alone;
  }
  // Of four clients with names by chance, how many things were wrong: answers, and looks at which models were loaded
  // that are not to be together.
  int count_wrong(std::map<std::string, std::string> alone,
                  const std::function<uint64_t(const ModelShelf::Listed&)>& size, uint64_t most) const {
    std::atomic<int> n_wrong = 0;
    std::atomic<bool> ends = false;
    std::thread watch([&] {
      while (!ends) {
        uint64_t all = 0;
        shelf_->list([&](const ModelShelf::Listed& listed) {
          if (listed.state == ModelShelf::State::loaded) all += size(listed);
        });
        if (all > most) ++n_wrong;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    std::vector<std::thread> clients;
    for (unsigned seed = 0; seed < 4; ++seed) {
      clients.emplace_back([&, seed] {
        std::mt19937 random(seed);
        for (int i = 0; i < 50; ++i) {
          const char* name = kModels[random() % 3];
          const std::string text = text_of(ask(name));
          if (text == alone.at(name)) continue;
          ++n_wrong;
          ADD_FAILURE() << name << ": " << text;
        }
      });
    }
    for (std::thread& client : clients) client.join();
    ends = true;
    watch.join();
    return n_wrong;
  }
  static std::string text_of(const ClientResponse& response) {
    const auto json = parse_json(response.body);
    if (response.status != 200 || !json) return "status " + std::to_string(response.status) + ": " + response.body;
    return (*json)["choices"][0]["text"];
  }

  const std::filesystem::path folder_ = fixture::scratch_folder();
  ApiKeys keys_;
  ModelShelf::Plan plan_;
  std::function<Result<ModelShelf::Opened>(const ModelFile& file, const ModelMemory& share)>
      load_;  // open_tiny() without
  std::atomic<int> n_loads_ = 0;
  tools::Toolbox box_;
  std::optional<uint16_t> side_port_;
  std::unique_ptr<ModelShelf> shelf_;
  std::shared_ptr<retrieval::Collections> collections_;
  std::shared_ptr<BatchStore> batches_;
  std::chrono::milliseconds batches_load_after_{0};
  std::unique_ptr<odo::Odo> odo_;  // ends before the shelf: its runs hold models
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

}  // namespace chimere::server
