// When a thought may end: fitted, proven, refused, used and forgotten, with the thoughts of the model in the box.
#include <gtest/gtest.h>

#include <algorithm>

#include "improve/forget.h"
#include "improve/home_for_test.h"
#include "improve/in_use.h"
#include "improve/job_state.h"
#include "improve/thought_setting.h"

namespace chimere::improve {
namespace thinking_test {

WrittenThought thought_of(const std::vector<float>& probabilities, const std::vector<int>& breaks) {
  WrittenThought thought;
  thought.max_entropy = 1;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    thought.ids.push_back(static_cast<int32_t>(i));
    thought.max_prob.push_back(probabilities[i]);
    thought.entropy.push_back(1 - probabilities[i]);  // so that certainty is the probability
    thought.is_break.push_back(std::count(breaks.begin(), breaks.end(), static_cast<int>(i + 1)) > 0);
  }
  return thought;
}

TEST(ThoughtSetting, ClosesBehindTheFirstSentenceThatIsSure) {
  std::vector<float> sure(40, 0.85f);
  std::fill(sure.begin() + 20, sure.end(), 0.97f);
  const auto ends = sentence_ends(thought_of(sure, {4, 10, 24, 30, 36, 40}));
  ASSERT_EQ(ends.size(), 7u);
  EXPECT_EQ(ends[1].certainty[0], -1);  // four tokens fill no window
  EXPECT_NEAR(ends[2].certainty[0], 0.85, 1e-6);
  const auto at = [&](const ThoughtSetting& setting) {
    const ThoughtCut* cut = cut_by(setting, ends);
    return cut ? cut->at : -1;
  };
  EXPECT_EQ(at({-1, 8, 8, 0.8}), 10);
  EXPECT_EQ(at({-1, 8, 11, 0.8}), 24);
  EXPECT_EQ(at({-1, 8, 8, 0.95}), 30);
  EXPECT_EQ(at({-1, 16, 8, 0.95}), 36);
  EXPECT_EQ(at({-1, 32, 8, 0.95}), -1);
  EXPECT_EQ(at({.most = 0}), 0);
  EXPECT_EQ(at({}), -1);
  const auto possible = possible_cuts(ends);
  for (const ThoughtSetting& setting : thought_settings()) {
    const ThoughtCut* of_all = cut_by(setting, ends);
    const ThoughtCut* of_some = cut_by(setting, possible);
    ASSERT_EQ(of_all == nullptr, of_some == nullptr);
    if (of_all) {
      EXPECT_EQ(of_all->at, of_some->at);
    }
  }
}

// A thought of 60 tokens that says the same again behind the 40th; without its first 40 the answer is far less likely.
ThoughtEntry entry_of(int i) {
  ThoughtEntry entry{"c" + std::to_string(i), "k" + std::to_string(i), 60, -0.05 - 0.0001 * i, {}};
  entry.cuts.push_back({0, {-1, -1, -1}, -1.5 - 0.01 * i});
  entry.cuts.push_back({20, {0.91, 0.91, -1}, -0.9});
  entry.cuts.push_back({40, {0.96, 0.96, 0.96}, -0.05 - 0.0001 * i});
  return entry;
}

TEST(ThoughtSetting, IsTheShortestThatLosesNothing) {
  std::vector<ThoughtEntry> entries;
  for (int i = 0; i < 12; ++i) entries.push_back(entry_of(i));
  const FittedThoughts fitted = fitted_thoughts(entries);
  EXPECT_TRUE(fitted.setting.closes());
  for (const ThoughtEntry& entry : fitted.entries) EXPECT_EQ(cut_by(fitted.setting, entry.cuts)->at, 40);
  std::reverse(entries.begin(), entries.end());
  const std::string bytes = thought_bytes(fitted, 7);
  EXPECT_EQ(thought_bytes(fitted_thoughts(entries), 7), bytes);
  const auto read = read_thoughts(bytes, 7);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(thought_bytes(*read, 7), bytes);
  EXPECT_FALSE(read_thoughts(bytes, 8));
  // Seven conversations tell nothing, and where each end costs something thoughts stay whole.
  EXPECT_FALSE(fitted_thoughts({entries.begin(), entries.begin() + 7}).setting.closes());
  for (ThoughtEntry& entry : entries) {
    for (ThoughtCut& cut : entry.cuts) cut.score = std::min(cut.score, entry.score - 0.02);
  }
  EXPECT_FALSE(fitted_thoughts(entries).setting.closes());
}

TEST(ThoughtSetting, RefusesWhatItDidNotWrite) {
  const std::string whole =
      R"({"most":-1,"window":16,"min_tokens":8,"close_above":0.9,"vocabulary":7,"entries":[{"conversation":"c","key":"k",)"
      R"("tokens":9,"score":-1,"cuts":[{"at":3,"score":-2,"certainty":[0.5,-1,-1]}]}]})";
  ASSERT_TRUE(read_thoughts(whole, 7));
  const std::vector<std::pair<std::string, std::string>> changes = {
      {R"("most":-1)", R"("most":5)"},
      {R"("window":16)", R"("window":9)"},
      {R"("window":16)", R"("window":"16")"},
      {R"("min_tokens":8)", R"("min_tokens":-8)"},
      {R"("close_above":0.9)", R"("close_above":null)"},
      {R"("entries":[)", R"("entries":[1,)"},
      {R"("tokens":9)", R"("tokens":99999999999)"},
      {R"([0.5,-1,-1])", R"([0.5,-1])"},
      {R"([0.5,-1,-1])", R"([0.5,-1,"x"])"},
      {R"("cuts":[)", R"("cats":[)"},
  };
  for (const auto& [from, to] : changes) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    EXPECT_FALSE(read_thoughts(text, 7)) << text;
  }
}

