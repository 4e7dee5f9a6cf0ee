// odo_test.cpp  Runs with the model in the box: what is asked for is routed, tools are called, and the bare model's
// answers stay what they are.
#include "odo/odo.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/scratch_for_test.h"
#include "orchestrator/service_for_test.h"
#include "text/json.h"
#include "tools/calculator.h"

namespace chimere::odo {
namespace {

using orchestrator::ChatRequest;
using orchestrator::Finish;
using State = StepReport::State;

ChatRequest question(const std::string& text) { return orchestrator::plain_question(text, 200); }

// The same, by a caller who does not say whether to think.
ChatRequest open_question(const std::string& text) {
  ChatRequest request = question(text);
  request.enable_thinking.reset();
  request.given = {"temperature", "max_tokens"};
  return request;
}

Ask asked(const std::string& model) {
  Ask ask;
  ask.model = model;
  return ask;
}

struct Whole {
  std::string content;
  std::vector<orchestrator::ToolCallDelta> calls;
  std::vector<StepReport> told;  // as they came
  int n_started = 0, n_terminal = 0;
  ChatChunk last;

  // The finished ones of a stage.
  std::vector<StepReport> steps(const std::string& stage) const {
    std::vector<StepReport> found;
    for (const StepReport& step : last.run ? last.run->steps : told) {
      if (step.stage == stage) found.push_back(step);
    }
    return found;
  }
};

Whole read(orchestrator::AnswerStream& stream, const std::function<void(const ChatChunk&)>& look = {}) {
  Whole whole;
  const auto end = std::chrono::steady_clock::now() + orchestrator::kLong;
  while (whole.n_terminal == 0 && std::chrono::steady_clock::now() < end) {
    auto chunk = stream.poll();
    if (!chunk) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    if (look) look(*chunk);
    whole.n_started += chunk->kind == ChatChunk::Kind::started;
    whole.n_terminal += chunk->is_terminal();
    whole.content += chunk->content;
    whole.calls.insert(whole.calls.end(), chunk->tool_calls.begin(), chunk->tool_calls.end());
    whole.told.insert(whole.told.end(), chunk->steps.begin(), chunk->steps.end());
    whole.last = std::move(*chunk);
  }
  EXPECT_FALSE(stream.poll());
  return whole;
}

// Answers with what it was made with, and remembers who asked.
class FixedTool : public tools::Tool {
 public:
  FixedTool(std::string name, std::string result) : result_(std::move(result)) {
    spec_.name = std::move(name);
    spec_.description = "Says what the weather is in a city.";
    spec_.parameters = R"({"type":"object","properties":{"city":{"type":"string"}},"required":["city"]})";
  }
  const tools::ToolSpec& spec() const override { return spec_; }
  tools::ToolResult run(const std::string&, const tools::ToolContext& context) override {
    ++n_runs;
    owner = context.owner;
    return {result_, false, true, R"({"from":"a test"})"};
  }

  std::atomic<int> n_runs{0};
  std::string owner;

 private:
  tools::ToolSpec spec_;
  const std::string result_;
};

class OdoTest : public testing::Test {
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
    ASSERT_TRUE(box_.add(weather_));
    ASSERT_TRUE(box_.add(secret_, tools::Policy::ask));
    write("default", "tools_on_cue: [calculator]\n");
    write("sums", "title: Sums\ntools: [calculator]\nparams: {temperature: 0}\n");
    write("weather", "tools: [get_weather]\n");
    write("secret", "tools: [get_secret_weather]\n");
    write("chain",
          "steps:\n  - {agent: first, prompt: Answer in one short sentence.}\n"
          "  - {agent: second, prompt: Answer in one short sentence.}\n");
    OdoConfig config;
    config.route_folders = {folder_.string()};
    config.loop.rounds = 2;
    odo_ = std::make_unique<Odo>(*chat_, box_, Shelves(), config);
  }

  void write(const std::string& route, const std::string& text) { std::ofstream(folder_ / (route + ".yaml")) << text; }
  Whole run(Ask ask, ChatRequest request, const std::function<void(const ChatChunk&)>& look = {}) {
    const auto stream = odo_->start(std::move(ask), std::move(request), {});
    Whole whole = read(*stream, look);
    EXPECT_EQ(whole.n_terminal, 1);
    return whole;
  }

