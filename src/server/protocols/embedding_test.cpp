// /v1/embeddings and /v1/rerank with an encoder beside the model that chats, and with that model alone.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "server/encoder_for_test.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

constexpr const char* kRanker = CHIMERE_TESTS_DIR "/golden/models/bert-rank/model.gguf";
constexpr const char* kRankedPairs = CHIMERE_TESTS_DIR "/golden/models/bert-rank/pairs.json";

class EmbeddingEndpoints : public testing::Test {
 protected:
  void SetUp() override {
    encoder_ = open_encoder();
    server_.embedder = &encoder_->embedder();
    server_.start();
  }

  Json embed(const std::string& fields) {
    const ClientResponse response = server_.post("/v1/embeddings", "{" + fields + "}");
    auto json = parse_json(response.body);
    EXPECT_TRUE(json) << response.status << " " << response.body;
    return json ? *json : Json();
  }
  // The message of a refused request.
  std::string refusal(const std::string& path, const std::string& body) {
    const ClientResponse response = server_.post(path, body);
    EXPECT_EQ(response.status, 400) << response.body;
    auto json = parse_json(response.body);
    return json && json->contains("error") ? (*json)["error"]["message"].get<std::string>() : response.body;
  }

  std::unique_ptr<orchestrator::EmbeddingModel> encoder_;
  ServerForTest server_;
};

