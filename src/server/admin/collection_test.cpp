// Collections over HTTP: documents in, answers to questions out, and nothing of another key.
#include <gtest/gtest.h>

#include "base/scratch_for_test.h"
#include "retrieval/collections.h"
#include "server/encoder_for_test.h"
#include "server/server_for_test.h"

namespace chimere::server {
namespace {

class CollectionApi : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.config.keys.add_lines(
        key_line({"ann", sha256_hex("ann"), 0, false}) + "\n" + key_line({"bob", sha256_hex("bob"), 0, false}),
        "keys"));
    server_.config.batches = *BatchStore::open((folder_ / "batches").string());
    auto opened = retrieval::Collections::open((folder_ / "collections.db").string());
    ASSERT_TRUE(opened) << opened.error().message;
    server_.config.collections = std::move(*opened);
    encoder_ = open_encoder();
    server_.embedder = &encoder_->embedder();
    server_.start();
  }
  ClientResponse ask(const std::string& method, const std::string& path, const std::string& body = {},
                     const std::string& who = "ann", const std::string& headers = {}) const {
    return Client(server_.port()).request(method, path, body, "x-api-key: " + who + "\r\n" + headers);
  }
  Json told(const std::string& method, const std::string& path, const std::string& body = {},
            const std::string& who = "ann", int status = 200) const {
    const ClientResponse response = ask(method, path, body, who);
    EXPECT_EQ(response.status, status) << response.body;
    const auto json = parse_json(response.body);
    return json ? *json : Json();
  }
  static std::string part(const std::string& name, const std::string& file, const std::string& content) {
    return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"; filename=\"" + file + "\"\r\n\r\n" + content +
           "\r\n";
  }
  ClientResponse upload(const std::string& path, const std::string& parts, const std::string& who = "ann") const {
    return ask("POST", path, parts + "--b--\r\n", who, "Content-Type: multipart/form-data; boundary=b\r\n");
  }

  const std::filesystem::path folder_ = fixture::scratch_folder();
  std::unique_ptr<orchestrator::EmbeddingModel> encoder_;
  ServerForTest server_;
};

constexpr const char* kDocuments = "/v1/collections/notes/documents";
constexpr const char* kSearch = "/v1/collections/notes/search";

TEST_F(CollectionApi, DocumentsAreAddedFoundAndRemoved) {
  EXPECT_EQ(told("POST", "/v1/collections", R"({"name":"notes"})")["documents"], 0);
  const Json added =
      told("POST", kDocuments, R"({"name":"shed.md","text":"# Shed\n\nThe key hangs behind the clock."})");
  EXPECT_EQ(added["data"][0]["status"], "added");
  EXPECT_EQ(added["data"][0]["title"], "Shed");
  EXPECT_EQ(added["data"][0]["kind"], "markdown");
  EXPECT_EQ(told("POST", kDocuments,
                 R"({"name":"shed.md","text":"# Shed\n\nThe key hangs behind the clock."})")["data"][0]["status"],
            "unchanged");
  const ClientResponse files = upload(kDocuments, part("file", "boat.txt", "The boat is blue.") +
                                                      part("file", "table.csv", "name,age\nAnn,7\n") +
                                                      part("file", "x.bin",
                                                           std::string("\x7f"
                                                                       "ELF\0\0",
                                                                       6)));
  ASSERT_EQ(files.status, 200) << files.body;
  const Json list = (*parse_json(files.body))["data"];
  EXPECT_EQ(list[0]["status"], "added");
  EXPECT_EQ(list[1]["kind"], "csv");
  EXPECT_EQ(list[2]["status"], "refused");
  EXPECT_NE(list[2]["error"].get<std::string>().find("a program"), std::string::npos);

  for (const std::string mode : {"words", "vectors", "hybrid"}) {
    const Json found = told("POST", kSearch, R"({"query":"where is the key","k":2,"mode":")" + mode + "\"}");
    ASSERT_FALSE(found["data"].empty()) << mode;
    EXPECT_TRUE(found["trace"]["skipped"].empty()) << found.dump();
    if (mode != "words") continue;  // the model of this test has learned nothing
    EXPECT_EQ(found["data"][0]["document"], "shed.md");
    EXPECT_EQ(found["data"][0]["place"], "line 3");
    EXPECT_EQ(found["data"][0]["ranks"]["words"], 1);
  }
  EXPECT_EQ(told("GET", kDocuments)["data"].size(), 3u);
  const Json all = told("GET", "/v1/collections");
  EXPECT_EQ(all["data"][0]["name"], "notes");
  EXPECT_EQ(all["data"][0]["documents"], 3);
  EXPECT_EQ(all["used"]["documents"], 3);
  // A file in a body of its own: what is smaller of the two limits.
  EXPECT_EQ(all["limits"]["document_bytes"], server_.config.http.max_body_bytes - 4096);
  const std::string metrics = ask("GET", "/metrics").body;
  EXPECT_NE(metrics.find("chimere_collection_documents 3\n"), std::string::npos);
  EXPECT_NE(metrics.find("chimere_collection_documents_added_total 3\n"), std::string::npos);
  EXPECT_NE(metrics.find("chimere_collection_search_seconds_count 3\n"), std::string::npos);
  told("DELETE", std::string(kDocuments) + "?name=shed.md");
  EXPECT_TRUE(told("POST", kSearch, R"({"query":"key clock","mode":"words"})")["data"].empty());
  told("DELETE", "/v1/collections/notes");
  EXPECT_TRUE(told("GET", "/v1/collections")["data"].empty());
}

TEST_F(CollectionApi, AnUploadedFileIsAddedByItsId) {
  const ClientResponse file = upload("/v1/files", part("file", "story.md", "# Story\n\nOnce there was a fox.") +
                                                      "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n"
                                                      "user_data\r\n");
  ASSERT_EQ(file.status, 200) << file.body;
  const std::string id = (*parse_json(file.body))["id"];
  EXPECT_EQ(told("POST", kDocuments, R"({"file_id":")" + id + "\"}")["data"][0]["name"], "story.md");
  EXPECT_EQ(told("POST", kSearch, R"({"query":"fox","mode":"words"})")["data"][0]["document"], "story.md");
  told("POST", kDocuments, R"({"file_id":")" + id + "\"}", "bob", 404);
}

