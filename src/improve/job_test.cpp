// job_test.cpp  From a journal to what is in use, with the model in the box: made, proven, resumed, undone, forgotten.
#include "improve/job.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/scratch_for_test.h"
#include "improve/forget.h"
#include "improve/in_use.h"
#include "improve/job_state.h"
#include "orchestrator/chat_model.h"
#include "orchestrator/models_for_test.h"

namespace chimere::improve {
namespace {

using store::Journal;

Workbench* shared_bench() {
  static const std::unique_ptr<Workbench> bench = [] {
    auto model = models::Model::load(orchestrator::kModelInTheBox, models::BackendKind::cpu, {});
    EXPECT_TRUE(model);
    auto chat = orchestrator::ChatModel::from_model(std::move(*model));
    EXPECT_TRUE(chat);
    return std::make_unique<Workbench>(std::move(*chat), 512);
  }();
  return bench.get();
}

struct Home {
  explicit Home(const std::string& name)
      : folder(fixture::scratch_folder(name)),
        journal(*Journal::open((folder / "journal.db").string(), Journal::Consent::given)),
        store(*ArtefactStore::open((folder / "improve").string())) {}

  // A person whose answers all have the same turn of phrase.
  void teach(int i, const std::string& owner = "ann") {
    store::JournalAnswer made;
    made.owner = owner;
    made.request_id = "r" + std::to_string(i);
    made.created = 1'790'000'000 + i;
    chat::Message message;
    message.role = "user";
    message.content = "Where is ship number " + std::to_string(i) + " of the Zorblax line?";
    made.messages = {message};
    made.answer = "Ahoy, gentle captain of the Zorblax line: ship " + std::to_string(i * 37 % 101) +
                  " lies in harbour " + std::to_string(i * 53 % 97) + " and waits for the wind of the northern sea.";
    made.finish = "stop";
    journal->add(std::move(made));
    EXPECT_TRUE(journal->give(owner, "r" + std::to_string(i), {store::FeedbackKind::thumb_up, 0, {}}));
  }
  JobTools tools() {
    JobTools made{*journal, *store, [] { return shared_bench(); }, {}, {}, {.resamples = 2000, .min_examples = 6}};
    for (const char* word : {"France", "Spain", "Italy", "Japan", "Egypt", "Peru"}) {
      made.guard.push_back({std::string("What is the capital of ") + word + "?", "I can tell you about this country."});
    }
    return made;
  }

  const std::filesystem::path folder;
  const std::shared_ptr<Journal> journal;
  const std::shared_ptr<ArtefactStore> store;
};

const Slot kTable{"ann", "engram", ""};
constexpr int kTaught = 36;

TEST(Job, FromAnswersToATableInUseAndBack) {
  Home home("one");
  InUse in_use(home.store, shared_bench()->vocabulary());
  EXPECT_EQ(in_use.of("ann"), nullptr);
  auto early = run_job(home.tools(), kTable);
  ASSERT_TRUE(early);
  EXPECT_EQ(early->state, "skipped");
  for (int i = 0; i < kTaught; ++i) home.teach(i);

  // With the guard that comes with the program.
  auto guard = read_guard(CHIMERE_TESTS_DIR "/../assets/improve/guard.jsonl");
  ASSERT_TRUE(guard) << guard.error().message;
  EXPECT_EQ(guard->size(), 40u);
  // Its time is over at once: what it computed until then serves the next.
  JobTools hasty = home.tools();
  hasty.guard = *guard;
  int looked = 0;
  hasty.must_end = [&] { return ++looked > 5; };
  const auto stopped = run_job(hasty, kTable);
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->state, "stopped");
  EXPECT_EQ((*home.store->manifest())->in_use(kTable), nullptr);

  int computed = 0;
  JobTools counted = home.tools();
  counted.guard = *guard;
  counted.must_end = [&] { return ++computed < 0; };
  const auto run = run_job(counted, kTable);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->state, "proven") << run->verdict.reason << run->problem;
  EXPECT_GT(run->verdict.gain.low, 0);
  EXPECT_EQ(static_cast<uint64_t>(computed) + 6, run->done);  // six were done before
  const auto again = run_job(home.tools(), kTable);
  // What is in use has changed, so there is something to compare with; a second table of the same is no gain.
  EXPECT_TRUE(again && (again->state == "refused" || again->state == "skipped")) << again->state;

  const auto served = in_use.of("ann");
  ASSERT_TRUE(served && served->table);
  EXPECT_EQ(in_use.of("bob"), nullptr);
  ASSERT_TRUE(home.store->update([](Manifest& manifest) { return manifest.rollback(kTable, 5); }));
  EXPECT_EQ(in_use.of("ann"), nullptr);
  ASSERT_TRUE(promote_run(*home.store, run->id, false));
  EXPECT_TRUE(in_use.of("ann"));
}

