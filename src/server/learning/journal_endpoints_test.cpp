// What is kept of answers and what people say of them, over HTTP: only of those who agreed, and never another's.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/scratch_for_test.h"
#include "server/learning/export_forms.h"
#include "server/server_for_test.h"
#include "store/journal.h"

namespace chimere::server {
namespace {

class JournalEndpoints : public testing::Test {
 protected:
  void start(std::optional<store::Journal::Consent> consent) {
    if (consent) {
      auto journal = store::Journal::open((folder_ / "journal.db").string(), *consent);
      ASSERT_TRUE(journal) << journal.error().message;
      server_.config.journal = *journal;
    }
    server_.start();
  }
  Json call(const char* method, const std::string& path, const std::string& body = {}, int status = 200) {
    const ClientResponse response = Client(server_.port()).request(method, path, body);
    EXPECT_EQ(response.status, status) << method << " " << path << " " << response.body;
    auto json = parse_json(response.body);
    return json ? *json : Json();
  }
  // The id in the body.
  std::string ask(const std::string& user, const std::string& request_id, const std::string& more = {}) {
    const ClientResponse response = server_.post(
        "/v1/chat/completions", chat_body(R"("temperature":0,"max_tokens":4,"user":")" + user + '"' + more),
        "X-Request-Id: " + request_id + "\r\n");
    EXPECT_EQ(response.status, 200) << response.body;
    return (*parse_json(response.body))["id"].get<std::string>();
  }

