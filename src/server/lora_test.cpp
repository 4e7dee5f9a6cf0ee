// The field `lora` and /v1/lora: adapters named, loaded, unloaded, refused.
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

TEST_F(Lora, IsLoadedNamedByRequestsAndUnloaded) {
  const std::string plain = answer("");
  EXPECT_EQ(server_.post("/v1/lora", R"({"name":"tone1"})").status, 200);
  EXPECT_EQ(server_.post("/v1/lora", R"({"name":"tone2","scale":0.5})").status, 200);
  const Json list = server_.get_json("/v1/lora");
  ASSERT_EQ(list["data"].size(), 2u);
  EXPECT_EQ(list["data"][0]["name"], "tone1");
  EXPECT_EQ(list["data"][1]["scale"], 0.5);
  EXPECT_EQ(list["data"][1]["file"], "tone2.gguf");

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

}  // namespace
}  // namespace chimere::server