  static orchestrator::ChatService* chat_;
  const std::filesystem::path folder_ = fixture::scratch_folder();
  std::shared_ptr<FixedTool> weather_ = std::make_shared<FixedTool>("get_weather", "It is 31 degrees and sunny.");
  std::shared_ptr<FixedTool> secret_ = std::make_shared<FixedTool>("get_secret_weather", "It is 31 degrees and sunny.");
  tools::Toolbox box_;
  std::unique_ptr<Odo> odo_;
};
orchestrator::ChatService* OdoTest::chat_ = nullptr;

TEST_F(OdoTest, AGreetingIsAnsweredAsTheModelAnswersIt) {
  const Whole whole = run(asked("odo"), question("Hello!"));
  EXPECT_EQ(whole.n_started, 1);
  const auto bare = chat_->start(question("Hello!"));
  const Whole alone = read(*bare);
  EXPECT_EQ(whole.content, alone.content);
  EXPECT_FALSE(whole.content.empty());
  EXPECT_EQ(whole.last.usage.prompt_tokens, alone.last.usage.prompt_tokens);
  EXPECT_EQ(whole.last.usage.completion_tokens, alone.last.usage.completion_tokens);
  ASSERT_TRUE(whole.last.run);
  EXPECT_EQ(whole.last.run->route, "default");
  EXPECT_EQ(whole.last.run->steps.size(), 2u);
}

TEST_F(OdoTest, ASumIsComputedBeforeTheAnswer) {
  const Whole whole = run(asked("odo"), question("What is 48271 * 3947?"));
  ASSERT_EQ(whole.steps("calculate").size(), 1u);
  EXPECT_EQ(whole.steps("calculate").front().state, State::done);
  EXPECT_EQ(whole.steps("calculate").front().detail, R"({"expression":"48271 * 3947","result":"190525637"})");
  EXPECT_TRUE(whole.steps("tool").empty());
  EXPECT_EQ(whole.steps("answer").size(), 1u);
  EXPECT_NE(whole.content.find("190525637"), std::string::npos) << whole.content;
  const Whole failed = run(asked("odo"), question("What is 5 / 0 + 1?"));
  ASSERT_EQ(failed.steps("calculate").size(), 1u);
  EXPECT_EQ(failed.steps("calculate").front().state, State::failed);
  EXPECT_EQ(failed.last.finish, Finish::stop);
}

// The request's word, then the route's; who names tools without the calculator, or denies it, has said no as well.
TEST_F(OdoTest, WhetherSumsAreComputedIsSaidByRequestAndRoute) {
  write("words", "calculate: false\n");
  odo_.reset();
  OdoConfig config;
  config.route_folders = {folder_.string()};
  odo_ = std::make_unique<Odo>(*chat_, box_, Shelves(), config);
  const auto n_computed = [&](Ask ask) {
    ChatRequest request = question("What is 48271 * 3947?");
    request.max_tokens = 1;
    return run(std::move(ask), std::move(request)).steps("calculate").size();
  };
  for (const auto& [model, by_route] : {std::pair("odo/sums", 1u), std::pair("odo/words", 0u)}) {
    Ask ask = asked(model);
    EXPECT_EQ(n_computed(ask), by_route) << model;
    ask.calculates = true;
    EXPECT_EQ(n_computed(ask), 1u) << model;
    ask.calculates = false;
    EXPECT_EQ(n_computed(ask), 0u) << model;
  }
  Ask ask = asked("odo");
  ask.tools = std::vector<std::string>();
  EXPECT_EQ(n_computed(ask), 0u);
  ask.tools = {"calculator"};
  EXPECT_EQ(n_computed(ask), 1u);
  ASSERT_TRUE(box_.set_policy("calculator", tools::Policy::ask));
  EXPECT_EQ(n_computed(ask), 0u);
}

TEST_F(OdoTest, ASumIsCalculated) {
  Ask ask = asked("odo");
  ask.calculates = false;
  const Whole whole = run(ask, question("What is 48271 * 3947?"));
  const std::vector<StepReport> calls = whole.steps("tool");
  ASSERT_GE(calls.size(), 1u) << whole.content;
  EXPECT_EQ(calls.front().state, State::done) << calls.front().detail;
  EXPECT_NE(calls.front().detail.find("190525637"), std::string::npos) << calls.front().detail;
  EXPECT_EQ(whole.last.finish, Finish::stop);
  EXPECT_TRUE(whole.calls.empty());
  EXPECT_EQ(whole.steps("answer").size(), 2u);
}

// What the rule decides, whatever the model in the box is sure of: below every entropy and above all of them.
TEST_F(OdoTest, DoubtDecidesWhetherAnAnswerIsThoughtAbout) {
  const ChatRequest request = open_question("What is the capital of France?");
  for (const bool thinks : {false, true}) {
    ChatRequest bare = request;
    bare.enable_thinking = thinks;
    const auto alone = chat_->start(bare);
    const Whole expected = read(*alone);
    RunTeller teller(std::make_shared<RunLink>(std::function<void()>()), {});
    std::string shown;
    const auto look = [&](const ChatChunk& chunk) {
      EXPECT_TRUE(chunk.tokens.empty());
      shown += chunk.content;
      return true;
    };
    const DoubtRule rule = {.n_tokens = 3, .threshold = thinks ? 0.0f : 1e9f};
    const DoubtedTurn asked = ask_in_doubt(*chat_, request, rule, teller, teller.begin("answer", "", false), look);
    EXPECT_EQ(asked.thinks, thinks);
    EXPECT_EQ(asked.turn.content, expected.content);
    EXPECT_EQ(shown, expected.content);
    EXPECT_EQ(asked.turn.reasoning.empty(), !thinks);
    EXPECT_GE(asked.entropy, 0);
    // A sure answer costs nothing more, the other one what was thrown away.
    const int32_t extra = teller.usage().completion_tokens - expected.last.usage.completion_tokens;
    EXPECT_TRUE(thinks ? extra >= 3 : extra == 0) << extra;
  }
  // An answer that ends before the rule has its tokens is judged by those it has.
  ChatRequest one = request;
  one.max_tokens = 1;
  RunTeller teller(std::make_shared<RunLink>(std::function<void()>()), {});
  const DoubtedTurn cut =
      ask_in_doubt(*chat_, one, {.n_tokens = 8, .threshold = 1e9f}, teller, teller.begin("answer", ""));
  EXPECT_FALSE(cut.thinks);
  EXPECT_FALSE(cut.turn.content.empty());
}

TEST_F(OdoTest, DoubtIsWeighedWhereNobodySaysOtherwise) {
  const auto is_weighed = [&](const Ask& ask, const ChatRequest& request) {
    return !run(ask, request).steps("answer").front().detail.empty();
  };
  ChatRequest request = open_question("What is the capital of France?");
  Ask ask = asked("odo");
  EXPECT_TRUE(is_weighed(ask, request));
  ask.entropy = false;
  EXPECT_FALSE(is_weighed(ask, request));
  ask.entropy.reset();
  ask.mode = "ultra";
  EXPECT_FALSE(is_weighed(ask, request));
  ask.entropy = true;
  EXPECT_TRUE(is_weighed(ask, request));
  EXPECT_FALSE(is_weighed(ask, question("What is the capital of France?")));
  request.given.emplace_back("thinking_budget");
  EXPECT_FALSE(is_weighed(ask, request));
  // A sum that is computed needs no thought.
  const Whole computed = run(asked("odo"), open_question("What is 48271 * 3947?"));
  EXPECT_EQ(computed.last.usage.reasoning_tokens, 0);
  EXPECT_TRUE(computed.steps("answer").front().detail.empty());
}

TEST_F(OdoTest, ResultsAreReadAndOwnersAreTold) {
  ChatRequest request = question("What is the weather in Lyon?");
  request.memory.owner = "ann";
  const Whole whole = run(asked("odo/weather"), request);
  EXPECT_EQ(weather_->n_runs, 1) << whole.content;
  EXPECT_EQ(weather_->owner, "ann");
  EXPECT_NE(whole.content.find("31"), std::string::npos) << whole.content;
  const std::vector<StepReport> calls = whole.steps("tool");
  ASSERT_EQ(calls.size(), 1u);
  const auto detail = parse_json(calls[0].detail);
  ASSERT_TRUE(detail) << calls[0].detail;
  EXPECT_EQ((*detail)["tool"], "get_weather");
  EXPECT_EQ((*detail)["is_untrusted"], true);
  EXPECT_EQ((*detail)["detail"]["from"], "a test");
}

TEST_F(OdoTest, TheCallersToolsAreTheCallers) {
  ChatRequest request = question("What is the weather in Lyon?");
  request.tools = {
      {R"({"type":"function","function":{"name":"get_weather","description":"Says what the weather is in a )"
       R"(city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}})"}};
  const Whole whole = run(asked("odo/weather"), request);
  EXPECT_EQ(whole.last.finish, Finish::tool_calls);
  ASSERT_FALSE(whole.calls.empty());
  EXPECT_EQ(whole.calls.front().name, "get_weather");
  EXPECT_EQ(weather_->n_runs, 0);
  EXPECT_TRUE(whole.steps("tool").empty());
}

