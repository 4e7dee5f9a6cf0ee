// effort_test.cpp  What is done beside asking the model once: equations, judge, search, gate and examples, with the model in
// the box.
#include "odo/effort.h"

#include <gtest/gtest.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/scratch_for_test.h"
#include "odo/equations.h"
#include "odo/few_shot.h"
#include "odo/gate.h"
#include "odo/odo.h"
#include "odo/word_chances.h"
#include "orchestrator/constraints.h"
#include "orchestrator/service_for_test.h"
#include "text/json.h"
#include "tools/calculator.h"

namespace chimere::odo {
namespace {

using orchestrator::ChatRequest;

constexpr const char* kProblem =
    "Theo has 64 marbles. He wins 27 marbles. He loses 38 marbles. How many marbles does Theo have now?";

TEST(Equations, AreComputedAgain) {
  const auto found =
      equations_in("I go on. 45 + 23 = 68. After that 68 - 12 = 57. So, 3 × 4 = 12 and 7 x 6 = 42. (2 + 3) * 4 = 20");
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0].text, "45 + 23 = 68");
  EXPECT_TRUE(found[0].holds);
  EXPECT_EQ(found[1].text, "68 - 12 = 57");
  EXPECT_FALSE(found[1].holds);
  EXPECT_TRUE(found[2].holds);
  EXPECT_TRUE(found[3].holds);
  EXPECT_TRUE(found[4].holds);
  EXPECT_TRUE(equations_in("1,200 + 34 = 1,234")[0].holds);
}

TEST(Equations, WhatMayBeMeantOtherwiseIsLeftOut) {
  for (const char* text :
       {"x + 2 = 5", "f(2) + 1 = 7", "10 / 3 = 3.33", "2 + 3 = 5 + 1", "a = 4", "5 = 5", "n2 + 1 = 3", "2 + 2 =", "= 4",
        "x - 12 = 3", "1 + 1 = 2x", "====", "width=100", "2 + 2 = four"}) {
    EXPECT_TRUE(equations_in(text).empty()) << text;
  }
  std::string many;
  for (int i = 0; i < 200; ++i) many += "1 + 1 = 2. ";
  EXPECT_EQ(equations_in(many).size(), 64u);
}

TEST(Equations, AWrongResultIsMended) {
  EXPECT_EQ(with_right_results(" Then 76 + 204 = 360. So 2 * 3 = 7 is"), " Then 76 + 204 = 280. So 2 * 3 = 6 is");
  EXPECT_EQ(with_right_results("1,200 - 1,400 = 200."), "1,200 - 1,400 = -200.");
  for (const char* whole : {"", "68 - 12 = 56.", "no sum", "10 / 3 = 4", "x + 2 = 5", "2 + 2 = 5 + 1"}) {
    EXPECT_EQ(with_right_results(whole), whole);
  }
}

TEST(Judge, AFailedCheckIsNothingAndOneThatHoldsLifts) {
  const Judge judge({});
  Judged judged;
  judged.text = "68 - 12 = 57.";
  EXPECT_EQ(judge.judge(judged).score, 0);
  EXPECT_TRUE(judge.judge(judged).is_proven_wrong);
  EXPECT_EQ(judge.judge(judged).stars(), 1);
  judged.text = "It is 57.";
  judged.logprob = std::log(0.5);
  EXPECT_NEAR(judge.judge(judged).score, 0.5, 1e-9);
  EXPECT_STREQ(judge.judge(judged).by, "confidence");
  EXPECT_EQ(judge.judge(judged).stars(), 3);
  judged.text = "68 - 12 = 56.";
  EXPECT_NEAR(judge.judge(judged).score, 0.75, 1e-9);
  EXPECT_STREQ(judge.judge(judged).by, "check");
  judged.is_cut = true;
  EXPECT_NEAR(judge.judge(judged).score, 0.375, 1e-9);
}

