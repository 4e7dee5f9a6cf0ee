// simulated_week_test.cpp  The made-up person is a function of the seed and keeps the exam apart; one small night goes
// through the journal, the jobs and the exam; two weeks make a table and a plot.
#include "improve/simulated_week.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/scratch_for_test.h"
#include "improve/examples.h"
#include "improve/simulated_person.h"
#include "orchestrator/chat_model.h"
#include "orchestrator/models_for_test.h"
#include "text/json.h"

namespace chimere::improve {
namespace simulated_week_test {

std::vector<std::string> questions_of(const std::vector<PersonQuestion>& questions) {
  std::vector<std::string> texts;
  for (const PersonQuestion& question : questions) texts.push_back(question_in(question.asked.messages));
  return texts;
}

TEST(SimulatedPerson, IsAFunctionOfTheSeed) {
  const SimulatedPerson one(5), same(5), other(6);
  EXPECT_EQ(one.farewell(), same.farewell());
  EXPECT_EQ(one.notes(), same.notes());
  EXPECT_EQ(questions_of(one.exam()), questions_of(same.exam()));
  for (int day = 1; day <= 7; ++day) {
    EXPECT_EQ(questions_of(one.day(day)), questions_of(same.day(day)));
    EXPECT_NE(questions_of(one.day(day)), questions_of(other.day(day)));
  }
  EXPECT_NE(questions_of(one.day(1)), questions_of(one.day(2)));
}

// The wordings of the exam, and (but for facts) what it asks about, come on no day.
TEST(SimulatedPerson, NoDayHasAQuestionOfTheExam) {
  for (const uint64_t seed : {1, 2, 11, 12}) {
    const SimulatedPerson person(seed);
    std::set<std::string> asked, calls;
    for (int day = 1; day <= 7; ++day) {
      for (const PersonQuestion& question : person.day(day)) {
        asked.insert(question_in(question.asked.messages));
        if (question.of == TaskOf::tool) calls.insert(question.call.arguments_json);
      }
    }
    const std::vector<PersonQuestion> exam = person.exam();
    EXPECT_EQ(exam.size(), 80u);
    for (const PersonQuestion& question : exam) {
      const std::string text = question_in(question.asked.messages);
      EXPECT_FALSE(asked.contains(text)) << text;
      if (question.of == TaskOf::tool) {
        EXPECT_FALSE(calls.contains(question.call.arguments_json)) << text;
      }
      if (question.of != TaskOf::open) continue;
      // The last word is the thing, and a question mark ends it.
      const std::string thing = text.substr(text.find_last_of(' '), text.size() - text.find_last_of(' ') - 1);
      for (const std::string& trained : asked) {
        for (const char behind : {'?', '.', ':', ' '}) EXPECT_EQ(trained.find(thing + behind), std::string::npos);
      }
    }
  }
}

TEST(SimulatedPerson, AcceptsWhatTheirCorrectionSays) {
  const SimulatedPerson person(3);
  for (const PersonQuestion& question : person.day(1)) {
    const Answered given{"No idea.", {}, true};
    EXPECT_FALSE(person.accepts(question, given));
    const std::string correction = person.correction(question, given);
    Answered right{correction, {}, true};
    if (question.of == TaskOf::tool) right = {"", {question.call}, true};
    EXPECT_TRUE(person.accepts(question, right)) << correction;
    right.has_ended = false;
    EXPECT_EQ(person.accepts(question, right), question.of == TaskOf::tool);
  }
}

TEST(SimulatedWeek, OneNightGoesThroughJournalJobsAndExam) {
  const std::string folder = fixture::scratch_folder("week").string();
  std::filesystem::create_directories(folder + "/notes");
  auto model = models::Model::load(orchestrator::kModelInTheBox, models::BackendKind::cpu, {});
  ASSERT_TRUE(model);
  auto chat = orchestrator::ChatModel::from_model(std::move(*model));
  ASSERT_TRUE(chat);
  chat->open_memories(folder + "/notes");
  Workbench bench(std::move(*chat), 1024);
  WeekOptions options;
  options.seed = 2;  // has enough held-out conversations in the first night
  options.nights = 1;
  options.folder = folder;
  options.kinds = {"engram"};
  options.exam_questions = 1;
  options.has_arms = false;
  options.general = {"The sea is wide and the ships are small.", "A horse stood in the rain and waited."};
  for (const char* word : {"France", "Spain", "Italy", "Japan"}) {
    options.guard.push_back({std::string("What is the capital of ") + word + "?", "It is a city."});
  }
  const auto result = simulate_week(bench, options);
  ASSERT_TRUE(result) << result.error().message;
  const Json week = *parse_json(*result);
  ASSERT_EQ(week["nights"].size(), 1u);
  const Json& run = week["nights"][0]["runs"][0];
  EXPECT_EQ(run["kind"], "engram");
  EXPECT_TRUE(run["state"] == "proven" || run["state"] == "refused") << to_text(run);
  EXPECT_GE(run["held_out"].get<int>(), 8);
  EXPECT_EQ(run["guards"].size(), 4u);
  EXPECT_EQ(week["nights"][0]["exam"]["right"].size(), 4u);
  EXPECT_GT(week["perplexity_before"].get<double>(), 1);

  // All of the day is in the journal, with the person's word, and tools with their calls.
  const auto journal = store::Journal::open(folder + "/journal.db", store::Journal::Consent::given);
  ASSERT_TRUE(journal);
  const auto examples = examples_of(**journal, "simulated");
  ASSERT_TRUE(examples);
  EXPECT_EQ(examples->train.size() + examples->held_out.size() + examples->duplicates, 33u);
  size_t calls = 0;
  for (const TaughtAnswer& taught : examples->train) calls += !taught.wanted.calls.empty();
  EXPECT_GT(calls, 0u);

  // A week that is over is told again, not lived again; another seed's folder is refused.
  EXPECT_EQ(*simulate_week(bench, options), *result);
  options.seed = 4;
  EXPECT_FALSE(simulate_week(bench, options));
}

Json exam_of(double style, double tool, double open, double fact) {
  return {{"style", style}, {"tool", tool}, {"open", open}, {"fact", fact}, {"mean", (style + tool + open) / 3}};
}

std::string week_of(double style) {
  Json night{{"runs", Json::array()},
             {"exam", exam_of(style, 10, 20, 60)},
             {"baseline", exam_of(0, 10, 20, 60)},
             {"perplexity", 50.25}};
  night["runs"].push_back({{"kind", "lora"}, {"state", "proven"}, {"gain", {{"mean", 0.5}, {"low", 0.25}}}});
  night["planted"] = Json::array({{{"state", "refused"}}});
  night["rollback"] = {{"done", true}, {"same_again", true}};
  night["forget"] = {{"done", true}, {"equal", true}};
  return to_text(Json{{"before", exam_of(0, 0, 0, 55)},
                      {"perplexity_before", 50.0},
                      {"seconds", 100},
                      {"arms", {{"plain", exam_of(0, 0, 0, 0)}}},
                      {"nights", Json::array({night})}});
}

TEST(SimulatedWeek, TwoResultsMakeATableAndAPlot) {
  const auto summary = summarise_weeks({week_of(30), week_of(60)});
  ASSERT_TRUE(summary) << summary.error().message;
  const std::string& text = summary->markdown;
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has("| 2 seeds")) << text;
  EXPECT_TRUE(has("| in use after the last night | 45 (30 to 60) | 10 (10 to 10) | 20 (20 to 20) | 25 (20 to 30) |"));
  EXPECT_TRUE(has("| **gain over the baseline, points** | +45 (+30 to +60) | +0 (+0 to +0) |")) << text;
  EXPECT_TRUE(has("| `lora` | 2 | 2 | 0 | +0.500 (+0.500 to +0.500) | +0.250 (+0.250 to +0.250) |")) << text;
  EXPECT_TRUE(has("+0.50 (+0.50 to +0.50) %")) << text;
  EXPECT_TRUE(has("Planted bad candidates: 2, refused: 2")) << text;
  EXPECT_TRUE(summary->svg.starts_with("<svg ") && summary->svg.ends_with("</svg>\n"));
  EXPECT_FALSE(summarise_weeks({}));
  EXPECT_FALSE(summarise_weeks({"{}"}));
  EXPECT_FALSE(summarise_weeks({"no JSON"}));
}

}  // namespace simulated_week_test
}  // namespace chimere::improve
