// lobby_test.cpp  Several models behind one address: by name, within limits, beside files that are broken.
#include "server/shelf/lobby.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/scratch_for_test.h"
#include "odo/odo.h"
#include "retrieval/collections.h"
#include "server/http/client_for_test.h"
#include "server/http/json.h"
#include "server/server.h"
#include "server/shelf/body_field.h"
#include "server/shelf/lobby_for_test.h"

namespace chimere::server {
namespace {

namespace fs = std::filesystem;

TEST_F(LobbyTest, ModelsAreListedAndLoadedByName) {
  start({});
  const Json list = get("/v1/models");
  ASSERT_EQ(list["data"].size(), 3u);
  for (const Json& model : list["data"]) EXPECT_EQ(model["status"]["value"], "unloaded");
  EXPECT_EQ(Client(server_->port()).request("GET", "/slots", {}, {}).status, 503);
  EXPECT_EQ(get("/health")["status"], "ok");
  EXPECT_EQ(Client(server_->port()).request("GET", "/livez", {}, {}).status, 200);
  EXPECT_EQ(Client(server_->port()).request("GET", "/readyz", {}, {}).status, 200);
  const ClientResponse answer = ask("qwen2-A");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("X-Chimere-Model"), "qwen2-A");
  EXPECT_EQ(state_of("qwen2-A"), "loaded");
  EXPECT_EQ(state_of("mamba-A"), "unloaded");
  EXPECT_EQ(get("/api/tags")["models"].size(), 3u);
  EXPECT_EQ(get("/api/ps")["models"].size(), 1u);
  EXPECT_EQ(get("/v1/models/mamba-A")["id"], "mamba-A");
  EXPECT_TRUE(get("/v1/status")["model"].is_object());
  const ClientResponse unknown = ask("no-such");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(unknown.body.find("'mamba-A'"), std::string::npos) << unknown.body;
  EXPECT_EQ(ask("").status, 200) << "the one that was used last";
  EXPECT_EQ(n_loads_, 1);
}

TEST_F(LobbyTest, TheStatusIsThereBeforeAModelIs) {
  std::ofstream(folder_ / "broken.gguf") << "no model";
  start({});
  const Json before = get("/v1/status");
  EXPECT_FALSE(before.contains("model"));
  EXPECT_GE(before["uptime_seconds"].get<double>(), 0);
  ASSERT_EQ(before["models"].size(), 4u);
  EXPECT_EQ(before["models"][0], (Json{{"name", "broken"}, {"state", "unloaded"}, {"file_bytes", 8}}));
  EXPECT_TRUE(before["keys"].is_array());
  EXPECT_EQ(get("/v1/requests")["data"].size(), 0u);
  EXPECT_EQ(Client(server_->port()).request("GET", "/metrics", {}, {}).status, 200);
  EXPECT_EQ(n_loads_, 0) << "those who watch load nothing";

  EXPECT_EQ(ask("qwen2-A").status, 200);
  EXPECT_NE(ask("broken").status, 200);
  const Json after = get("/v1/status");
  EXPECT_TRUE(after["model"].is_object());
  EXPECT_TRUE(after["tokens"]["generated_total"].get<int>() > 0);
  std::map<std::string, Json> models;
  for (const Json& model : after["models"]) models[model["name"]] = model;
  EXPECT_EQ(models["qwen2-A"]["state"], "loaded");
  EXPECT_GT(models["qwen2-A"]["ram_bytes"].get<uint64_t>(), 0u);
  EXPECT_EQ(models["qwen2-A"]["users"], 0);
  EXPECT_EQ(models["broken"]["state"], "failed");
  EXPECT_EQ(models["broken"]["error"].get<std::string>().find(folder_.string()), std::string::npos);
  EXPECT_EQ(models["mamba-A"]["state"], "unloaded");
  EXPECT_TRUE(get("/v1/status?model=qwen2-A")["model"].is_object());
  EXPECT_FALSE(get("/v1/status?model=qwen2-A").contains("models"));
}

TEST_F(LobbyTest, TheOrchestratorAnswersWithTheModelThatIsNamedBesideIt) {
  start_with_odo();
  const Json list = get("/v1/models");
  ASSERT_GT(list["data"].size(), 3u);
  EXPECT_EQ(list["data"][3]["id"], "odo");
  EXPECT_EQ(list["data"][3]["parent"], "mamba-A") << "the first, where none was used";
  EXPECT_EQ(get("/v1/models/odo%2Ffast")["id"], "odo/fast");
  EXPECT_EQ(get("/v1/odo/status")["object"], "odo.status") << "without a model";
  EXPECT_EQ(n_loads_, 0);

  const ClientResponse named = chat(R"(,"model":"odo/fast","base_model":"qwen3_5-A")");
  ASSERT_EQ(named.status, 200) << named.body;
  EXPECT_EQ(named.header("X-Chimere-Model"), "qwen3_5-A");
  EXPECT_EQ(named.header("X-Chimere-Ignored"), "");
  const auto json = parse_json(named.body);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["model"], "odo/fast");
  EXPECT_EQ((*json)["odo"]["mode"], "fast");
  EXPECT_EQ(chat(R"(,"model":"odo")").header("X-Chimere-Model"), "qwen3_5-A") << "the one that was used last";
  EXPECT_EQ(get("/v1/models")["data"][3]["parent"], "qwen3_5-A");
  EXPECT_EQ(n_loads_, 1);

