// web_stage_test.cpp  The web as a run sees it, by a search server and pages on loopback: what is found is told, listed and
// read, models help where they are asked to, and a PDF is a page like others.
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/platform/child_process.h"
#include "base/scratch_for_test.h"
#include "odo/odo.h"
#include "odo/own_tools.h"
#include "odo/web_answer.h"
#include "orchestrator/service_for_test.h"
#include "text/json.h"
#include "web/web_for_test.h"

namespace chimere::odo {
namespace {

using State = StepReport::State;
using web::fixture::WebForTest;

std::map<std::string, WebForTest::Body> garden() {
  return {{"beans", {"text/html", "<title>Beans</title><p>The beans of Orlo are planted on the ninth of May.</p>"}},
          {"boats", {"text/html", "<title>Boats</title><p>Boats of Orlo are painted blue, and beans are not.</p>"}}};
}

class WebStageTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = orchestrator::service_in_the_box(2048).release(); }
  static void TearDownTestSuite() {
    delete model_;
    model_ = nullptr;
  }
  void SetUp() override {
    ASSERT_TRUE(model_);
    std::ofstream(folder_ / "default.yaml") << "title: Anything\n";
    std::ofstream(folder_ / "helped.yaml") << "web: true\nexpand: true\ngrade: true\n";
    OdoConfig config;
    config.route_folders = {folder_.string()};
    Shelves shelves;
    shelves.web = web_.search.get();
    odo_ = std::make_unique<Odo>(*model_, box_, shelves, config);
  }