TEST_F(OdoTest, ACallThatIsDemandedIsOneOfTheCallers) {
  ChatRequest request = question("What is 48271 * 3947?");
  request.tools = {{R"({"type":"function","function":{"name":"find_train","description":"Finds a train to a city.",)"
                    R"("parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}})"}};
  request.tool_choice = orchestrator::ToolChoice::required;
  const Whole whole = run(asked("odo/sums"), request);
  EXPECT_EQ(whole.last.finish, Finish::tool_calls);
  ASSERT_FALSE(whole.calls.empty());
  EXPECT_EQ(whole.calls.front().name, "find_train");
  EXPECT_TRUE(whole.steps("tool").empty());
}

TEST_F(OdoTest, AnAnswerThatTheCallerBeganMayCallTools) {
  for (const bool is_thought : {false, true}) {
    ChatRequest request = question("What is 48271 * 3947?");
    chat::Message begun;
    begun.role = "assistant";
    begun.content = is_thought ? "" : "Let me calculate that.";
    if (is_thought) begun.reasoning_content = "I should use the calculator";
    request.messages.push_back(begun);
    request.goes_on = true;
    request.thinking_budget = 20;
    request.tool_choice = orchestrator::ToolChoice::required;
    const Whole whole = run(asked("odo/sums"), request);
    EXPECT_FALSE(whole.last.error) << whole.last.error->message;
    EXPECT_GE(whole.steps("tool").size(), 1u);
    EXPECT_NE(whole.last.finish, Finish::tool_calls);
  }
}