  const ClientResponse bare = chat(R"(,"model":"qwen3_5-A","base_model":"qwen2-A")");
  EXPECT_EQ(bare.header("X-Chimere-Ignored"), "base_model") << "who asks for a model gets it";
  const ClientResponse no_route = chat(R"(,"model":"odo/nothing","base_model":"qwen2-A")");
  EXPECT_EQ(no_route.status, 404);
  EXPECT_NE(no_route.body.find("odo/fast"), std::string::npos) << no_route.body;
  const ClientResponse no_model = chat(R"(,"model":"odo","base_model":"no-such")");
  EXPECT_EQ(no_model.status, 404);
  EXPECT_NE(no_model.body.find("base_model: expected one of 'mamba-A'"), std::string::npos) << no_model.body;
  EXPECT_EQ(n_loads_, 1) << "what is refused loads nothing";
}

TEST_F(LobbyTest, TheOrchestratorsPortAnswersForTheModels) {
  side_port_ = 0;
  start_with_odo();
  const std::string url = server_->odo_url().value_or("");
  const auto side = static_cast<uint16_t>(std::atoi(url.substr(url.rfind(':') + 1).c_str()));
  for (const char* fields : {R"(,"model":"qwen3_5-A")", R"(,"base_model":"qwen3_5-A")"}) {
    const ClientResponse run = chat(fields, side);
    ASSERT_EQ(run.status, 200) << run.body;
    EXPECT_NE(run.body.find(R"("model":"odo")"), std::string::npos) << run.body;
    EXPECT_EQ(run.header("X-Chimere-Model"), "qwen3_5-A");
  }
  EXPECT_EQ(chat(R"(,"model":"qwen3_5-A")").body.find(R"("odo")"), std::string::npos);
}

// One place for two models, and runs of both: each holds its own until it has ended.
TEST_F(LobbyTest, ARunHoldsItsModel) {
  fs::copy_file(golden("qwen3_5-A"), folder_ / "maker" / "other.gguf");
  ShelfLimits one;
  one.count = 1;
  start_with_odo(one);
  std::vector<std::thread> clients;
  std::atomic<int> n_right = 0;
  for (int i = 0; i < 6; ++i) {
    clients.emplace_back([&, i] {
      const std::string name = i % 2 == 0 ? "qwen3_5-A" : "other";
      const ClientResponse run = chat(R"(,"model":"odo","base_model":")" + name + "\"");
      n_right += run.status == 200 && run.header("X-Chimere-Model") == name ? 1 : 0;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(n_right, 6);
  // Somebody who leaves at once: the run goes on for a moment, and its model with it.
  for (int i = 0; i < 4; ++i) {
    Client leaving(server_->port());
    const std::string body = R"({"model":"odo","base_model":")" + std::string(i % 2 == 0 ? "qwen3_5-A" : "other") +
                             R"(","messages":[{"role":"user","content":"Hello"}],"stream":true})";
    leaving.send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                 std::to_string(body.size()) + "\r\n\r\n" + body);
    leaving.read_until("data:");
    leaving.close();
  }
  EXPECT_EQ(chat(R"(,"model":"odo","base_model":"other")").status, 200);
}