  // The last chunk of a run.
  ChatChunk run(const Ask& ask, const orchestrator::ChatRequest& request =
                                    orchestrator::plain_question("When are the beans of Orlo planted?", 60)) {
    const auto stream = odo_->start(ask, request, {});
    std::optional<ChatChunk> chunk;
    content_.clear();
    while (!chunk || !chunk->is_terminal()) {
      chunk = stream->poll();
      if (chunk) content_ += chunk->content;
      if (!chunk) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return *chunk;
  }
  static StepReport step_of(const ChatChunk& last, const std::string& stage) {
    for (const StepReport& step : last.run ? last.run->steps : std::vector<StepReport>()) {
      if (step.stage == stage) return step;
    }
    ADD_FAILURE() << "no step " << stage;
    return {};
  }

  static orchestrator::ChatService* model_;
  const std::filesystem::path folder_ = fixture::scratch_folder();
  WebForTest web_{garden()};
  tools::Toolbox box_;
  std::unique_ptr<Odo> odo_;
  std::string content_;
};
orchestrator::ChatService* WebStageTest::model_ = nullptr;

TEST_F(WebStageTest, PagesAreToldAndListed) {
  Ask ask;
  ask.model = "odo/default";
  ask.web = true;
  const ChatChunk last = run(ask);
  const StepReport step = step_of(last, "web");
  EXPECT_EQ(step.state, State::done) << step.about;
  EXPECT_EQ(step.tokens, 0) << "no model is asked unless somebody says so";
  const auto detail = parse_json(step.detail);
  ASSERT_TRUE(detail) << step.detail;
  EXPECT_EQ((*detail)["is_untrusted"], true);
  EXPECT_EQ((*detail)["sources"][0]["url"], web_.site.url("/beans"));
  EXPECT_NE(content_.find("ninth of May"), std::string::npos) << content_;
  std::vector<std::string> stages;
  for (const Json& stage : (*detail)["stages"]) stages.push_back(stage["stage"]);
  EXPECT_EQ(stages, (std::vector<std::string>{"expand", "search", "fuse", "fetch", "chunk", "rerank", "grade"}));
  EXPECT_EQ(web_.queries().size(), 1u);
}

TEST_F(WebStageTest, AModelHelpsWhereTheRouteSaysSo) {
  Ask ask;
  ask.model = "odo/helped";
  const StepReport step = step_of(run(ask), "web");
  EXPECT_EQ(step.state, State::done) << step.about;
  EXPECT_GT(step.tokens, 0);
  const auto detail = parse_json(step.detail);
  ASSERT_TRUE(detail) << step.detail;
  // What a small model writes and says is its own affair: that it was asked is seen, and that its queries are.
  EXPECT_EQ((*detail)["stages"][0]["n"], web_.queries().size()) << step.detail;
}

TEST_F(WebStageTest, TheRequestsWordIsBeforeTheRoutes) {
  Ask ask;
  ask.model = "odo/helped";
  ask.effort.expand = false;
  ask.effort.grade = false;
  EXPECT_EQ(step_of(run(ask), "web").tokens, 0);
}

// Numbers of a tool's sources go on behind those of what was looked up before.
TEST_F(WebStageTest, SourcesOfToolsAreNumbered) {
  ASSERT_TRUE(box_.add(make_web_search(*web_.search)));
  std::ofstream(folder_ / "finder.yaml") << "web: true\ntools: [web_search]\n";
  odo_.reset();
  OdoConfig config;
  config.route_folders = {folder_.string()};
  config.loop.rounds = 1;
  Shelves shelves;
  shelves.web = web_.search.get();
  odo_ = std::make_unique<Odo>(*model_, box_, shelves, config);
  Ask ask;
  ask.model = "odo/finder";
  orchestrator::ChatRequest request = orchestrator::plain_question("When are the beans of Orlo planted?", 80);
  request.tool_choice = orchestrator::ToolChoice::required;
  const ChatChunk last = run(ask, request);
  const auto looked_up = parse_json(step_of(last, "web").detail);
  const auto called = parse_json(step_of(last, "tool").detail);
  ASSERT_TRUE(looked_up && called);
  EXPECT_EQ((*looked_up)["sources"].back()["n"], 2);
  EXPECT_EQ((*called)["detail"]["sources"][0]["n"], 3) << *called;
  EXPECT_EQ((*called)["result"].get<std::string>().find("[3] "), 0u);
}

// The scorer reads the passages again, for runs, for the tool and for /v1/search alike.
TEST_F(WebStageTest, ACrossEncoderDecidesWhereThereIsOne) {
  const retrieval::PairScorer scorer = [](const std::string&, std::span<const std::string> texts, auto) {
    std::vector<float> scores;
    for (const std::string& text : texts) scores.push_back(text.find("blue") != std::string::npos ? 2.0f : 1.0f);
    return Result<std::vector<float>>{std::move(scores)};
  };
  tools::ToolContext context;
  const auto first_of = [&](const retrieval::PairScorer& by) {
    const auto result = make_web_search(*web_.search, by)->run(R"({"query": "beans of Orlo planted May"})", context);
    return result.text.substr(0, result.text.find('\n'));
  };
  EXPECT_EQ(first_of({}), "[1] Beans");
  EXPECT_EQ(first_of(scorer), "[1] Boats");
}

TEST_F(WebStageTest, AnAnswerIsMadeOfWhatWasFound) {
  SearchHelp help;
  help.model = model_;
  WebAsk ask;
  ask.query = "When are the beans of Orlo planted?";
  ask.synthesizes = true;
  const web::WebContext context{std::chrono::steady_clock::now() + orchestrator::kLong, {}};
  const auto body = web_answer(*web_.search, ask, help, context);
  ASSERT_TRUE(body) << body.error().message;
  const auto json = parse_json(*body);
  ASSERT_TRUE(json);
  EXPECT_NE((*json)["synthesis"].get<std::string>().find("ninth of May"), std::string::npos) << *body;
  EXPECT_EQ((*json)["passages"][0]["url"], web_.site.url("/beans"));
  EXPECT_EQ((*json)["passages"][0]["n"], 1);
  EXPECT_EQ((*json)["steps"].back()["stage"], "synthesise");
  // An answer that fails leaves the sources.
  WebForTest nothing({});
  const auto empty = parse_json(*web_answer(*nothing.search, ask, help, context));
  ASSERT_TRUE(empty);
  EXPECT_EQ((*empty)["synthesis"], "");
  EXPECT_EQ((*empty)["steps"].back()["note"], "left out: there is nothing to make an answer of");
}

TEST_F(WebStageTest, QueriesAreLines) {
  EXPECT_EQ(queries_in("1. beans of Orlo\n2) \"when to plant\"\n\n- May beans\nmore", 3),
            (std::vector<std::string>{"beans of Orlo", "when to plant", "May beans"}));
  EXPECT_EQ(queries_in("2024 harvest", 3), std::vector<std::string>{"2024 harvest"});
  EXPECT_TRUE(queries_in("\n - \n" + std::string(300, 'x'), 3).empty());
}

// One page of one line.
std::string small_pdf(const std::string& line) {
  const std::string stream = "BT /F1 12 Tf 20 100 Td (" + line + ") Tj ET";
  const std::vector<std::string> objects = {
      "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
      "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
      "<</Length " + std::to_string(stream.size()) + ">>\nstream\n" + stream + "\nendstream",
      "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"};
  std::string pdf = "%PDF-1.4\n";
  for (size_t i = 0; i < objects.size(); ++i) {
    pdf += std::to_string(i + 1) + " 0 obj\n" + objects[i] + "\nendobj\n";
  }
  return pdf + "trailer<</Size 6/Root 1 0 R>>\n%%EOF\n";  // without a table, as many are: poppler rebuilds it
}

TEST_F(WebStageTest, APdfIsAPage) {
  if (find_program("pdftotext").empty()) GTEST_SKIP() << "pdftotext is not installed";
  web::PageFetcher::Options options;
  options.pdf_text = pdf_page_text;
  WebForTest web({{"paper.pdf", {"application/pdf", small_pdf("The beans of Orlo are red.")}}}, options);
  const auto page = web.pages->fetch(web.site.url("/paper.pdf"), {});
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_NE((*page)->text.as_data().find("beans of Orlo are red"), std::string::npos);
  web::WebContext left;
  left.is_cancelled = [] { return true; };
  EXPECT_FALSE(pdf_page_text(small_pdf("x"), left));
}

}  // namespace
}  // namespace chimere::odo