std::vector<float> vector_at(const Json& answer, size_t index) {
  return answer["data"][index]["embedding"].get<std::vector<float>>();
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

TEST_F(EmbeddingEndpoints, AnswerInTheShapeOfOpenAi) {
  const Json one = embed(R"("model":"bge","input":"Hello world")");
  EXPECT_EQ(one["object"], "list");
  EXPECT_EQ(one["model"], encoder_->embedder().model_name());
  ASSERT_EQ(one["data"].size(), 1u);
  EXPECT_EQ(one["data"][0]["object"], "embedding");
  EXPECT_EQ(one["data"][0]["index"], 0);
  // "Hello world" is four pieces of this vocabulary, between [CLS] and [SEP].
  EXPECT_EQ(one["usage"]["prompt_tokens"], 6);
  EXPECT_EQ(one["usage"]["total_tokens"], 6);
  const std::vector<float> vector = vector_at(one, 0);
  ASSERT_EQ(vector.size(), 64u);
  EXPECT_NEAR(dot(vector, vector), 1.0, 1e-5);
}

TEST_F(EmbeddingEndpoints, TextsAndTheirTokensHaveTheSameVectors) {
  const std::string texts = R"(["Hello world","The quick brown fox jumps over the lazy dog."])";
  const Json as_text = embed(R"("input":)" + texts);
  ASSERT_EQ(as_text["data"].size(), 2u);
  EXPECT_EQ(as_text["data"][1]["index"], 1);
  const Json as_ids = embed(R"("input":[[2,1426,739,1216,1511,3]])");
  EXPECT_EQ(vector_at(as_ids, 0), vector_at(as_text, 0));
  EXPECT_EQ(vector_at(embed(R"("input":[2,1426,739,1216,1511,3])"), 0), vector_at(as_text, 0));
  EXPECT_EQ(vector_at(embed(R"("input":"The quick brown fox jumps over the lazy dog.")"), 0), vector_at(as_text, 1));
}

TEST_F(EmbeddingEndpoints, TextsAndIdsStandInOneList) {
  const std::vector<float> expected = vector_at(embed(R"("input":"Hello world")"), 0);
  // [CLS] and [SEP] are said by their ids, as nothing is added to a list of ids.
  EXPECT_EQ(vector_at(embed(R"("input":[2,"Hello world",3])"), 0), expected);
  const Json list = embed(R"("input":["Hello world",[2,"Hello",1216,1511,3],[2,"Hello world",3]])");
  ASSERT_EQ(list["data"].size(), 3u);
  EXPECT_EQ(vector_at(list, 0), expected);
  EXPECT_EQ(vector_at(list, 1), expected);
  EXPECT_EQ(vector_at(list, 2), expected);
  EXPECT_EQ(list["usage"]["prompt_tokens"], 18);
}

TEST_F(EmbeddingEndpoints, TextsComeInTheObjectsOfLlamaCpp) {
  const std::vector<float> expected = vector_at(embed(R"("input":"Hello world")"), 0);
  EXPECT_EQ(vector_at(embed(R"("input":{"prompt_string":"Hello world"})"), 0), expected);
  const std::string parts = R"({"content":[{"type":"text","text":"Hello "},{"type":"text","text":"world"}]})";
  EXPECT_EQ(vector_at(embed(R"("input":)" + parts), 0), expected);
  EXPECT_EQ(vector_at(embed(R"("input":["a",)" + parts + "]"), 1), expected);
  for (const char* wrong : {R"({"content":"a"})", R"({"content":[]})", R"({"content":[{"type":"image_url"}]})",
                            R"({"prompt_string":1})", R"({"prompt_string":"a","multimodal_data":["x"]})",
                            R"([2,{"prompt_string":"a"}])", R"([["a","b"]])", R"([2,[3]])"}) {
    EXPECT_NE(refusal("/v1/embeddings", R"({"input":)" + std::string(wrong) + "}").find("input"), std::string::npos)
        << wrong;
  }
}

TEST_F(EmbeddingEndpoints, Base64HoldsTheSameFloats) {
  const Json floats = embed(R"("input":"Hello world","dimensions":10)");
  const Json text = embed(R"("input":"Hello world","dimensions":10,"encoding_format":"base64")");
  const std::vector<float> expected = vector_at(floats, 0);
  ASSERT_EQ(expected.size(), 10u);
  EXPECT_NEAR(dot(expected, expected), 1.0, 1e-5);
  const std::string coded = text["data"][0]["embedding"].get<std::string>();
  ASSERT_EQ(coded.size(), 56u);  // 40 bytes
  std::string bytes;
  uint32_t bits = 0;
  int n_bits = 0;
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (const char c : coded) {
    if (c == '=') break;
    ASSERT_NE(digits.find(c), std::string::npos);
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    n_bits += 6;
    if (n_bits >= 8) bytes += static_cast<char>(bits >> (n_bits -= 8) & 255);
  }
  std::vector<float> found(10);
  ASSERT_EQ(bytes.size(), 40u);
  std::memcpy(found.data(), bytes.data(), bytes.size());
  EXPECT_EQ(found, expected);
}

TEST_F(EmbeddingEndpoints, WrongCallsAreRefusedByField) {
  const std::string path = "/v1/embeddings";
  EXPECT_NE(refusal(path, R"({})").find("input"), std::string::npos);
  EXPECT_NE(refusal(path, R"({"input":[]})").find("empty list"), std::string::npos);
  EXPECT_NE(refusal(path, R"({"input":{"a":1}})").find("input"), std::string::npos);
  EXPECT_NE(refusal(path, R"({"input":["a",5]})").find("at 1"), std::string::npos);
  EXPECT_NE(refusal(path, R"({"input":[1,true]})").find("token ids"), std::string::npos);
  EXPECT_NE(refusal(path, R"({"input":[[]]})").find("at 0"), std::string::npos);
  EXPECT_NE(refusal(path, R"({"input":[-1]})").find("at 0"), std::string::npos);
  EXPECT_NE(refusal(path, R"({"input":[99999]})").find("vocabulary"), std::string::npos);
  EXPECT_NE(refusal(path, R"({"input":"a","dimensions":65})").find("dimensions"), std::string::npos);
  EXPECT_NE(refusal(path, R"({"input":"a","encoding_format":"int8"})").find("encoding_format"), std::string::npos);
  std::string many = "[\"a\"";
  for (size_t i = 0; i < 2048; ++i) many += ",\"a\"";
  EXPECT_NE(refusal(path, R"({"input":)" + many + "]}").find("2048"), std::string::npos);
  std::string longest;
  for (int i = 0; i < 300; ++i) longest += "word ";
  EXPECT_NE(refusal(path, R"({"input":["a",")" + longest + R"("]})").find("text 1"), std::string::npos);
  const ClientResponse odd = server_.post(path, R"({"input":"a","colour":1})");
  EXPECT_EQ(odd.status, 200);
  EXPECT_EQ(odd.header("X-Chimere-Ignored"), "colour");
}

TEST_F(EmbeddingEndpoints, RerankPutsTheClosestFirst) {
  const std::string body =
      R"("query":"the lazy dog","documents":["a stone",{"text":"the lazy dog"},"many words here"])";
  const ClientResponse response = server_.post("/v1/rerank", "{" + body + R"(,"return_documents":true})");
  ASSERT_EQ(response.status, 200) << response.body;
  const Json all = *parse_json(response.body);
  ASSERT_EQ(all["results"].size(), 3u);
  EXPECT_EQ(all["results"][0]["index"], 1);
  EXPECT_NEAR(all["results"][0]["relevance_score"].get<double>(), 1.0, 1e-5);
  EXPECT_EQ(all["results"][0]["document"]["text"], "the lazy dog");
  EXPECT_GE(all["results"][1]["relevance_score"], all["results"][2]["relevance_score"]);
  EXPECT_GT(all["usage"]["total_tokens"], 0);
  const Json first = *parse_json(server_.post("/v1/rerank", "{" + body + R"(,"top_n":1})").body);
  ASSERT_EQ(first["results"].size(), 1u);
  EXPECT_EQ(first["results"][0]["index"], 1);
  EXPECT_FALSE(first["results"][0].contains("document"));
  EXPECT_NE(refusal("/v1/rerank", R"({"documents":["a"]})").find("query"), std::string::npos);
  EXPECT_NE(refusal("/v1/rerank", R"({"query":"a"})").find("documents"), std::string::npos);
  EXPECT_NE(refusal("/v1/rerank", R"({"query":"a","documents":["a",7]})").find("at 1"), std::string::npos);
  EXPECT_NE(refusal("/v1/rerank", R"({"query":"a","documents":["a"],"top_n":0})").find("top_n"), std::string::npos);
}

TEST_F(EmbeddingEndpoints, TheModelsAreListed) {
  const Json models = server_.get_json("/v1/models");
  ASSERT_EQ(models["data"].size(), 2u);
  EXPECT_EQ(models["data"][1]["id"], "fixture bert-mean");
  EXPECT_EQ(models["data"][1]["dimensions"], 64);
  EXPECT_EQ(models["data"][0]["capabilities"], Json::array({"completion", "chat"}));
  EXPECT_EQ(models["data"][1]["capabilities"], Json::array({"embedding"}));
}

// Texts to scores, against those of the model's definition for the same texts.
TEST(Rerank, UsesTheHeadOfAModelThatHasOne) {
  const auto ranker = open_encoder(kRanker);
  ServerForTest server;
  server.embedder = &ranker->embedder();
  server.start();
  std::ifstream file(kRankedPairs);
  const Json pairs = Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  ASSERT_EQ(pairs.size(), 6u);
  for (const Json& pair : pairs) {
    Json body;
    body["query"] = pair["query"];
    body["documents"] = Json::array({pair["document"]});
    const ClientResponse response = server.post("/v1/rerank", body.dump());
    ASSERT_EQ(response.status, 200) << response.body;
    const Json answer = *parse_json(response.body);
    const double expected = 1 / (1 + std::exp(-pair["score"].get<double>()));
    EXPECT_NEAR(answer["results"][0]["relevance_score"].get<double>(), expected, 1e-3) << pair["document"];
    EXPECT_EQ(answer["usage"]["prompt_tokens"], pair["ids"].size());
  }
  // The first two pairs have one query.
  Json body;
  body["query"] = pairs[0]["query"];
  body["documents"] = Json::array({pairs[1]["document"], pairs[0]["document"]});
  const Json ordered = *parse_json(server.post("/v1/rerank", body.dump()).body);
  ASSERT_EQ(ordered["results"].size(), 2u);
  EXPECT_EQ(ordered["results"][0]["index"], 1);
  const ClientResponse refused = server.post("/v1/embeddings", R"({"input":"Hello"})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("scores pairs of texts"), std::string::npos) << refused.body;
}

TEST(Embeddings, OfTheModelThatChatsWhenThereIsNoOther) {
  ServerForTest server;
  server.start();
  const ClientResponse response = server.post("/v1/embeddings", R"({"input":["Hello","Hello","x"]})");
  ASSERT_EQ(response.status, 200) << response.body;
  const Json json = *parse_json(response.body);
  EXPECT_EQ(json["model"], server.service->model_info().name);
  EXPECT_EQ(vector_at(json, 0), vector_at(json, 1));
  EXPECT_NE(vector_at(json, 0), vector_at(json, 2));
  EXPECT_EQ(vector_at(json, 0).size(), static_cast<size_t>(server.service->embedder().dimensions()));
}

// Each name has the vectors, the dimensions and the tokens of its own model.
TEST(Embeddings, OfEitherModelWhereTheBoxHasOneForThem) {
  const auto encoder = open_encoder();
  ServerForTest server;
  server.embedder = &encoder->embedder();
  server.config.chat_embeds = true;
  server.start();
  const std::string chat = server.service->model_info().name;
  const auto ask = [&](const char* path, Json body, const std::string& model) {
    if (!model.empty()) body["model"] = model;
    const ClientResponse response = server.post(path, body.dump());
    EXPECT_EQ(response.status, 200) << model << ": " << response.body;
    return *parse_json(response.body);
  };
  const auto size = static_cast<size_t>(server.service->embedder().dimensions());
  const Json by_chat = ask("/v1/embeddings", {{"input", "Hello"}}, chat);
  EXPECT_EQ(by_chat["model"], chat);
  EXPECT_EQ(vector_at(by_chat, 0).size(), size);
  for (const std::string& name : {std::string(), std::string("text-embedding-3"), encoder->embedder().model_name()}) {
    const Json answer = ask("/v1/embeddings", {{"input", "Hello"}}, name);
    EXPECT_EQ(answer["model"], encoder->embedder().model_name());
    EXPECT_EQ(vector_at(answer, 0).size(), 64u);
    EXPECT_NE(vector_at(answer, 0), vector_at(by_chat, 0));
    EXPECT_EQ(
        server.post("/v1/embeddings", Json{{"input", "Hello"}, {"model", name}, {"dimensions", 65}}.dump()).status,
        400);
  }
  EXPECT_EQ(ask("/api/embed", {{"input", "Hello"}}, chat + ":latest")["embeddings"][0].size(), size);
  EXPECT_EQ(ask("/api/embed", {{"input", "Hello"}}, "nomic-embed-text:latest")["embeddings"][0].size(), 64u);
  EXPECT_EQ(ask("/v1/rerank", {{"query", "a"}, {"documents", {"a", "b"}}}, chat)["results"].size(), 2u);
  const Json models = *parse_json(server.get("/v1/models").body);
  EXPECT_EQ(models["data"][0]["capabilities"], Json::array({"completion", "chat", "embedding"}));
  EXPECT_EQ(models["data"][1]["id"], encoder->embedder().model_name());
  const Json status = *parse_json(server.get("/v1/status").body);
  EXPECT_EQ(status["embedding_model"]["dimensions"], 64);
  EXPECT_EQ(status["memory"].back()["purpose"], "embedding model");
  EXPECT_GT(status["memory"].back()["bytes"], 100'000);
}

TEST(Embeddings, WaitBesideAnAnswerAndCanBeCancelled) {
  ServerForTest server;
  server.start();
  std::string body = R"({"input":[)";
  for (int i = 0; i < 40; ++i) body += (i ? "," : "") + std::string(R"("Hello Hello Hello Hello Hello")");
  body += "]}";
  Client client(server.port());
  {
    EngineBrake brake(*server.service);
    ASSERT_TRUE(client.send(post_text("/v1/embeddings", body, "X-Request-Id: mine\r\n")));
    Json listed;
    while (listed = server.get_json("/v1/requests"), listed["data"].size() < 1) std::this_thread::yield();
    EXPECT_EQ(server.post("/v1/requests/mine/cancel", "{}").status, 200);
  }
  EXPECT_EQ(client.read_response().status, 400);
  EXPECT_EQ(server.post("/v1/embeddings", R"({"input":"Hello"})").status, 200);
}

TEST(Embeddings, AnEncoderAloneRefusesToChat) {
  ServerForTest server;
  server.model_path = kEncoder;
  server.backend = models::BackendKind::cpu;
  server.start();
  const ClientResponse response = server.post("/v1/completions", R"({"prompt":"Hello","max_tokens":4})");
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("is an encoder"), std::string::npos) << response.body;
  EXPECT_EQ(server.post("/v1/embeddings", R"({"input":"Hello"})").status, 200);
}

}  // namespace
}  // namespace chimere::server