// Three files, two of which fit, four clients, names by chance.
TEST_F(LobbyTest, AnswersAreThoseOfTheModelAloneWhoeverAsksForWhat) {
  const auto alone = answers_alone();
  std::vector<uint64_t> sizes;
  for (const char* name : kModels) sizes.push_back(fs::file_size(golden(name)));
  std::sort(sizes.begin(), sizes.end());
  const uint64_t largest_two = sizes[1] + sizes[2];
  n_loads_ = 0;
  start({.bytes = largest_two});
  EXPECT_EQ(count_wrong(
                alone, [](const ModelShelf::Listed& listed) { return listed.file.bytes; }, largest_two),
            0);
  EXPECT_GT(n_loads_, 3) << "models gave way to others";
}

// The same by the memory they take. A file tells less than that, which is found when it is loaded.
TEST_F(LobbyTest, ModelsShareABudgetOfMemory) {
  const auto alone = answers_alone();
  std::vector<uint64_t> taken;
  for (const char* name : kModels) {
    const auto opened = open_tiny(golden(name).string());
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_GT(opened->memory.ram, kStateBytes + fs::file_size(golden(name)) / 2) << "weights and states";
    taken.push_back(opened->memory.ram);
  }
  std::sort(taken.begin(), taken.end());
  const uint64_t largest_two = taken[1] + taken[2];
  plan_ = [](const ModelFile& file) { return ModelMemory{file.bytes, 0}; };
  n_loads_ = 0;
  start({.memory = {.ram = largest_two}});
  EXPECT_EQ(count_wrong(
                alone, [](const ModelShelf::Listed& listed) { return listed.memory.ram; }, largest_two),
            0);
  EXPECT_GT(n_loads_, 3) << "models gave way to others";
  ask(kModels[0]);
  const Json list = get("/v1/models");
  for (const Json& model : list["data"]) {
    EXPECT_EQ(model["status"].contains("ram_bytes"), model["status"]["value"] == "loaded") << model.dump();
  }
}

TEST_F(LobbyTest, TheLeastRecentlyUsedGivesWay) {
  plan_ = [](const ModelFile&) { return ModelMemory{100, 0}; };
  load_ = [](const ModelFile& file, const ModelMemory& share) {
    auto opened = open_tiny(file.path);
    if (opened) opened->memory = share;
    return opened;
  };
  start({.memory = {.ram = 200}});
  for (const char* name : {"qwen2-A", "mamba-A", "qwen2-A", "qwen3_5-A"}) EXPECT_EQ(ask(name).status, 200);
  EXPECT_EQ(state_of("mamba-A"), "unloaded");
  EXPECT_EQ(state_of("qwen2-A"), "loaded");
  EXPECT_EQ(state_of("qwen3_5-A"), "loaded");
  EXPECT_EQ(n_loads_, 3);
}

TEST_F(LobbyTest, AModelThatTakesMoreThanAllIsRefusedAndLeavesNothing) {
  plan_ = [](const ModelFile& file) { return ModelMemory{file.bytes, 0}; };
  start({.memory = {.ram = kStateBytes}});
  for (int i = 0; i < 2; ++i) {
    const ClientResponse refused = ask("qwen2-A");
    EXPECT_EQ(refused.status, 429);
    EXPECT_NE(refused.body.find("--ram"), std::string::npos) << refused.body;
  }
  EXPECT_EQ(state_of("qwen2-A"), "failed");
  EXPECT_EQ(n_loads_, 1) << "what it takes is known from the first time";
  EXPECT_EQ(get("/health")["loaded"].size(), 0u);
}