TEST(Judge, NumbersFromNowhereAndThoseThatAreLeftOutLowerIt) {
  const Judge judge({});
  Judged judged;
  judged.question = "Theo has 312 marbles. He wins 127 and loses 44.";
  judged.before = "312 + 127 = 439.";
  judged.text = " 429 - 44 = 385.";
  EXPECT_NEAR(judge.judge(judged).score, 0.5, 1e-9);
  EXPECT_EQ(judge.judge(judged).why, "429 comes from nowhere");
  judged.text = " 439 - 44 = 395.";
  EXPECT_NEAR(judge.judge(judged).score, 1, 1e-9);
  judged.before.clear();
  judged.text = "312 + 127 = 439. So it is 439.";
  EXPECT_NEAR(judge.judge(judged).score, 1, 1e-9) << "a step need not use all";
  const orchestrator::AnswerForm any;
  judged.form = &any;
  EXPECT_NEAR(judge.judge(judged).score, 0.5, 1e-9);
  EXPECT_EQ(judge.judge(judged).why, "44 is not used");
  judged.before = "312 + 127 = 439. 439 - 44 = 395.";
  judged.text = "395 marbles.";
  EXPECT_NEAR(judge.judge(judged).score, 1, 1e-9);
}

TEST(Judge, TheFormIsChecked) {
  orchestrator::AnswerForm form;
  form.json_schema =
      R"({"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false})";
  const auto fits = [&](const char* text) {
    const auto result = orchestrator::fits_form(form, text);
    EXPECT_TRUE(result);
    return result && *result;
  };
  EXPECT_TRUE(fits(R"({"n":7})"));
  EXPECT_FALSE(fits(R"({"n":"7"})"));
  EXPECT_FALSE(fits(R"({"n":7)"));
  Judged judged;
  judged.form = &form;
  judged.text = "seven";
  EXPECT_TRUE(Judge({}).judge(judged).is_proven_wrong);
  judged.text = R"({"n":7})";
  EXPECT_STREQ(Judge({}).judge(judged).by, "check");
}

// Fails for a program that says so.
class FakeRunner : public tools::Tool {
 public:
  FakeRunner() {
    spec_.name = "run_code";
    spec_.parameters = R"({"type":"object","properties":{"code":{"type":"string"}},"required":["code"]})";
  }
  const tools::ToolSpec& spec() const override { return spec_; }
  tools::ToolResult run(const std::string& arguments, const tools::ToolContext&) override {
    ++n_runs;
    return {"exit 1", arguments.find("raise") != std::string::npos, true, ""};
  }
  int n_runs = 0;

 private:
  tools::ToolSpec spec_;
};

TEST(Judge, ProgramsRunOnlyWhereTheyMay) {
  EXPECT_EQ(program_in("Here:\n```python\nprint(1)\n```\n"), "print(1)\n");
  EXPECT_EQ(program_in("```python\nprint(1)"), "");
  tools::Toolbox box;
  const auto runner = std::make_shared<FakeRunner>();
  ASSERT_TRUE(box.add(runner, tools::Policy::ask));
  JudgeParts parts;
  parts.box = &box;
  parts.runs_code = true;
  parts.context.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  Judged judged;
  judged.text = "```python\nraise 1\n```";
  EXPECT_FALSE(Judge(parts).judge(judged).is_proven_wrong);
  EXPECT_EQ(runner->n_runs, 0) << "its policy is ask";
  ASSERT_TRUE(box.set_policy("run_code", tools::Policy::allow));
  EXPECT_TRUE(Judge(parts).judge(judged).is_proven_wrong);
  judged.text = "```python\nprint(1)\n```";
  EXPECT_STREQ(Judge(parts).judge(judged).by, "check");
  EXPECT_EQ(runner->n_runs, 2);
  parts.runs_code = false;
  Judge(parts).judge(judged);
  EXPECT_EQ(runner->n_runs, 2);
}

TEST(Search, KeysOfAnswers) {
  EXPECT_EQ(answer_key("There are 56 bulbs."), "56");
  EXPECT_EQ(answer_key("**1,234**"), "1234");
  EXPECT_EQ(answer_key("-7"), "-7");
  EXPECT_EQ(answer_key("It is 3.5 m."), "3.5");
  EXPECT_EQ(answer_key("Paris!"), answer_key("paris"));
  EXPECT_EQ(answer_key(""), "");
  EXPECT_EQ(search_kind("dvts"), SearchKind::dvts);
  EXPECT_FALSE(search_kind("DVTS"));
}

TEST(Efforts, TheCallersWordCounts) {
  Effort own, route;
  own.search = SearchKind::none;
  route.search = SearchKind::dvts;
  route.branches = 3;
  const Effort all = own.over(route);
  EXPECT_EQ(all.search_rule().kind, SearchKind::none);
  EXPECT_EQ(all.search_rule().branches, 3);
  EXPECT_EQ(all.search_rule().width, SearchRule().width);
}

class EffortTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    chat_ = orchestrator::service_in_the_box(2048).release();
    ASSERT_TRUE(chat_);
  }
  static void TearDownTestSuite() {
    delete chat_;
    chat_ = nullptr;
  }
  void SetUp() override {
    ASSERT_TRUE(box_.add(tools::make_calculator()));
    std::ofstream(folder_ / "default.yaml") << "title: Default\n";
    std::ofstream(folder_ / "tree.yaml") << "search: {kind: dvts, branches: 2, width: 2, tokens: 600}\n";
    auto journal = store::Journal::open((folder_ / "journal.db").string(), store::Journal::Consent::ask);
    ASSERT_TRUE(journal);
    journal_ = *journal;
    OdoConfig config;
    config.route_folders = {folder_.string()};
    config.journal = journal_;
    odo_ = std::make_unique<Odo>(*chat_, box_, Shelves(), config);
  }

  static ChatRequest thinking(const std::string& text) {
    ChatRequest request = orchestrator::plain_question(text, 300);
    request.sampling.temperature = 0.8f;
    request.enable_thinking.reset();
    request.given = {"max_tokens"};
    request.seed = 3;
    return request;
  }
  static Ask asked(const std::string& model) {
    Ask ask;
    ask.model = model;
    ask.tools.emplace();
    return ask;
  }
  struct Whole {
    std::string content, reasoning;
    ChatChunk last;
    int n_told = 0;  // pieces that told of a running search

    const StepReport* step(const std::string& stage) const {
      if (!last.run) return nullptr;
      for (const StepReport& step : last.run->steps) {
        if (step.stage == stage) return &step;
      }
      return nullptr;
    }
    Json detail(const std::string& stage) const {
      const StepReport* found = step(stage);
      auto json = parse_json(found ? found->detail : "{}");
      return json ? *json : Json::object();
    }
  };
  Whole run(Ask ask, ChatRequest request, bool cancels = false) {
    const auto stream = odo_->start(std::move(ask), std::move(request), {});
    Whole whole;
    const auto end = std::chrono::steady_clock::now() + orchestrator::kLong;
    while (std::chrono::steady_clock::now() < end) {
      auto chunk = stream->poll();
      if (!chunk) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      whole.content += chunk->content;
      whole.reasoning += chunk->reasoning;
      for (const StepReport& step : chunk->steps) {
        whole.n_told += step.stage == "search" && step.state == StepReport::State::running;
        if (cancels && step.stage == "search") stream->cancel();
      }
      if (!chunk->is_terminal()) continue;
      whole.last = std::move(*chunk);
      return whole;
    }
    ADD_FAILURE() << "no end";
    return whole;
  }
  void accept(const std::string& owner, const std::string& id, const std::string& question, const std::string& answer,
              const store::Feedback& feedback, std::vector<std::string> foreign = {}) {
    store::JournalAnswer kept;
    kept.owner = owner;
    kept.request_id = id;
    kept.created = static_cast<int64_t>(std::time(nullptr));
    kept.messages.emplace_back();
    kept.messages.back().role = "user";
    kept.messages.back().content = question;
    kept.answer = answer;
    kept.foreign = std::move(foreign);
    journal_->add(std::move(kept));
    ASSERT_TRUE(journal_->give(owner, id, feedback));
  }

  static orchestrator::ChatService* chat_;
  const std::filesystem::path folder_ = fixture::scratch_folder();
  tools::Toolbox box_;
  std::shared_ptr<store::Journal> journal_;
  std::unique_ptr<Odo> odo_;
};
orchestrator::ChatService* EffortTest::chat_ = nullptr;

TEST_F(EffortTest, ATreeGrowsStepByStepAndTheSameSeedGrowsTheSame) {
  const Whole whole = run(asked("odo/tree"), thinking(kProblem));
  EXPECT_EQ(whole.last.kind, ChatChunk::Kind::finished);
  EXPECT_NE(whole.content.find("53"), std::string::npos) << whole.content;
  EXPECT_FALSE(whole.reasoning.empty());
  EXPECT_GT(whole.n_told, 1) << "progress is told";
  const Json detail = whole.detail("search");
  ASSERT_EQ(detail["branches"].size(), 2u) << to_text(detail);
  EXPECT_GT(detail["branches"][0]["steps"].size(), 2u) << to_text(detail);
  int n_chosen = 0;
  for (const Json& branch : detail["branches"]) {
    n_chosen += branch["chosen"].get<bool>();
    EXPECT_GE(branch["score"].get<double>(), 0);
    EXPECT_LE(branch["score"].get<double>(), 1);
  }
  EXPECT_EQ(n_chosen, 1);
  EXPECT_EQ(whole.step("search")->tokens, whole.last.usage.completion_tokens);
  const Whole again = run(asked("odo/tree"), thinking(kProblem));
  EXPECT_EQ(again.content, whole.content);
  EXPECT_EQ(again.reasoning, whole.reasoning);
}