  const std::filesystem::path folder_ = fixture::scratch_folder();
  ServerForTest server_;
};

TEST_F(JournalEndpoints, AnswersOfThoseWhoAgreedAreKeptUntilTheyAreErased) {
  start(store::Journal::Consent::ask);
  ask("ann", "before");
  EXPECT_TRUE(call("GET", "/v1/learning?user=ann")["agreed"].is_null());
  call("POST", "/v1/feedback", R"({"user":"ann","request_id":"before","thumb":"up"})", 409);
  const Json agreed = call("PUT", "/v1/learning", R"({"user":"ann","agreed":true})");
  EXPECT_EQ(agreed["agreed"], true);
  EXPECT_EQ(agreed["answers"], 1);  // the one before, which was held until it was known
  EXPECT_EQ(call("DELETE", "/v1/learning/answers/before?user=ann")["answers"], 1);

  const std::string id = ask("ann", "first");
  ask("ann", "private", R"(,"store":false)");
  ask("ann", "second");
  ask("bob", "other");
  const Json list = call("GET", "/v1/learning/answers?user=ann");
  ASSERT_EQ(list["data"].size(), 2u) << list.dump();
  EXPECT_EQ(list["data"][0]["request_id"], "second");
  EXPECT_EQ(list["data"][1]["answer_id"], id);
  EXPECT_EQ(list["data"][1]["messages"][0]["content"], "Hello");
  EXPECT_EQ(call("GET", "/v1/learning?user=bob")["answers"], 0);

  EXPECT_EQ(call("POST", "/v1/feedback", R"({"user":"ann","id":")" + id + R"(","thumb":"up"})")["rating"], 5);
  EXPECT_EQ(call("POST", "/v1/feedback", R"({"user":"ann","request_id":"first","rating":3})")["rating"], 3);
  call("POST", "/v1/feedback", R"({"user":"ann","request_id":"first","correction":"Hello to you"})");
  call("POST", "/v1/feedback", R"({"user":"ann","request_id":"first","sign":"copied"})");
  const Json one = call("GET", "/v1/learning/answers/first?user=ann");
  EXPECT_EQ(one["feedback"].size(), 4u);
  EXPECT_EQ(one["rating"], 2);
  call("GET", "/v1/learning/answers/first?user=bob", {}, 404);
  call("DELETE", "/v1/learning/answers/first?user=bob", {}, 404);

  EXPECT_EQ(call("DELETE", "/v1/learning/answers/second?user=ann")["answers"], 1);
  EXPECT_EQ(
      call("DELETE", "/v1/learning/conversations/" + one["conversation"].get<std::string>() + "?user=ann")["answers"],
      1);
  EXPECT_EQ(call("DELETE", "/v1/learning?user=ann")["answers"], 0);
  const std::string metrics = server_.get("/metrics").body;
  EXPECT_NE(metrics.find("chimere_journal_answers_total{result=\"kept\"} 3"), std::string::npos);
  EXPECT_NE(metrics.find("chimere_feedback_total{kind=\"up\"} 1"), std::string::npos);
}

TEST_F(JournalEndpoints, AnswersOfAllWhoDidNotRefuseAreKeptWhereItIsOn) {
  start(store::Journal::Consent::given);
  call("PUT", "/v1/learning", R"({"user":"bob","agreed":false})");
  ask("ann", "a");
  ask("bob", "b");
  EXPECT_EQ(call("GET", "/v1/learning?user=ann")["answers"], 1);
  EXPECT_EQ(call("GET", "/v1/learning?user=bob")["answers"], 0);
}

TEST_F(JournalEndpoints, EveryProtocolOfChatIsKept) {
  start(store::Journal::Consent::given);
  const std::string messages = R"("messages":[{"role":"user","content":"Hello"}])";
  EXPECT_EQ(server_.post("/v1/messages", "{" + messages + R"(,"max_tokens":4,"model":"m"})").status, 200);
  EXPECT_EQ(server_.post("/v1/responses", R"({"input":"Hello","max_output_tokens":4})").status, 200);
  EXPECT_EQ(server_.post("/v1/responses", R"({"input":"Hello","max_output_tokens":4,"store":false})").status, 200);
  EXPECT_EQ(
      server_.post("/api/chat", "{" + messages + R"(,"stream":false,"options":{"num_predict":4},"model":"m"})").status,
      200);
  EXPECT_EQ(call("GET", "/v1/learning")["answers"], 3);
}

TEST_F(JournalEndpoints, WrongCallsAreRefused) {
  start(store::Journal::Consent::given);
  ask("", "a");
  for (const char* body : {R"({"thumb":"up"})", R"({"request_id":"a"})", R"({"request_id":"a","thumb":"sideways"})",
                           R"({"request_id":"a","thumb":"up","rating":3})", R"({"request_id":"a","rating":6})",
                           R"({"request_id":"a","rating":"good"})", R"({"request_id":"a","correction":""})",
                           R"({"request_id":"a","sign":"printed"})", R"([])", "{"}) {
    call("POST", "/v1/feedback", body, 400);
  }
  call("POST", "/v1/feedback", R"({"request_id":"nobody","thumb":"up"})", 404);
  call("PUT", "/v1/learning", R"({})", 400);
  call("PUT", "/v1/learning", R"({"agreed":"yes"})", 400);
  for (const char* query : {"limit=0", "limit=1001", "limit=x", "before=-1", "before=1x"}) {
    call("GET", std::string("/v1/learning/answers?") + query, {}, 400);
  }
}

TEST_F(JournalEndpoints, WhereLearningIsOffNothingIsKeptAndThatIsSaid) {
  start(std::nullopt);
  ask("ann", "a");
  EXPECT_EQ(call("GET", "/v1/learning")["mode"], "off");
  EXPECT_NE(call("POST", "/v1/feedback", R"({"request_id":"a","thumb":"up"})", 403)["error"]["message"]
                .get<std::string>()
                .find("--learn off"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST(ExportForms, AreLinesThatOtherProgramsRead) {
  store::KeptAnswer kept;
  kept.created = 7;
  kept.messages = R"([{"role":"system","content":"s"},{"role":"user","content":"What is 2+2?"}])";
  kept.artefacts = kept.foreign = kept.tool_calls = "[]";
  kept.answer = "5";
  EXPECT_FALSE(export_line(kept, ExportForm::quality_scores));
  EXPECT_FALSE(export_line(kept, ExportForm::spin_pairs));
  const Json pair = *parse_json(*export_line(kept, ExportForm::training_pairs));
  EXPECT_EQ(pair["prompt"], "What is 2+2?");
  EXPECT_EQ(pair["prompt_hash"].get<std::string>().size(), 16u);
  kept.feedback = {{"down", 8, 0, ""}, {"correction", 9, 0, "4"}};
  EXPECT_EQ((*parse_json(*export_line(kept, ExportForm::quality_scores)))["score"], 2);
  const Json spin = *parse_json(*export_line(kept, ExportForm::spin_pairs));
  EXPECT_EQ(spin["chosen"], "4");
  EXPECT_EQ(spin["rejected"], "5");
  EXPECT_EQ((*parse_json(*export_line(kept, ExportForm::journal)))["rating"], 2);
}

}  // namespace
}  // namespace chimere::server