// As on a card, whose engine refuses a share that its batches do not fit into.
TEST_F(LobbyTest, WhoseShareOfTheCardIsTooSmallHasItAll) {
  plan_ = [](const ModelFile&) { return ModelMemory{0, 40}; };
  std::vector<uint64_t> shares;
  load_ = [&](const ModelFile& file, const ModelMemory& share) -> Result<ModelShelf::Opened> {
    shares.push_back(share.vram);
    if (file.name == "mamba-A" && share.vram < 90) return Error{Code::exhausted, "does not fit on the card"};
    auto opened = open_tiny(file.path);
    if (opened) opened->memory = share;
    return opened;
  };
  start({.memory = {.vram = 100}});
  for (const char* name : {"qwen2-A", "qwen3_5-A"}) EXPECT_EQ(ask(name).status, 200);
  EXPECT_EQ(get("/health")["loaded"].size(), 2u);
  EXPECT_EQ(ask("mamba-A").status, 200);
  EXPECT_EQ(get("/health")["loaded"].size(), 1u);
  EXPECT_EQ(shares, (std::vector<uint64_t>{40, 40, 40, 100}));
}

TEST_F(LobbyTest, ABrokenFileIsSaidSoAndTheOthersGoOn) {
  std::ofstream(folder_ / "broken.gguf") << "GGUF and nothing else";
  start({});
  const ClientResponse broken = ask("broken");
  EXPECT_EQ(broken.status, 500);
  EXPECT_EQ(broken.body.find(folder_.string()), std::string::npos) << broken.body;
  EXPECT_EQ(state_of("broken"), "failed");
  EXPECT_EQ(ask("qwen2-A").status, 200);
  // Removed while it is listed.
  ASSERT_EQ(get("/v1/models")["data"].size(), 4u);
  fs::remove(folder_ / "maker" / "mamba-A.gguf");
  const ClientResponse removed = ask("mamba-A");
  EXPECT_GE(removed.status, 404) << removed.body;
  EXPECT_NE(removed.body.find("mamba-A"), std::string::npos) << removed.body;
  EXPECT_EQ(ask("qwen2-A").status, 200);
}