TEST_F(EffortTest, AnswersVoteOrAreJudged) {
  for (const SearchKind kind : {SearchKind::majority, SearchKind::best_of}) {
    Ask ask = asked("odo");
    ask.effort.search = kind;
    ask.effort.branches = 3;
    const Whole whole = run(ask, thinking(kProblem));
    const Json detail = whole.detail("search");
    EXPECT_EQ(detail["kind"], search_name(kind));
    EXPECT_EQ(detail["branches"].size(), 3u);
    EXPECT_FALSE(whole.content.empty());
    EXPECT_EQ(whole.step("answer"), nullptr);
  }
}

TEST_F(EffortTest, WithoutAThoughtTheAnswerItselfIsTheTree) {
  ChatRequest request = thinking("Tell me two sentences about the sea.");
  request.enable_thinking = false;
  request.given.emplace_back("enable_thinking");
  request.max_tokens = 60;
  Ask ask = asked("odo/tree");
  ask.effort.tokens = 200;
  const Whole whole = run(ask, request);
  EXPECT_FALSE(whole.content.empty());
  EXPECT_TRUE(whole.reasoning.empty());
  EXPECT_EQ(whole.detail("search")["branches"].size(), 2u);
}

TEST_F(EffortTest, WhatCanNotBeSearchedForIsAnswered) {
  ChatRequest cold = thinking("What is the capital of France?");
  cold.sampling.temperature = 0;
  cold.given.emplace_back("temperature");
  const Whole whole = run(asked("odo/tree"), cold);
  ASSERT_NE(whole.step("search"), nullptr);
  EXPECT_EQ(whole.step("search")->state, StepReport::State::skipped);
  EXPECT_NE(whole.content.find("Paris"), std::string::npos);
  EXPECT_EQ(run(asked("odo"), thinking("Hello")).step("search"), nullptr) << "nobody asked for one";
}

TEST_F(EffortTest, ASearchThatIsCancelledOrLateEnds) {
  Ask ask = asked("odo/tree");
  ask.effort.branches = 4;
  EXPECT_EQ(run(ask, thinking(kProblem), true).last.finish, orchestrator::Finish::cancelled);
  ChatRequest late = thinking(kProblem);
  late.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(30);
  const auto began = std::chrono::steady_clock::now();
  run(ask, late);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
}

TEST_F(EffortTest, TheGateLetsGoodAnswersPassAndTriesBadOnesOnce) {
  Ask ask = asked("odo");
  ask.effort.gate = true;
  ChatRequest plain = orchestrator::plain_question("What is the capital of France?", 60);
  const Whole good = run(ask, plain);
  EXPECT_NE(good.content.find("Paris"), std::string::npos);
  EXPECT_EQ(good.detail("gate")["retried"], false) << to_text(good.detail("gate"));
  EXPECT_TRUE(good.last.finish == orchestrator::Finish::stop);

  const Judge judge({});
  auto link = std::make_shared<RunLink>([] {});
  RunTeller teller(link, {});
  ModelTurn bad;
  bad.content = "2 + 2 = 5";
  bad.last.kind = ChatChunk::Kind::finished;
  int n_asked = 0;
  std::string told;
  const auto answer_with = [&](const std::string& text) {
    return [&, text](ChatRequest again) {
      ++n_asked;
      told = *again.messages.back().content;
      ModelTurn turn;
      turn.content = text;
      turn.last.kind = ChatChunk::Kind::finished;
      return turn;
    };
  };
  EXPECT_EQ(pass_gate(bad, plain, judge, teller, answer_with("2 + 2 = 4")).content, "2 + 2 = 4");
  EXPECT_NE(told.find("2 + 2 = 5 is not right"), std::string::npos) << told;
  EXPECT_EQ(pass_gate(bad, plain, judge, teller, answer_with("2 + 2 = 6")).content, "2 + 2 = 6");
  EXPECT_EQ(n_asked, 2) << "never a loop";
}