TEST_F(OdoTest, WhatNeedsAPersonsWordWaitsForIt) {
  for (const bool is_allowed : {true, false}) {
    const int before = secret_->n_runs;
    Ask ask = asked("odo/secret");
    ask.can_approve = true;
    ask.client = "desk";
    bool was_asked = false;
    const Whole whole = run(ask, question("What is the weather in Lyon?"), [&](const ChatChunk& chunk) {
      for (const StepReport& step : chunk.steps) {
        if (step.state != State::asks) continue;
        was_asked = true;
        const std::string id = (*parse_json(step.detail))["approval_id"];
        // The question is there a moment after it was told of.
        while (!odo_->approvals().answer(id, "desk", is_allowed)) {
          EXPECT_FALSE(odo_->approvals().answer(id, "somebody else", true));
          std::this_thread::yield();
        }
      }
    });
    EXPECT_TRUE(was_asked);
    EXPECT_EQ(secret_->n_runs - before, is_allowed ? 1 : 0);
    EXPECT_FALSE(whole.content.empty());
  }
  // Nobody is there to be asked.
  const int before = secret_->n_runs;
  const Whole whole = run(asked("odo/secret"), question("What is the weather in Lyon?"));
  EXPECT_EQ(secret_->n_runs, before);
  ASSERT_FALSE(whole.steps("tool").empty());
  EXPECT_EQ(whole.steps("tool").front().state, State::skipped);
}

TEST_F(OdoTest, ABudgetOfCallsEndsInAnAnswer) {
  ChatRequest request = question("What is the weather in Lyon?");
  request.tool_choice = orchestrator::ToolChoice::required;
  OdoConfig config;
  config.route_folders = {folder_.string()};
  config.loop.rounds = 1;
  config.loop.calls = 1;
  odo_ = std::make_unique<Odo>(*chat_, box_, Shelves(), config);
  const Whole whole = run(asked("odo/weather"), request);
  EXPECT_EQ(weather_->n_runs, 1);
  EXPECT_NE(whole.last.finish, Finish::tool_calls);
  EXPECT_FALSE(whole.content.empty());
}