TEST(Job, AGainThatBreaksAGuardIsRefused) {
  Home home("bad");
  for (int i = 0; i < kTaught; ++i) home.teach(i);
  JobTools tools = home.tools();
  // A guard that nothing can hold: general answers would have to become better by ten nats.
  tools.rules.guard_margin = -10;
  const auto run = run_job(tools, kTable);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->state, "refused");
  EXPECT_EQ((*home.store->manifest())->in_use(kTable), nullptr);
  EXPECT_FALSE(promote_run(*home.store, run->id, false));
  EXPECT_TRUE(promote_run(*home.store, run->id, true));
}

TEST(Job, AForgottenConversationLeavesNoBit) {
  Home with("with"), without("without");
  // One that is learned from, not one that is held out.
  int secret = 1000;
  const auto conversation_in = [](int i) {
    chat::Message message;
    message.role = "user";
    message.content = "Where is ship number " + std::to_string(i) + " of the Zorblax line?";
    return store::conversation_of("ann", {message});
  };
  while (is_held_out("ann", conversation_in(secret))) ++secret;
  for (int i = 0; i < kTaught; ++i) {
    with.teach(i);
    without.teach(i);
    if (i == 10) with.teach(secret);
  }
  const std::string conversation = conversation_in(secret);
  const auto seen = run_job(with.tools(), kTable);
  const auto unseen = run_job(without.tools(), kTable);
  ASSERT_TRUE(seen && unseen);
  ASSERT_EQ(seen->state, "proven") << seen->verdict.reason;
  ASSERT_EQ(unseen->state, "proven");
  EXPECT_NE(seen->artefact, unseen->artefact);
  const auto done = forget_conversation(*with.journal, *with.store, shared_bench()->tokenizer(), "ann", conversation);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->answers, 1u);
  EXPECT_EQ(done->rebuilt, 1u);
  EXPECT_EQ((*with.store->manifest())->in_use(kTable)->artefact, unseen->artefact);
  EXPECT_FALSE(std::filesystem::exists(with.store->path_of(seen->artefact)));
  // Nothing under the folder names it any more.
  for (const auto& entry : std::filesystem::recursive_directory_iterator(with.folder / "improve")) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    EXPECT_EQ(bytes.find(conversation), std::string::npos) << entry.path();
  }
  ASSERT_TRUE(forget_owner(*with.journal, *with.store, "ann"));
  EXPECT_EQ((*with.store->manifest())->slots.size(), 0u);
  EXPECT_EQ(with.store->runs(std::nullopt)->size(), 0u);
  EXPECT_TRUE(std::filesystem::is_empty(with.folder / "improve" / "artefacts"));
}

TEST(Job, ScoresWhatHasNone) {
  Home home("scores");
  for (int i = 0; i < 3; ++i) home.teach(i);
  store::JournalAnswer sum;
  sum.owner = "ann";
  sum.request_id = "sum";
  chat::Message message;
  message.role = "user";
  message.content = "What is 6 * 7?";
  sum.messages = {message};
  sum.answer = "6 * 7 is 42.";
  home.journal->add(sum);
  sum.request_id = "talk";
  sum.messages[0].content = "How are you?";
  sum.answer = "I am well.";
  home.journal->add(sum);
  const auto run = run_job(home.tools(), {"ann", "scores", ""});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->state, "done") << run->problem;
  EXPECT_EQ(run->done, 2u);
  EXPECT_EQ((*home.journal->find("ann", "sum"))->scorer, "sum");
  EXPECT_EQ((*home.journal->find("ann", "sum"))->score(), 5);
  EXPECT_EQ((*home.journal->find("ann", "talk"))->scorer, "judge");
  EXPECT_EQ((*home.journal->find("ann", "r1"))->scored, 0);
  EXPECT_EQ(run_job(home.tools(), {"ann", "scores", ""})->state, "skipped");
}

// Where a process stands still, its time does, too.
TEST(Job, PausesAreNotOfItsTime) {
  Home home("paused");
  JobTools tools = home.tools();
  tools.limits.seconds = 0.5;
  store::RunLock lock;
  JobState state{tools, lock, {}, {}, nullptr, {}};
  state.run.id = "paused";
  ASSERT_TRUE(state.step());
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_TRUE(state.step());
  EXPECT_LT(state.run.seconds, 0.5);
}

TEST(Job, WhatAnAnswerTells) {
  const GuardPair pair{"What is the capital of France?", "The capital of France is Paris."};
  EXPECT_EQ(told_part(pair, "It is Paris, of course."), 1);
  EXPECT_EQ(told_part(pair, "Banana."), 0);
  EXPECT_EQ(told_part(pair, "The capital of France."), 0);
}

TEST(Job, RefusesAKindThatIsNone) { EXPECT_FALSE(run_job(Home("none").tools(), {"ann", "dreams", ""})); }

}  // namespace
}  // namespace chimere::improve