TEST_F(EffortTest, ExamplesAreTheOwnersAcceptedAnswersAlone) {
  ASSERT_TRUE(journal_->agree("ann", true));
  ASSERT_TRUE(journal_->agree("bob", true));
  const store::Feedback up{store::FeedbackKind::thumb_up, 0, ""}, down{store::FeedbackKind::thumb_down, 0, ""},
      corrected{store::FeedbackKind::correction, 0, "=> Vienna, ask ann@example.org"};
  accept("ann", "1", "What is the capital of Austria?", "It is Graz.", corrected);
  accept("ann", "2", "What is the capital of Italy?", "=> Rome", up);
  accept("ann", "3", "What is the capital of Spain?", "no idea", down);
  accept("ann", "4", "What is the capital of Peru?", "=> Lima, as a page says", up, {"web"});
  accept("ann", "5", "How do I bake bread?", "=> in an oven", up);
  accept("bob", "6", "What is the capital of Chile?", "=> Santiago", up);
  const auto examples = examples_for(*journal_, "ann", "What is the capital of Norway?", 8);
  ASSERT_TRUE(examples);
  std::vector<std::string> answers;
  for (const Example& example : *examples) answers.push_back(example.answer);
  std::sort(answers.begin(), answers.end());
  EXPECT_EQ(answers, (std::vector<std::string>{"=> Rome", "=> Vienna, ask [email]"}));

  Ask ask = asked("odo");
  ask.effort.few_shot = 2;
  ChatRequest request = orchestrator::plain_question("What is the capital of Norway?", 40);
  request.memory.owner = "ann";
  const Whole whole = run(ask, request);
  EXPECT_EQ(whole.detail("few_shot")["examples"].size(), 2u);
  request.memory.owner = "carl";  // who did not agree
  EXPECT_EQ(run(ask, request).step("few_shot")->state, StepReport::State::skipped);
}

TEST_F(EffortTest, AModelJudgesByTheChancesOfItsVerdict) {
  JudgeParts parts;
  parts.prm = chat_;
  const Judge judge(parts);
  EXPECT_TRUE(judge.has_model());
  Judged judged;
  judged.question = kProblem;
  judged.text = "Theo has 53 marbles.";
  const Judgement verdict = judge.judge(judged);
  EXPECT_STREQ(verdict.by, "model");
  const auto chances = word_chances(*chat_, verdict_question(judged), {"+", "-"}, "verdict");
  ASSERT_TRUE(chances);
  EXPECT_NEAR(verdict.score, std::exp((*chances)[0]) / (std::exp((*chances)[0]) + std::exp((*chances)[1])), 1e-6);
  judged.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  EXPECT_STREQ(judge.judge(judged).by, "confidence") << "a judge that is late is left out";
}

// MODEL.prm.gguf of the box: a step with the wrong sign holds as an equation, so that only who reads the question can tell.
TEST_F(EffortTest, TheJudgeInTheBoxReadsTheQuestion) {
  const std::string file = std::filesystem::path(orchestrator::kModelInTheBox).replace_extension(".prm.gguf").string();
  ASSERT_TRUE(chat_->adapters().load(kJudgeAdapter, file, 1));
  JudgeParts parts;
  parts.chat = chat_;
  const Judge judge(parts);
  EXPECT_TRUE(judge.has_model());
  // The model's own steps about scenes that no training had; sums all hold, so that only the question tells.
  std::ifstream file_of_steps(CHIMERE_TESTS_DIR "/golden/odo/judged_steps.jsonl");
  int n_steps = 0, n_by_model = 0, n_told = 0;
  for (std::string line; std::getline(file_of_steps, line); ++n_steps) {
    const auto step = parse_json(line);
    ASSERT_TRUE(step) << line;
    Judged judged;
    judged.question = (*step)["question"].get<std::string>();
    judged.before = (*step)["before"].get<std::string>();
    judged.text = (*step)["step"].get<std::string>();
    const Judgement verdict = judge.judge(judged);
    n_by_model += std::string_view(verdict.by) == "model";
    if ((verdict.score >= 0.5) == (*step)["right"].get<bool>()) ++n_told;
  }
  EXPECT_EQ(n_steps, 40);
  EXPECT_EQ(n_by_model, 39);  // a number out of nowhere needs no model
  EXPECT_GE(n_told, 30);  // 20 by chance
  ASSERT_TRUE(chat_->adapters().unload(kJudgeAdapter));
}

}  // namespace
}  // namespace chimere::odo