TEST_F(OdoTest, ABudgetOfTokensEndsInAnAnswer) {
  ChatRequest request = question("What is the weather in Lyon?");
  request.tool_choice = orchestrator::ToolChoice::required;
  write("weather", "tools: [get_weather]\ntool_tokens: 100000\n");
  odo_.reset();
  OdoConfig config;
  config.route_folders = {folder_.string()};
  config.loop.tokens = 1;
  odo_ = std::make_unique<Odo>(*chat_, box_, Shelves(), config);
  const auto is_over = [&](const Ask& ask) {
    const Whole whole = run(ask, request);
    EXPECT_NE(whole.last.finish, Finish::tool_calls);
    EXPECT_FALSE(whole.content.empty());
    const std::vector<StepReport> answers = whole.steps("answer");
    EXPECT_EQ(answers.size(), 2u);
    return answers.back().about.find("used up") != std::string::npos;
  };
  EXPECT_FALSE(is_over(asked("odo/weather"))) << "the route's word is before the program's";
  Ask ask = asked("odo/weather");
  ask.effort.tool_tokens = 1;
  EXPECT_TRUE(is_over(ask));
}

// An answer in doubt, as every one is at this threshold, is told of what can be looked up.
TEST_F(OdoTest, AnAnswerInDoubtIsToldMore) {
  const ChatRequest request = open_question("When are the beans of Orlo planted?");
  for (const bool is_in_doubt : {true, false}) {
    int n_looked = 0;
    DoubtRule rule;
    rule.threshold = is_in_doubt ? 0.0f : 1e9f;
    rule.look_up = [&](ChatRequest& thinking) {
      ++n_looked;
      thinking.looked_up.push_back({"beans.md", "The beans of Orlo are planted on the ninth of May.", 0});
    };
    RunTeller teller(std::make_shared<RunLink>(std::function<void()>()), {});
    const DoubtedTurn turn = ask_in_doubt(*chat_, request, rule, teller, teller.begin("answer", "", false));
    EXPECT_EQ(n_looked, is_in_doubt ? 1 : 0);
    EXPECT_EQ(turn.looked_up.size(), is_in_doubt ? 1u : 0u);
    EXPECT_EQ(turn.turn.content.find("ninth of May") != std::string::npos, is_in_doubt) << turn.turn.content;
  }
}

// The same in a run, for the collections of the one who asks, and only where that is wished for.
TEST_F(OdoTest, DoubtLooksInTheCollectionsOfTheOneWhoAsks) {
  auto collections = retrieval::Collections::open((folder_ / "collections.db").string());
  ASSERT_TRUE(collections);
  ASSERT_TRUE((*collections)->add({"desk", "notes", "theo.md", "Theo keeps his marbles in a tin.", 0, {}}));
  odo_.reset();
  OdoConfig config;
  config.route_folders = {folder_.string()};
  Shelves shelves;
  shelves.collections = collections->get();
  odo_ = std::make_unique<Odo>(*chat_, box_, shelves, config);
  const ChatRequest request =
      open_question("Theo has 64 marbles. He wins 27 marbles. How many marbles does Theo have?");
  const auto n_looked = [&](const char* client, std::optional<bool> wish) {
    Ask ask = asked("odo/default");
    ask.client = client;
    ask.calculates = false;
    ask.tools = std::vector<std::string>();
    ask.effort.looks_in_doubt = wish;
    const Whole whole = run(ask, request);
    EXPECT_NE(whole.steps("answer").front().detail.find("\"thinks\":true"), std::string::npos)
        << "the model in the box is sure of this now: another question is needed";
    return whole.steps("retrieve").size();
  };
  EXPECT_EQ(n_looked("desk", true), 1u);
  EXPECT_EQ(n_looked("desk", {}), 0u);
  EXPECT_EQ(n_looked("phone", true), 0u) << "who has none";
}

TEST_F(OdoTest, PipelinesRunTheirSteps) {
  Ask ask = asked("odo/chain");
  EXPECT_TRUE(run(ask, question("What is the capital of France?")).steps("first").empty());
  ask.pipeline = true;
  const Whole whole = run(ask, question("What is the capital of France?"));
  ASSERT_EQ(whole.steps("first").size(), 1u);
  ASSERT_EQ(whole.steps("second").size(), 1u);
  EXPECT_GT(whole.steps("first").front().tokens, 0);
  EXPECT_FALSE(whole.content.empty());
  ask.pipeline.reset();
  ask.mode = "ultra";
  EXPECT_EQ(run(ask, question("What is the capital of France?")).steps("second").size(), 1u);
  ask.mode = "fast";
  EXPECT_TRUE(run(ask, question("What is the capital of France?")).steps("second").empty());
}