TEST_F(CollectionApi, NobodySeesAnothersDocuments) {
  told("POST", kDocuments, R"({"name":"a","text":"Ann keeps a secret."})");
  told("POST", kDocuments, R"({"name":"b","text":"Bob keeps a secret."})", "bob");
  for (const std::string mode : {"words", "vectors", "hybrid"}) {
    const Json found = told("POST", kSearch, R"({"query":"keeps a secret","mode":")" + mode + "\"}", "bob");
    ASSERT_EQ(found["data"].size(), 1u);
    EXPECT_EQ(found["data"][0]["document"], "b");
  }
  told("DELETE", std::string(kDocuments) + "?name=a", {}, "bob", 404);
  told("POST", "/v1/collections", R"({"name":"mine"})");
  told("POST", "/v1/collections/mine/search", R"({"query":"x"})", "bob", 404);
  told("GET", "/v1/collections/mine/documents", {}, "bob", 404);
  told("DELETE", "/v1/collections/mine", {}, "bob", 404);
}

TEST_F(CollectionApi, BadRequestsSayWhat) {
  const auto message = [&](const std::string& path, const std::string& body, int status = 400) {
    return told("POST", path, body, "ann", status)["error"]["message"].get<std::string>();
  };
  EXPECT_NE(message("/v1/collections", R"({"name":"a/b"})").find("name: expected 1 to 64 letters"), std::string::npos);
  EXPECT_FALSE(message("/v1/collections", "[").empty());
  EXPECT_NE(message(kDocuments, "{}").find("text: expected either text or file_id, found none"), std::string::npos);
  EXPECT_NE(message(kDocuments, R"({"text":3})").find("text"), std::string::npos);
  EXPECT_NE(message(kDocuments, R"({"file_id":"file-none"})", 404).find("file-none"), std::string::npos);
  EXPECT_NE(message(kDocuments, R"({"name":"x.pdf","text":"no pdf"})", 415).find("%PDF-"), std::string::npos);
  EXPECT_NE(message("/v1/collections/a%20b/documents", R"({"text":"x"})").find("collection: expected"),
            std::string::npos);
  told("POST", kDocuments, R"({"text":"x"})");
  EXPECT_NE(message(kSearch, "{}").find("query: expected a question"), std::string::npos);
  EXPECT_NE(message(kSearch, R"({"query":"x","mode":"magic"})").find("mode: expected"), std::string::npos);
  EXPECT_NE(message(kSearch, R"({"query":"x","k":1000})").find("k"), std::string::npos);
  told("DELETE", kDocuments, {}, "ann", 400);
  EXPECT_EQ(upload(kDocuments, part("other", "a", "b")).status, 400);
}

}  // namespace
}  // namespace chimere::server
