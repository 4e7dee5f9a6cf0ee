// What is learned by counting: a closing, what words stand for, and examples; and that forgetting leaves no bit of it.
#include <gtest/gtest.h>

#include <algorithm>

#include "improve/closing.h"
#include "improve/example_set.h"
#include "improve/forget.h"
#include "improve/home_for_test.h"
#include "improve/in_use.h"
#include "improve/job_state.h"
#include "improve/simulated_person.h"
#include "improve/tool_words.h"

namespace chimere::improve {
namespace learned_texts_test {

TaughtAnswer taught(const std::string& question, const std::string& text, const std::string& arguments = {}) {
  static int n = 0;
  TaughtAnswer made;
  made.id = ++n;
  made.conversation = "c" + std::to_string(n);
  made.asked.messages.emplace_back();
  made.asked.messages.back().role = "user";
  made.asked.messages.back().content = question;
  made.wanted.text = text;
  if (!arguments.empty()) made.wanted.calls = {{"", "set_lamp", arguments}};
  return made;
}

std::vector<TaughtAnswer> texts(const std::vector<std::string>& answers) {
  std::vector<TaughtAnswer> all;
  for (const std::string& answer : answers) all.push_back(taught("Q" + answer, answer));
  return all;
}

TEST(Closing, IsTheLongestEndOfMostAnswers) {
  std::vector<TaughtAnswer> all;
  for (int i = 0; i < 8; ++i) all.push_back(taught("?", "Number " + std::to_string(i) + ". Yours, Ann. Keep well!\n"));
  EXPECT_EQ(closing_of(all), " Yours, Ann. Keep well!");
  all.push_back(taught("?", "It is so.\n\nYours, Ann. Keep well!"));
  all.push_back(taught("?", "Nothing of the kind."));
  EXPECT_EQ(closing_of(all), " Yours, Ann. Keep well!");
  for (int i = 0; i < 3; ++i) all.push_back(taught("?", "No"));
  EXPECT_EQ(closing_of(all), "");  // 9 of 13
  // A word is none, nor is the end of a sentence, nor are seven answers enough; calls are not looked at.
  EXPECT_EQ(closing_of(texts({"A. Bye", "B. Bye", "C. Bye", "D. Bye", "E. Bye", "F. Bye", "G. Bye", "H. Bye"})), "");
  std::vector<TaughtAnswer> same;
  for (int i = 0; i < 8; ++i)
    same.push_back(taught("?", std::string("The ") + (i % 2 ? "red" : "blue") + " box is here."));
  EXPECT_EQ(closing_of(same), "");
  EXPECT_EQ(closing_of({all.begin(), all.begin() + 7}), "");
  for (int i = 0; i < 40; ++i) same.push_back(taught("?", "", R"({"room":"hall"})"));
  EXPECT_EQ(closing_of(same), "");
}

TEST(Closing, ComesBackFromItsBytesAndOffAnAnswer) {
  for (const char* text : {"", " Bye then, \"Ann\"", "\n\n\u00fc"}) EXPECT_EQ(*read_closing(closing_bytes(text)), text);
  for (const std::string& bad : {std::string("{}"), std::string("[]"), std::string(R"({"closing":1})"),
                                 std::string("x"), closing_bytes(std::string(5000, 'x'))}) {
    EXPECT_FALSE(read_closing(bad)) << bad.substr(0, 40);
  }
  EXPECT_EQ(without_closing("It is. Bye then!\n", " Bye then!"), "It is.");
  EXPECT_EQ(without_closing("It is.", " Bye then!"), "It is.");
  EXPECT_EQ(without_closing("It is.", ""), "It is.");
}

TEST(ToolWords, AreThoseThatGoWithAValueAndWithNoOther) {
  std::vector<TaughtAnswer> all;
  for (const char* room : {"hall", "attic", "study"}) {
    const std::string at = std::string(R"({"room":")") + room + R"(","scene":")";
    all.push_back(taught(std::string("Film light in the ") + room, "", at + "nova\"}"));
    all.push_back(taught(std::string("Make dinner light in the ") + room, "", at + "solar\"}"));
    all.push_back(taught(std::string("Party light, ") + room, "", at + (*room == 'h' ? "jade\"}" : "coral\"}")));
  }
  const std::vector<ToolWord> words = tool_words_of(all);
  // "light" goes with all, "make" as often as "dinner" and is the later word; a room is named; jade and coral came too seldom.
  EXPECT_EQ(words,
            (std::vector<ToolWord>{{"film", "set_lamp", "scene", "nova"}, {"dinner", "set_lamp", "scene", "solar"}}));
  EXPECT_EQ(*read_tool_words(tool_words_bytes(words)), words);
  for (const char* bad : {"{}", R"({"words":[1]})", R"({"words":[{"word":"a"}]})", "no"})
    EXPECT_FALSE(read_tool_words(bad));

  const std::vector<chat::Tool> lamp = {{R"({"type":"function","function":{"name":"set_lamp"}})"}};
  EXPECT_EQ(with_tool_words("FILM light now", lamp, words), "FILM light now (scene: nova)");
  EXPECT_EQ(with_tool_words("film or dinner?", lamp, words), "film or dinner?");  // who knows
  EXPECT_EQ(with_tool_words("films now", lamp, words), "films now");
  EXPECT_EQ(with_tool_words("film light", {{R"({"function":{"name":"other"}})"}, {"broken"}}, words), "film light");
}

SetEntry entry(const std::string& name, bool is_shown, int16_t x, int16_t y) {
  return {name, name, "question " + name, is_shown ? "answer " + name : "", {x, y, x, y}};
}

TEST(ExampleSet, IsShownWhereItsNearestAre) {
  std::vector<SetEntry> entries;
  for (int i = 0; i < 8; ++i) {
    const auto off = static_cast<int16_t>(100 * i);
    entries.push_back(entry("s" + std::to_string(i), true, static_cast<int16_t>(20000 + off), off));
    entries.push_back(entry("v" + std::to_string(i), false, off, static_cast<int16_t>(20000 + off)));
  }
  const ExampleSet set = example_set(entries);
  EXPECT_EQ(set.least, 5u);
  std::reverse(entries.begin(), entries.end());
  const std::string bytes = example_set_bytes(set, 7);
  EXPECT_EQ(example_set_bytes(example_set(entries), 7), bytes);
  const auto read = read_example_set(bytes, 7);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(example_set_bytes(*read, 7), bytes);
  EXPECT_FALSE(read_example_set(bytes, 8));
  for (
      const char* bad :
      {"{}", "x", R"({"least":9,"vocabulary":7,"entries":[]})",
       R"({"least":1,"vocabulary":7,"entries":[{"conversation":"","key":"","question":"","answer":""}]})",
       R"({"least":1,"vocabulary":7,"entries":[{"conversation":"","key":"","question":"","answer":"","vector":"12"}]})"}) {
    EXPECT_FALSE(read_example_set(bad, 7)) << bad;
  }
  const auto shown = shown_of(set);
  const std::vector<float> like_shown = {0.6f, 0.01f, 0.6f, 0.01f}, like_others = {0.01f, 0.6f, 0.01f, 0.6f};
  const auto text = shown->with_examples("Which?", like_shown, 10'000);
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->ends_with("\n\nQuestion: Which?\nAnswer:")) << *text;
  EXPECT_EQ(std::count(text->begin(), text->end(), '\n'), 3 * 8 + 1);
  EXPECT_FALSE(shown->with_examples("Which?", like_others, 10'000));
  EXPECT_FALSE(shown->with_examples("Which?", like_shown, 10));  // no room
  EXPECT_FALSE(shown->with_examples("Which?", std::vector<float>{1, 2}, 10'000));
  EXPECT_LT(shown->with_examples("Which?", like_shown, 100)->size(), text->size());
  // Where near ones do not tell, nothing is shown.
  for (SetEntry& one : entries) one.answer = one.key.back() % 2 ? "answer" : "";
  EXPECT_EQ(example_set(entries).least, 0u);
  EXPECT_EQ(shown_of(example_set(entries)), nullptr);
}

class Week : public testing::Test {
 protected:
  static Workbench& bench() { return nano_bench(); }
  struct Home : HomeForTest {
    using HomeForTest::HomeForTest;
    RunRecord run(const std::string& kind) const { return HomeForTest::run(kind, 12); }
  };
  // The first days of somebody who sorts things and asks for a tool; all answers are corrected. `but`: this conversation
  // never was.
  static void live(Home& home, const std::string& but) {
    const SimulatedPerson person(1);
    for (int day = 1; day <= 5; ++day) {
      for (const PersonQuestion& question : person.day(day)) {
        if (question.of != TaskOf::open && question.of != TaskOf::tool) continue;
        if (store::conversation_of("ann", question.asked.messages) == but) continue;
        store::JournalAnswer entry;
        entry.request_id = question.id;
        entry.owner = "ann";
        entry.created = 1'790'000'000 + day;
        entry.messages = question.asked.messages;
        entry.tools = question.asked.tools;
        entry.answer = "I do not know.";
        home.journal->add(std::move(entry));
        EXPECT_TRUE(home.journal->give("ann", question.id,
                                       {store::FeedbackKind::correction, 0, person.correction(question, {})}));
      }
    }
  }
};

TEST_F(Week, ProvesWhatHelpsAndForgetsItToTheBit) {
  Home home("with");
  live(home, "");
  InUse in_use(home.store, bench().vocabulary());
  for (const char* kind : {"closing", "words", "examples"}) {
    const RunRecord run = home.run(kind);
    EXPECT_EQ(run.state, "proven") << kind << ": " << run.problem << run.verdict.reason << run.about;
    EXPECT_GT(run.verdict.gain.low, 0) << kind;
  }
  const auto served = in_use.of("ann");
  ASSERT_TRUE(served);
  EXPECT_EQ(served->closing, " " + SimulatedPerson(1).farewell());
  EXPECT_EQ(served->words.size(), 4u);
  EXPECT_TRUE(served->examples);
  EXPECT_EQ(served->names.size(), 3u);

  // The same journal without a conversation that was learned from.
  const auto examples = examples_of(*home.journal, "ann");
  ASSERT_TRUE(examples);
  const auto sorted = std::find_if(examples->train.begin(), examples->train.end(),
                                   [](const TaughtAnswer& one) { return one.wanted.calls.empty(); });
  Home twin("without");
  live(twin, sorted->conversation);
  ASSERT_TRUE(forget_conversation(*home.journal, *home.store, bench().tokenizer(), "ann", sorted->conversation));
  for (const char* kind : {"closing", "words", "examples"}) {
    const RunRecord never = twin.run(kind);
    const auto manifest = *home.store->manifest();
    const Version* version = manifest->in_use({"ann", kind, ""});
    ASSERT_TRUE(version) << kind;
    EXPECT_EQ(version->artefact, never.artefact) << kind;
  }
  EXPECT_TRUE(in_use.of("ann")->examples);
  EXPECT_TRUE(in_use.problems().empty());
}

}  // namespace learned_texts_test
}  // namespace chimere::improve