// How long the prompts of a stage's answers were, in their order.
std::vector<int32_t> prompts_of(const Whole& whole, const std::string& stage) {
  std::vector<int32_t> lengths;
  for (const StepReport& step : whole.steps(stage)) {
    for (const orchestrator::ModelTime& answer : step.answers) lengths.push_back(answer.usage.prompt_tokens);
  }
  return lengths;
}

TEST_F(OdoTest, StepsSideBySideReadWhatWasBeforeThemAndNotEachOther) {
  write("crew",
        "steps:\n  - {agent: plan, prompt: Make a plan., iterations: 2}\n"
        "  - parallel:\n      - {agent: left, prompt: Answer in one short sentence.}\n"
        "      - {agent: right, prompt: Answer in one short sentence.}\n"
        "  - {agent: report, prompt: Answer in one short sentence.}\n");
  odo_.reset();
  OdoConfig config;
  config.route_folders = {folder_.string()};
  odo_ = std::make_unique<Odo>(*chat_, box_, Shelves(), config);
  Ask ask = asked("odo/crew");
  ask.pipeline = true;
  const Whole whole = run(ask, question("What is the capital of France?"));
  const auto plan = prompts_of(whole, "plan"), left = prompts_of(whole, "left"), right = prompts_of(whole, "right"),
             report = prompts_of(whole, "report");
  ASSERT_EQ(plan.size(), 2u);
  ASSERT_EQ(left.size() + right.size() + report.size(), 3u);
  EXPECT_GT(plan[1], plan[0]) << "each time it sees what it wrote before";
  EXPECT_GT(left[0], plan[0]) << "the plan is read";
  EXPECT_EQ(left[0], right[0]) << "neither reads the other";
  EXPECT_GT(report[0], left[0] + 2) << "both are read";
  EXPECT_FALSE(whole.content.empty());
}

TEST_F(OdoTest, EveryStepOfAPipelineReadsTheWholeConversation) {
  Ask ask = asked("odo/chain");
  ask.pipeline = true;
  const Whole alone = run(ask, question("What is the capital of France?"));
  constexpr int kWords = 60;  // each at least a token
  std::string words;
  for (int i = 0; i < kWords; ++i) words += "seven ";
  const auto with = [&](const std::function<void(ChatRequest&)>& add) {
    ChatRequest request = question("What is the capital of France?");
    add(request);
    return run(ask, std::move(request));
  };
  const auto say = [&](const char* role) {
    chat::Message message;
    message.role = role;
    message.content = words;
    return message;
  };
  const std::vector<std::pair<const char*, Whole>> wholes = {
      {"the caller's system prompt",
       with([&](ChatRequest& r) { r.messages.insert(r.messages.begin(), say("system")); })},
      {"earlier turns", with([&](ChatRequest& r) {
         r.messages.insert(r.messages.begin(), {say("user"), say("assistant")});
       })},
      {"texts that were found", with([&](ChatRequest& r) {
         r.looked_up.push_back({"a note", words, 0});
       })}};
  for (const auto& [what, whole] : wholes) {
    for (const char* stage : {"first", "second"}) {
      const auto before = prompts_of(alone, stage), after = prompts_of(whole, stage);
      ASSERT_EQ(before.size(), 1u);
      ASSERT_EQ(after.size(), 1u);
      EXPECT_GE(after[0], before[0] + kWords - 20) << what << ", " << stage;
    }
  }
}

// What is there by then is the answer; no step begins behind it that is not named.
TEST_F(OdoTest, ALatePipelineEnds) {
  Ask ask = asked("odo/chain");
  ask.pipeline = true;
  ChatRequest request = question("What is the capital of France?");
  request.max_tokens = 1500;
  const auto began = std::chrono::steady_clock::now();
  request.deadline = began + std::chrono::milliseconds(1);
  const Whole whole = run(ask, std::move(request));
  EXPECT_EQ(whole.last.kind, ChatChunk::Kind::finished);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
}