TEST(ThoughtSetting, LeavesARequestAloneThatSaysHowItThinks) {
  const ThoughtSetting sure{-1, 16, 32, 0.9}, none{.most = 0};
  orchestrator::ChatRequest request;
  EXPECT_TRUE(use_thought_setting(sure, request));
  EXPECT_EQ(request.thinking.min_tokens, 32);
  EXPECT_EQ(request.thinking_budget, -1);
  request = {};
  EXPECT_TRUE(use_thought_setting(none, request));
  EXPECT_EQ(request.thinking_budget, 0);
  EXPECT_FALSE(use_thought_setting(sure, request));
  request = {};
  request.thinking.mode = orchestrator::ThinkingMode::ultra;
  EXPECT_FALSE(use_thought_setting(none, request));
  request = {};
  request.enable_thinking = false;
  EXPECT_FALSE(use_thought_setting(sure, request));
  request = {};
  EXPECT_FALSE(use_thought_setting({}, request));
}

class Thoughts : public testing::Test {
 protected:
  static Workbench& bench() { return nano_bench(); }
  struct Home : HomeForTest {
    using HomeForTest::HomeForTest;
    // A question that was answered behind a thought, rightly; unless `but` is its conversation.
    void ask(const std::string& question, const std::string& right, const std::string& but = {}) {
      Asked asked;
      asked.messages.emplace_back();
      asked.messages.back().role = "user";
      asked.messages.back().content = question;
      if (store::conversation_of("ann", asked.messages) == but) return;
      store::JournalAnswer entry;
      entry.request_id = "r" + std::to_string(++n);
      entry.owner = "ann";
      entry.created = 1'790'000'000 + n;
      entry.messages = asked.messages;
      entry.answer = right;
      entry.completion_tokens = 60;
      journal->add(std::move(entry));
      EXPECT_TRUE(journal->give("ann", "r" + std::to_string(n), {store::FeedbackKind::thumb_up, 0, {}}));
    }
    RunRecord run(const std::string& given = {}) const { return HomeForTest::run("thinking", 8, given); }
    int n = 0;
  };
  // Sums that the model knows without a thought, too.
  static void ask_sums(Home& home, const std::string& but = {}) {
    for (int i = 0; i < 40; ++i) {
      const int a = 11 + i * 29 % 83, b = 12 + i * 31 % 79;
      home.ask("What do " + std::to_string(a) + " and " + std::to_string(b) + " make together?",
               std::to_string(a) + " + " + std::to_string(b) + " = " + std::to_string(a + b) + ".", but);
    }
  }
};

TEST_F(Thoughts, AreLeftOutWhereAnswersAreAsGoodWithoutThem) {
  Home home("sums");
  EXPECT_EQ(home.run().state, "skipped");
  ask_sums(home);
  InUse in_use(home.store, bench().vocabulary());
  const RunRecord run = home.run();
  EXPECT_EQ(run.state, "proven") << run.verdict.reason << run.problem;
  EXPECT_GT(run.verdict.gain.low, 0.3);
  ASSERT_TRUE(in_use.of("ann") && in_use.of("ann")->thoughts);
  EXPECT_TRUE(in_use.of("ann")->thoughts->closes());
  EXPECT_EQ(in_use.of("bob"), nullptr);
  EXPECT_EQ(home.run().state, "skipped");

  // The same without a conversation that was learned from, to the bit.
  Home twin("twin");
  ask_sums(twin, run.learned_from[3]);
  const RunRecord never = twin.run();
  ASSERT_NE(never.artefact, run.artefact);
  const auto done = forget_conversation(*home.journal, *home.store, bench().tokenizer(), "ann", run.learned_from[3]);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->rebuilt, 1u);
  EXPECT_EQ((*home.store->manifest())->in_use({"ann", "thinking", ""})->artefact, never.artefact);
  EXPECT_TRUE(in_use.of("ann")->thoughts);
  ASSERT_TRUE(home.store->update([](Manifest& manifest) { return manifest.rollback({"ann", "thinking", ""}, 5); }));
  EXPECT_EQ(in_use.of("ann"), nullptr);
}

// Problems of several steps: without a thought the model gets most of them wrong.
TEST_F(Thoughts, ABadSettingIsRefused) {
  Home home("steps");
  for (int i = 0; i < 40; ++i) {
    const int a = 13 + i * 7 % 31, b = 11 + i * 17 % 37, c = 5 + i * 13 % 19, d = 3 + i * 11 % 41;
    const auto text = [](int value) { return std::to_string(value); };
    home.ask("Take the number " + text(a) + ". Add " + text(b) + ". Subtract " + text(c) + ". Add " + text(d) +
                 ". What do you get?",
             "The result is " + text(a + b - c + d) + ".");
  }
  const std::string planted = thought_bytes({{.most = 0}, {}}, bench().vocabulary().fingerprint);
  const RunRecord bad = home.run(planted);
  EXPECT_EQ(bad.state, "refused");
  EXPECT_GT(bad.verdict.gain.low, 0.99);  // it saves all
  EXPECT_TRUE(bad.verdict.reason.starts_with("accepted answers may fall by")) << bad.verdict.reason;
  EXPECT_EQ((*home.store->manifest())->in_use({"ann", "thinking", ""}), nullptr);
  // These thoughts check what they found, and need not.
  const RunRecord own = home.run();
  EXPECT_EQ(own.state, "proven") << own.verdict.reason << own.problem;
  EXPECT_GT(own.verdict.gain.low, 0.3);
  EXPECT_LT(own.verdict.gain.high, 0.9);
  EXPECT_EQ(own.verdict.attempt, 2);
}

}  // namespace thinking_test
}  // namespace chimere::improve