TEST_F(LobbyTest, AFileThatComesIsServedSoon) {
  start({});
  EXPECT_EQ(ask("later").status, 404);
  fs::copy_file(golden("qwen2-A"), folder_ / "later.gguf");
  for (int i = 0; i < 600 && state_of("later") == "not listed"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(ask("later").status, 200);
}

TEST_F(LobbyTest, AModelThatNobodyUsesIsUnloaded) {
  start({.idle_unload = std::chrono::seconds(1)});
  EXPECT_EQ(ask("qwen2-A").status, 200);
  for (int i = 0; i < 600 && state_of("qwen2-A") == "loaded"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(state_of("qwen2-A"), "unloaded");
  EXPECT_EQ(ask("qwen2-A").status, 200);
  EXPECT_EQ(n_loads_, 2);
}

TEST_F(LobbyTest, ARequestOfOllamaMaySayHowLongItsModelStays) {
  start({});
  const auto chat = [&](const char* keep_alive) {
    return Client(server_->port())
        .request(
            "POST", "/api/generate",
            R"({"model":"qwen3_5-A:latest","prompt":"a","stream":false,"options":{"num_predict":2},"keep_alive":)" +
                std::string(keep_alive) + "}",
            {});
  };
  const ClientResponse stays = chat("\"5m\"");
  EXPECT_EQ(stays.status, 200) << stays.body;
  EXPECT_EQ(stays.header("X-Chimere-Ignored"), "");
  EXPECT_EQ(state_of("qwen3_5-A"), "loaded");
  EXPECT_EQ(chat("0").status, 200);
  for (int i = 0; i < 600 && state_of("qwen3_5-A") == "loaded"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(state_of("qwen3_5-A"), "unloaded");
}

TEST(KeepAlive, IsSecondsOrATimeInWords) {
  using std::chrono::seconds;
  EXPECT_EQ(keep_alive_of("300"), seconds(300));
  EXPECT_EQ(keep_alive_of("\"5m\""), seconds(300));
  EXPECT_EQ(keep_alive_of("\"1h\""), seconds(3600));
  EXPECT_EQ(keep_alive_of("\"24h\""), seconds(86400));
  EXPECT_EQ(keep_alive_of("\"90s\""), seconds(90));
  EXPECT_EQ(keep_alive_of("0"), seconds(0));
  EXPECT_EQ(keep_alive_of("-1"), seconds::max());
  EXPECT_EQ(keep_alive_of("\"-1\""), seconds::max());
  for (const char* wrong : {"", "null", "\"\"", "\"x\"", "\"5 m\"", "{}", "\"99999999999999999999h\""}) {
    EXPECT_FALSE(keep_alive_of(wrong)) << wrong;
  }
}

TEST_F(LobbyTest, ModelsAreLoadedAndUnloadedWhenToldTo) {
  start({});
  const auto tell = [&](const char* path, const char* model) {
    return Client(server_->port()).request("POST", path, R"({"model":")" + std::string(model) + "\"}", {}).status;
  };
  EXPECT_EQ(tell("/models/load", "qwen2-A"), 200);
  for (int i = 0; i < 600 && state_of("qwen2-A") != "loaded"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(state_of("qwen2-A"), "loaded");
  EXPECT_EQ(tell("/models/unload", "qwen2-A"), 200);
  for (int i = 0; i < 600 && state_of("qwen2-A") == "loaded"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(state_of("qwen2-A"), "unloaded");
  EXPECT_EQ(tell("/models/load", "no-such"), 404);
}

TEST_F(LobbyTest, AModelInUseIsUnloadedByAnAdminAlone) {
  ASSERT_TRUE(keys_.add("ann", "ann"));
  ASSERT_TRUE(keys_.add("boss", "boss", true));
  start({});
  const auto tell = [&](const char* who) {
    return Client(server_->port())
        .request("POST", "/models/unload", R"({"model":"qwen2-A"})", "x-api-key: " + std::string(who) + "\r\n")
        .status;
  };
  const std::string body = R"({"model":"qwen2-A","prompt":"x","max_tokens":190,"ignore_eos":true,"stream":true})";
  {
    // Whoever has a lease uses it, as an answer under way does.
    std::atomic<bool> is_there = false;
    auto ticket = shelf_->ask("qwen2-A", [&] { is_there = true; });
    while (!is_there) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto lease = ticket->take();
    ASSERT_TRUE(lease && *lease);
    EXPECT_EQ(tell("ann"), 409);
    EXPECT_EQ(tell("boss"), 200);
  }
  EXPECT_EQ(Client(server_->port()).request("POST", "/v1/completions", body, "x-api-key: ann\r\n").status, 200);
  int status = 409;  // until the answer's use has ended
  for (int i = 0; i < 500 && status == 409; ++i) status = tell("ann");
  EXPECT_EQ(status, 200);
}

TEST_F(LobbyTest, AModelThatCanNotFitIsRefused) {
  start({.bytes = 1000});
  const ClientResponse refused = ask("qwen2-A");
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.body.find("--models-gb"), std::string::npos) << refused.body;
}

TEST_F(LobbyTest, AClientThatLeavesWhileItWaitsLeavesNothingBehind) {
  start({.count = 1});
  for (int i = 0; i < 20; ++i) {
    Client leaves(server_->port());
    const std::string body = R"({"model":")" + std::string(kModels[i % 3]) + R"(","prompt":"a","max_tokens":50})";
    leaves.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
  }
  for (const char* name : kModels) EXPECT_EQ(ask(name).status, 200);
}

TEST(ModelFiles, PartsAreOneModelAndProjectorsAreNone) {
  const fs::path folder = fixture::scratch_folder();
  fs::create_directories(folder / "a");
  fs::create_directories(folder / "b");
  for (const char* name : {"big-00001-of-00002.gguf", "big-00002-of-00002.gguf", "mmproj-big.gguf", "notes.txt",
                           "a/same.gguf", "b/same.gguf"}) {
    std::ofstream(folder / name) << "12345";
  }
  const auto files = find_models(folder.string());
  ASSERT_TRUE(files);
  ASSERT_EQ(files->size(), 3u);
  EXPECT_EQ((*files)[0].name, "a.same");
  EXPECT_EQ((*files)[1].name, "b.same");
  EXPECT_EQ((*files)[2].name, "big");
  EXPECT_EQ((*files)[2].bytes, 10u);
  EXPECT_FALSE(find_models((folder / "none").string()));
}

TEST(ModelFiles, AFolderOfOllamaIsReadByItsManifests) {
  const fs::path folder = fixture::scratch_folder();
  const fs::path manifests = folder / "manifests" / "registry.example";
  fs::create_directories(folder / "blobs");
  fs::create_directories(manifests / "library" / "qwen3");
  fs::create_directories(manifests / "ann" / "tuned");
  std::ofstream(folder / "blobs" / "sha256-0a1b") << "12345";
  const std::string layers =
      R"({"layers":[{"mediaType":"application/vnd.ollama.image.template","digest":"sha256:ff"},)";
  const auto model = [&](const char* digest) {
    return layers + R"({"mediaType":"application/vnd.ollama.image.model","digest":")" + digest + "\"}]}";
  };
  std::ofstream(manifests / "library" / "qwen3" / "8b") << model("sha256:0a1b");
  std::ofstream(manifests / "ann" / "tuned" / "latest") << model("sha256:0a1b");
  std::ofstream(manifests / "library" / "qwen3" / "hostile") << model("sha256:../../etc");
  std::ofstream(manifests / "library" / "qwen3" / "broken") << "{";
  const auto files = find_models(folder.string());
  ASSERT_TRUE(files);
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].name, "ann/tuned:latest");
  EXPECT_EQ((*files)[1].name, "qwen3:8b");
  EXPECT_EQ((*files)[1].path, (folder / "blobs" / "sha256-0a1b").string());
  EXPECT_EQ((*files)[1].bytes, 5u);
  EXPECT_EQ(model_folder("/some/where"), "/some/where");
}