// What the model would choose is its own affair; that it is asked, and only where nothing else is sure, is seen.
TEST_F(OdoTest, TheModelIsAskedForARouteWhereThatIsWishedFor) {
  write("sums", "match: {words: [addition]}\n");
  const auto routing = [&](const std::string& text) {
    ChatRequest request = question(text);
    request.max_tokens = 1;
    return run(asked("odo"), request).steps("route").front();
  };
  odo_.reset();
  OdoConfig config;
  config.route_folders = {folder_.string()};
  odo_ = std::make_unique<Odo>(*chat_, box_, Shelves(), config);
  const auto n_asked = [&] { return chat_->engine().stats().requests_finished; };
  const auto n_of = [&](const std::string& text) {
    const auto before = n_asked();
    routing(text);
    return n_asked() - before;
  };
  EXPECT_EQ(n_of("Where do storks spend the winter?"), 1u);
  config.asks_model_for_routes = true;
  odo_ = std::make_unique<Odo>(*chat_, box_, Shelves(), config);
  EXPECT_GT(n_of("Where do storks spend the winter?"), 1u);
  EXPECT_EQ(n_of("Explain addition."), 1u) << "a rule is sure";
  EXPECT_EQ(routing("Explain addition.").about.find("sums"), 0u);
}

TEST_F(OdoTest, NamesAndWhatIsNone) {
  EXPECT_TRUE(Odo::is_odo("odo") && Odo::is_odo("odo/x"));
  EXPECT_FALSE(Odo::is_odo("odometer") || Odo::is_odo("chimere-nano") || Odo::is_odo(""));
  const Status unknown = odo_->check(asked("odo/nothing"));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::not_found);
  EXPECT_NE(unknown.error().message.find("odo, odo/fast, odo/quality, odo/ultra, odo/chain, odo/default"),
            std::string::npos)
      << unknown.error().message;
  Ask ask = asked("odo");
  ask.mode = "slow";
  EXPECT_FALSE(odo_->check(ask));
  ask.mode.clear();
  ask.route = "nothing";
  EXPECT_FALSE(odo_->check(ask));
  ask.route.clear();
  ask.tools = {"no_tool"};
  EXPECT_FALSE(odo_->check(ask));
  const Whole whole = run(ask, question("Hello!"));
  EXPECT_EQ(whole.last.kind, ChatChunk::Kind::failed);
  EXPECT_EQ(whole.n_started, 0);
}

TEST_F(OdoTest, TracesAreOfWhoAsked) {
  Ask ask = asked("odo/fast");
  ask.client = "desk";
  const Whole whole = run(ask, question("Hello!"));
  ASSERT_TRUE(whole.last.run);
  const auto trace = odo_->traces().find(whole.last.run->id, "desk");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->model, "odo/fast");
  EXPECT_EQ(trace->run.mode, "fast");
  EXPECT_EQ(trace->finish, "stop");
  EXPECT_EQ(trace->usage.completion_tokens, whole.last.usage.completion_tokens);
  EXPECT_FALSE(odo_->traces().find(whole.last.run->id, "phone"));
  EXPECT_TRUE(odo_->traces().list("phone", 10).empty());
  EXPECT_EQ(odo_->stage_counts().at("answer").n, 1u);
}

TEST_F(OdoTest, ARunThatIsCancelledOrLeftEnds) {
  ChatRequest request = question("Count from one to two hundred.");
  request.max_tokens = 1500;
  for (const int32_t id : chat_->tokenizer().eog_ids()) request.sampling.logit_bias.push_back({id, -100.0f});
  auto stream = odo_->start(asked("odo"), request, {});
  bool is_cancelled = false;
  const Whole whole = read(*stream, [&](const ChatChunk& chunk) {
    if (chunk.content.empty() || is_cancelled) return;
    is_cancelled = true;
    stream->cancel();
  });
  EXPECT_EQ(whole.last.finish, Finish::cancelled);
  EXPECT_LT(whole.last.usage.completion_tokens, 1500);
  odo_->start(asked("odo"), request, {});  // and gone
  odo_.reset();                            // waits for its runs: they notice
}

TEST_F(OdoTest, APromptThatDoesNotFitSaysSo) {
  const Whole whole = run(asked("odo"), question(std::string(30'000, 'a')));
  EXPECT_EQ(whole.last.kind, ChatChunk::Kind::failed);
  EXPECT_TRUE(whole.last.is_too_long);
  EXPECT_GT(whole.last.usage.prompt_tokens, 2048);
  EXPECT_EQ(whole.n_started, 0);
}

}  // namespace
}  // namespace chimere::odo
