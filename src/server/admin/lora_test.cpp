// The field `lora` and /v1/lora: adapters named, loaded, unloaded, refused.
#include <fstream>
#include <iterator>
#include <limits>

#include "models/adapter_for_test.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

class Lora : public testing::Test {
 protected:
  void SetUp() override {
    scratch_ = fixture::scratch_folder();
    for (const int seed : {1, 2}) {
      fixture::write_adapter(fixture::kept("qwen3_5-A"), seed, scratch_ / ("tone" + std::to_string(seed) + ".gguf"));
    }
    server_.config.lora_folder = scratch_.string();
    server_.start();
  }
  void TearDown() override {
    server_.stop();
    std::filesystem::remove_all(scratch_);
  }

  // What the model says to a fixed question, greedily.
  std::string answer(const std::string& fields) {
    const ClientResponse response =
        server_.post("/v1/chat/completions", chat_body(R"("temperature":0,"max_tokens":12)" + fields));
    EXPECT_EQ(response.status, 200) << response.body;
    const auto json = parse_json(response.body);
    return json ? to_text((*json)["choices"][0]["message"]) : "";
  }
  ClientResponse ask(const std::string& fields) {
    return server_.post("/v1/chat/completions", chat_body(R"("max_tokens":1)" + fields));
  }

  std::filesystem::path scratch_;
  ServerForTest server_;
};

TEST_F(Lora, TheJudgeOfAnswersIsListedAsOne) {
  std::filesystem::copy_file(scratch_ / "tone1.gguf", scratch_ / "prm.gguf");
  ASSERT_EQ(server_.post("/v1/lora", R"({"name":"prm"})").status, 200);
  EXPECT_EQ(server_.get_json("/v1/lora")["data"][0]["use"], "judge");
}

TEST_F(Lora, IsLoadedNamedByRequestsAndUnloaded) {
  const std::string plain = answer("");
  EXPECT_EQ(server_.post("/v1/lora", R"({"name":"tone1"})").status, 200);
  EXPECT_EQ(server_.post("/v1/lora", R"({"name":"tone2","scale":0.5})").status, 200);
  const Json list = server_.get_json("/v1/lora");
  ASSERT_EQ(list["data"].size(), 2u);
  EXPECT_EQ(list["data"][0]["name"], "tone1");
  EXPECT_EQ(list["data"][1]["scale"], 0.5);
  EXPECT_EQ(list["data"][1]["file"], "tone2.gguf");
  EXPECT_EQ(list["data"][1]["use"], "answer");

  const std::string first = answer(R"(,"lora":"tone1")");
  EXPECT_NE(first, plain);
  EXPECT_EQ(answer(R"(,"lora":[{"name":"tone1","scale":1}])"), first);
  EXPECT_EQ(answer(R"(,"lora":[{"name":"tone1","scale":0}])"), plain);
  EXPECT_NE(answer(R"(,"lora":["tone1","tone2"])"), plain);
  EXPECT_EQ(answer(R"(,"lora":"tone1")"), first);
  EXPECT_EQ(answer(""), plain);

  EXPECT_EQ(Client(server_.port()).request("DELETE", "/v1/lora/tone1", {}, {}).status, 200);
  EXPECT_EQ(Client(server_.port()).request("DELETE", "/v1/lora/tone1", {}, {}).status, 404);
  const ClientResponse gone = ask(R"(,"lora":"tone1")");
  EXPECT_EQ(gone.status, 400);
  EXPECT_NE(gone.body.find("tone2"), std::string::npos) << "says what there is: " << gone.body;
}

TEST_F(Lora, RefusesPathsUnknownNamesAndWrongFields) {
  for (const char* body : {R"({"name":"../tone1"})", R"({"name":""})", R"({"name":"tone1","path":"/etc/passwd"})",
                           R"({"name":"tone1","scale":1e9})", R"({"name":7})"}) {
    EXPECT_EQ(server_.post("/v1/lora", body).status, 400) << body;
  }
  EXPECT_GE(server_.post("/v1/lora", R"({"name":"none"})").status, 400);
  for (const char* fields :
       {R"(,"lora":7)", R"(,"lora":"")", R"(,"lora":[{"scale":1}])", R"(,"lora":{"name":"x","scale":"y"})",
        R"(,"lora":["a","a","a","a","a","a","a","a","a"])"}) {
    EXPECT_EQ(ask(fields).status, 400) << fields;
  }
  EXPECT_EQ(server_.get_json("/v1/lora")["data"].size(), 0u);
}

TEST_F(Lora, SaysWhatIsWrongWithAFileAndNotWhereItIs) {
  std::string bytes;
  {
    std::ifstream file(scratch_ / "tone1.gguf", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::ofstream(scratch_ / "short.gguf", std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  std::ofstream(scratch_ / "other.gguf", std::ios::binary) << "not a model at all";
  std::ofstream(scratch_ / "empty.gguf", std::ios::binary) << "";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  bytes.replace(bytes.size() - sizeof nan, sizeof nan, reinterpret_cast<const char*>(&nan), sizeof nan);
  std::ofstream(scratch_ / "nan.gguf", std::ios::binary) << bytes;
  for (const char* name : {"short", "other", "empty", "nan", "none"}) {
    const ClientResponse response = server_.post("/v1/lora", R"({"name":")" + std::string(name) + "\"}");
    EXPECT_EQ(response.status, std::string(name) == "none" ? 404 : 400) << response.body;
    EXPECT_EQ(response.body.find(scratch_.string()), std::string::npos) << response.body;
    EXPECT_NE(response.body.find(name), std::string::npos) << response.body;
  }
  const ClientResponse no_number = server_.post("/v1/lora", R"({"name":"nan"})");
  EXPECT_NE(no_number.body.find("expected finite numbers, found nan"), std::string::npos) << no_number.body;
  EXPECT_EQ(ask("").status, 200);
}

TEST(LoraOfKeys, IsUnloadedByTheKeyThatLoadedItAlone) {
  const std::filesystem::path scratch = fixture::scratch_folder();
  fixture::write_adapter(fixture::kept("qwen3_5-A"), 1, scratch / "tone.gguf");
  ServerForTest server;
  server.config.lora_folder = scratch.string();
  for (const char* name : {"ann", "bob"}) ASSERT_TRUE(server.config.keys.add(name, std::string(name) + "-secret-key"));
  server.start();
  ASSERT_TRUE(server.service->adapters().load("fixed", (scratch / "tone.gguf").string(), 1));
  const std::string ann = "Authorization: Bearer ann-secret-key\r\n", bob = "Authorization: Bearer bob-secret-key\r\n";
  const auto unload = [&](const std::string& name, const std::string& key) {
    return Client(server.port()).request("DELETE", "/v1/lora/" + name, {}, key).status;
  };
  EXPECT_EQ(server.post("/v1/lora", R"({"name":"tone"})", ann).status, 200);
  EXPECT_EQ(unload("tone", bob), 403);
  EXPECT_EQ(server.post("/v1/lora", R"({"name":"tone"})", bob).status, 400) << "nor does it replace it";
  EXPECT_EQ(unload("fixed", ann), 403);
  EXPECT_EQ(unload("tone", ann), 200);
  EXPECT_EQ(unload("tone", ann), 404);
  server.stop();
  std::filesystem::remove_all(scratch);
}

}  // namespace
}  // namespace chimere::server