TEST(BodyField, FindsTheTextOfAKey) {
  const auto model = [](const char* body) { return top_level_text(body, "model").value_or("none"); };
  EXPECT_EQ(model(R"({"model":"a"})"), "a");
  EXPECT_EQ(model(R"({"x":{"model":"no"},"y":["model",":"],"z":"model" , "model" : "a\"b"})"), "a\"b");
  EXPECT_EQ(model(R"({"model":7})"), "none");
  for (const char* wrong : {"", "{", R"({"model)", R"({"model":)", R"({"model":"a)", R"(["model"])", R"({"a\)"}) {
    EXPECT_EQ(model(wrong), "none") << wrong;
  }
}

// Documents belong to the server: no model is loaded for them, and runs with any model look into them.
TEST_F(LobbyTest, CollectionsAreThoseOfTheServer) {
  auto opened = retrieval::Collections::open((folder_ / "collections.db").string());
  ASSERT_TRUE(opened) << opened.error().message;
  collections_ = std::move(*opened);
  start_with_odo();
  const auto post = [this](const std::string& path, const std::string& body) {
    return Client(server_->port()).request("POST", path, body, {});
  };
  EXPECT_EQ(post("/v1/collections", R"({"name":"notes"})").status, 200);
  const ClientResponse added = post("/v1/collections/notes/documents",
                                    R"({"name":"key.md","text":"The key of the shed hangs behind the clock."})");
  EXPECT_EQ(added.status, 200) << added.body;
  EXPECT_EQ(get("/v1/collections")["data"][0]["name"], "notes");
  const ClientResponse found = post("/v1/collections/notes/search", R"({"query":"key shed","mode":"words"})");
  EXPECT_NE(found.body.find("behind the clock"), std::string::npos) << found.body;
  EXPECT_EQ(post("/v1/collections/none/search", R"({"query":"key"})").status, 404);
  EXPECT_EQ(n_loads_, 0);
  for (const char* name : {"qwen3_5-A", "qwen2-A"}) {
    const ClientResponse run =
        chat(std::string(R"(,"model":"odo","odo":{"collections":["notes"]},"base_model":")") + name + "\"");
    ASSERT_EQ(run.status, 200) << run.body;
    const auto json = parse_json(run.body);
    ASSERT_TRUE(json);
    EXPECT_NE((*json)["odo"].dump().find("retrieve"), std::string::npos) << run.body;
    EXPECT_EQ(run.header("X-Chimere-Model"), name);
  }
  const std::string metrics = Client(server_->port()).request("GET", "/metrics", {}, {}).body;
  EXPECT_NE(metrics.find("chimere_collection_documents 1"), std::string::npos) << metrics;
}

// Whoever ends a request says its id, and not which model answers it.
TEST_F(LobbyTest, RequestsAreThoseOfAllModels) {
  std::atomic<bool> holds = false;
  load_ = [&](const ModelFile& file, const ModelMemory&) {
    while (holds) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return open_tiny(file.path);
  };
  start({});
  const auto cancel = [this](const std::string& id) {
    return Client(server_->port()).request("POST", "/v1/requests/" + id + "/cancel", {}, {}).status;
  };
  const auto entry_of = [this](const std::string& id) {
    const Json list = get("/v1/requests");
    for (const Json& entry : list["data"]) {
      if (entry["id"] == id) return entry;
    }
    return Json();
  };
  EXPECT_EQ(ask("qwen2-A").status, 200);
  const auto start_long = [&](const std::string& id, ClientResponse& response) {
    return std::thread([this, id, &response] {
      response = Client(server_->port())
                     .request("POST", "/v1/completions",
                              R"({"model":"qwen3_5-A","prompt":"Hello","max_tokens":180,"ignore_eos":true,"n":4})",
                              "X-Request-Id: " + id + "\r\n");
    });
  };
  // One that waits for its model.
  holds = true;
  ClientResponse waited;
  std::thread waits = start_long("waits", waited);
  while (entry_of("waits").is_null()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(entry_of("waits")["state"], "loading");
  EXPECT_EQ(entry_of("waits")["model"], "qwen3_5-A");
  EXPECT_EQ(cancel("waits"), 200);
  waits.join();
  EXPECT_EQ(waited.status, 400);
  EXPECT_NE(waited.body.find("\"code\":\"cancelled\""), std::string::npos) << waited.body;
  EXPECT_EQ(cancel("waits"), 404);
  holds = false;
  EXPECT_EQ(ask("qwen3_5-A").status, 200);
  // One that its model answers, while another model is the one that was used last.
  ClientResponse ended;
  std::thread runs = start_long("runs", ended);
  while (entry_of("runs").is_null()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(entry_of("runs")["model"], "qwen3_5-A");
  EXPECT_EQ(ask("qwen2-A").status, 200);
  EXPECT_EQ(get("/v1/status")["model"]["name"], get("/v1/status?model=qwen2-A")["model"]["name"]);
  EXPECT_EQ(cancel("runs"), 200);
  runs.join();
  EXPECT_NE(ended.body.find("cancelled"), std::string::npos) << ended.body;
  EXPECT_EQ(cancel("none"), 404);
}

TEST_F(LobbyTest, IsNotReadyWithoutFiles) {
  fs::remove_all(folder_ / "maker");
  start({});
  EXPECT_EQ(Client(server_->port()).request("GET", "/readyz", {}, {}).status, 503);
  EXPECT_EQ(Client(server_->port()).request("GET", "/livez", {}, {}).status, 200);
}

}  // namespace
}  // namespace chimere::server
