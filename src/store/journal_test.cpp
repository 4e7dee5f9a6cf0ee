#include "store/journal.h"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/scratch_for_test.h"
#include "store/postgres_for_test.h"
#include "store/sqlite.h"

namespace chimere::store {
namespace {

// All of it in SQLite and in PostgreSQL.
class JournalTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!is_file() && !fixture::PostgresServer::get()) GTEST_SKIP() << fixture::PostgresServer::why_not();
  }
  bool is_file() const { return std::string(GetParam()) == "sqlite"; }
  std::string path() const { return (folder_ / "journal.db").string(); }
  std::string place() {
    if (is_file()) return path();
    if (url_.empty()) {
      static int n = 0;
      url_ = fixture::PostgresServer::get()->url("journal_" + std::to_string(++n));
    }
    return url_;
  }
  std::shared_ptr<Journal> open(Journal::Consent consent = Journal::Consent::given, JournalLimits limits = {}) {
    auto opened = Journal::open(place(), consent, limits);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    return opened ? *opened : nullptr;
  }
  static chat::Message said(const std::string& role, const std::string& text) {
    chat::Message message;
    message.role = role;
    message.content = text;
    return message;
  }
  static JournalAnswer answer(const std::string& owner, const std::string& id, const std::string& question = "hello") {
    JournalAnswer made;
    made.owner = owner;
    made.request_id = id;
    made.answer_id = "chatcmpl-" + id;
    made.created = static_cast<int64_t>(std::time(nullptr));
    made.model = "nano";
    made.messages = {said("user", question)};
    made.answer = "answer to " + question;
    made.finish = "stop";
    return made;
  }
  // Of a database that replicas share, in its rows.
  bool is_on_disk(const std::string& text) {
    if (!is_file()) return is_in_rows(text);
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      if (bytes.find(text) != std::string::npos) return true;
    }
    return false;
  }
  bool is_in_rows(const std::string& text) {
    auto journal = open();
    const auto owners = journal->owners();
    EXPECT_TRUE(owners);
    for (const std::string& owner : *owners) {
      const auto kept = journal->list(owner, 0, 1000);
      EXPECT_TRUE(kept);
      for (const KeptAnswer& answer : *kept) {
        std::string all = answer.messages + answer.answer + answer.tool_calls;
        for (const auto& said : answer.feedback) all += said.text;
        if (all.find(text) != std::string::npos) return true;
      }
    }
    return false;
  }

  const std::filesystem::path folder_ = fixture::scratch_folder();

 private:
  std::string url_;
};

INSTANTIATE_TEST_SUITE_P(Stores, JournalTest, testing::Values("sqlite", "postgresql"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(JournalTest, KeepsAnswersByOwnerAndGivesThemBackNewestFirst) {
  auto journal = open();
  journal->add(answer("ann", "a"));
  journal->add(answer("bob", "b"));
  journal->add(answer("ann", "c", "and now?"));
  const auto ann = journal->list("ann", 0, 10);
  ASSERT_TRUE(ann && ann->size() == 2);
  EXPECT_EQ((*ann)[0].request_id, "c");
  EXPECT_EQ((*ann)[1].messages, R"([{"role":"user","content":"hello"}])");
  EXPECT_EQ((*ann)[1].answer, "answer to hello");
  const auto rest = journal->list("ann", (*ann)[0].id, 10);
  ASSERT_TRUE(rest && rest->size() == 1);
  EXPECT_FALSE(journal->find("ann", "b")->has_value());  // another's
  EXPECT_TRUE(journal->find("bob", "chatcmpl-b")->has_value());
  EXPECT_EQ(*journal->owners(), (std::vector<std::string>{"ann", "bob"}));
  EXPECT_EQ(journal->counts().kept, 3u);
}

// Another process may keep a file to itself for longer than a write waits: one that was stopped in the middle of its own.
TEST_P(JournalTest, WhatAnotherProcessKeepsFromTheDiskWaits) {
  if (!is_file()) GTEST_SKIP() << "of a file";
  auto journal = open(Journal::Consent::given, {.patience = std::chrono::milliseconds(20)});
  journal->add(answer("ann", "before"));
  EXPECT_EQ(journal->list("ann", 0, 10)->size(), 1u);
  {
    auto other = Database::open(path(), Database::Mode::write);
    ASSERT_TRUE(other);
    const auto held = Transaction::begin(*other, Database::Mode::write);
    ASSERT_TRUE(held);
    journal->add(answer("ann", "meanwhile"));
    EXPECT_FALSE(journal->give("ann", "before", {FeedbackKind::thumb_up, 0, {}}));
    EXPECT_EQ(journal->counts().waiting, 1u);
    EXPECT_EQ(journal->counts().failed, 0u);
  }
  // Said of it as soon as the file is free: it is there.
  EXPECT_TRUE(journal->give("ann", "meanwhile", {FeedbackKind::thumb_up, 0, {}}));
  EXPECT_EQ(journal->list("ann", 0, 10)->size(), 2u);
  EXPECT_EQ(journal->counts().kept, 2u);
  EXPECT_EQ(journal->counts().waiting, 0u);
}

TEST_P(JournalTest, WithoutAnAgreementNothingReachesTheDisk) {
  auto journal = open(Journal::Consent::ask);
  journal->add(answer("ann", "a", "the question before"));
  journal->add(answer("bob", "b", "a very secret question"));
  EXPECT_EQ(journal->state("ann")->answers, 0u);
  EXPECT_FALSE(journal->state("ann")->agreed.has_value());
  EXPECT_FALSE(is_on_disk("question"));
  // The answer about which somebody was asked counts.
  ASSERT_TRUE(journal->agree("ann", true));
  EXPECT_TRUE(journal->keeps("ann"));
  EXPECT_TRUE(journal->give("ann", "a", {FeedbackKind::thumb_up, 0, {}}));
  ASSERT_TRUE(journal->agree("bob", false));
  EXPECT_FALSE(journal->hears("bob"));
  ASSERT_TRUE(journal->agree("bob", true));
  EXPECT_EQ(journal->state("bob")->answers, 0u);  // what was held when bob refused is gone
  ASSERT_TRUE(journal->agree("ann", false));
  journal->add(answer("ann", "c", "a very secret question"));
  EXPECT_EQ(journal->state("ann")->answers, 1u);
  EXPECT_TRUE(is_on_disk("the question before"));
  EXPECT_FALSE(is_on_disk("a very secret question"));
}

TEST_P(JournalTest, OfThoseWhoWereNotAskedTheLatestAreHeld) {
  JournalLimits limits;
  limits.held_bytes = 2'000;
  auto journal = open(Journal::Consent::ask, limits);
  for (int i = 0; i < 20; ++i) journal->add(answer("ann", std::to_string(i)));
  ASSERT_TRUE(journal->agree("ann", true));
  const auto kept = journal->list("ann", 0, 100);
  ASSERT_TRUE(kept && !kept->empty());
  EXPECT_LT(kept->size(), 10u);
  EXPECT_EQ(kept->front().request_id, "19");
}

TEST_P(JournalTest, AgreementsOutliveTheProcess) {
  ASSERT_TRUE(open(Journal::Consent::ask)->agree("ann", true));
  ASSERT_TRUE(open(Journal::Consent::given)->agree("bob", false));
  auto journal = open(Journal::Consent::ask);
  EXPECT_TRUE(journal->keeps("ann"));
  EXPECT_EQ(journal->state("bob")->agreed, false);
}

TEST_P(JournalTest, MasksWhatIsPersonal) {
  auto journal = open();
  JournalAnswer made = answer("ann", "a", "my address is ann@example.org");
  made.tool_calls = {{"", "mail", R"({"to":"ann@example.org"})"}};
  journal->add(std::move(made));
  ASSERT_TRUE(journal->give("ann", "a", {FeedbackKind::correction, 0, "call +33 6 12 34 56 78"}));
  const KeptAnswer kept = journal->find("ann", "a")->value();
  EXPECT_EQ(kept.answer, "answer to my address is [email]");
  EXPECT_EQ(kept.feedback[0].text, "call [phone]");
  EXPECT_NE(kept.tool_calls.find("[email]"), std::string::npos);
  journal.reset();
  EXPECT_FALSE(is_on_disk("ann@example.org"));
  EXPECT_FALSE(is_on_disk("12 34 56"));
}

TEST_P(JournalTest, APersonsLastWordCounts) {
  auto journal = open();
  journal->add(answer("ann", "a"));
  const auto rating = [&] { return journal->find("ann", "a")->value().rating(); };
  EXPECT_EQ(rating(), 0);
  ASSERT_TRUE(journal->give("ann", "a", {FeedbackKind::copied, 0, {}}));
  EXPECT_EQ(rating(), 0);
  ASSERT_TRUE(journal->give("ann", "chatcmpl-a", {FeedbackKind::thumb_up, 0, {}}));
  EXPECT_EQ(rating(), 5);
  ASSERT_TRUE(journal->give("ann", "a", {FeedbackKind::thumb_down, 0, {}}));
  EXPECT_EQ(rating(), 1);
  ASSERT_TRUE(journal->give("ann", "a", {FeedbackKind::rating, 4, {}}));
  EXPECT_EQ(rating(), 4);
  ASSERT_TRUE(journal->give("ann", "a", {FeedbackKind::no_thumb, 0, {}}));
  EXPECT_EQ(journal->find("ann", "a")->value().feedback.size(), 2u);  // copied, rating
  EXPECT_EQ(journal->give("bob", "a", {FeedbackKind::thumb_up, 0, {}}).error().code, Code::not_found);
  EXPECT_EQ(journal->state("ann")->feedback, 2u);
}

TEST_P(JournalTest, WhatIsErasedIsNotOnTheDisk) {
  auto journal = open();
  for (int i = 0; i < 50; ++i) {
    JournalAnswer made = answer("ann", std::to_string(i), i % 2 ? "the first conversation" : "the other conversation");
    made.answer += std::string(3000, 'x') + "remarkable-" + std::to_string(i % 2);
    journal->add(std::move(made));
  }
  journal->add(answer("bob", "b", "what bob asked"));
  ASSERT_TRUE(journal->give("ann", "1", {FeedbackKind::correction, 0, "a remarkable correction"}));
  ASSERT_TRUE(is_on_disk("remarkable-1"));
  const std::string conversation = journal->find("ann", "1")->value().conversation;
  EXPECT_EQ(*journal->erase_conversation("ann", conversation), 25u);
  EXPECT_FALSE(is_on_disk("remarkable-1"));
  EXPECT_FALSE(is_on_disk("a remarkable correction"));
  EXPECT_TRUE(is_on_disk("remarkable-0"));
  EXPECT_EQ(*journal->erase_answer("ann", "0"), 1u);
  EXPECT_EQ(*journal->erase("ann"), 24u);
  EXPECT_FALSE(is_on_disk("remarkable"));
  EXPECT_TRUE(is_on_disk("what bob asked"));
  EXPECT_EQ(journal->state("ann")->answers, 0u);
}

TEST_P(JournalTest, OldAndTooMuchGoes) {
  JournalLimits limits;
  limits.days = 10;
  limits.owner_bytes = 5000;
  auto journal = open(Journal::Consent::given, limits);
  const auto now = static_cast<int64_t>(std::time(nullptr));
  for (int i = 0; i < 20; ++i) {
    JournalAnswer made = answer("ann", std::to_string(i));
    made.created = i < 5 ? now - 20 * 86'400 : now;
    made.answer = std::string(1000, 'x');
    journal->add(std::move(made));
  }
  ASSERT_EQ(journal->state("ann")->answers, 20u);
  EXPECT_EQ(*journal->prune(now), 16u);
  EXPECT_TRUE(journal->find("ann", "19")->has_value());
  EXPECT_LE(journal->state("ann")->bytes, 5000u);
}

TEST_P(JournalTest, LargeOnesAreCountedAndNotKept) {
  JournalLimits limits;
  limits.answer_bytes = 1000;
  auto journal = open(Journal::Consent::given, limits);
  journal->add(answer("ann", "a", std::string(2000, 'x')));
  journal->add(answer("ann", "b"));
  EXPECT_EQ(journal->state("ann")->answers, 1u);
  EXPECT_EQ(journal->counts().dropped, 1u);
}

TEST_P(JournalTest, OfTwoByOneRequestTheLaterCounts) {
  auto journal = open();
  journal->add(answer("ann", "a", "first"));
  ASSERT_EQ(journal->state("ann")->answers, 1u);
  journal->add(answer("ann", "a", "second"));
  journal->add(answer("bob", "a", "third"));
  const auto kept = journal->list("ann", 0, 10);
  ASSERT_TRUE(kept && kept->size() == 1);
  EXPECT_EQ(kept->front().answer, "answer to second");
  EXPECT_EQ(journal->state("bob")->answers, 1u);
}

TEST_P(JournalTest, AScoreIsReplacedAndAPersonsWordNeedsNone) {
  auto journal = open();
  for (const char* id : {"a", "b", "c"}) journal->add(answer("ann", id));
  ASSERT_TRUE(journal->give("ann", "b", {FeedbackKind::thumb_up, 0, {}}));
  auto unscored = journal->unscored("ann", 10);
  ASSERT_TRUE(unscored && unscored->size() == 2);
  EXPECT_EQ(unscored->front().request_id, "a");
  ASSERT_TRUE(journal->set_score(unscored->front().id, 2, "judge", "call +33 6 12 34 56 78"));
  ASSERT_TRUE(journal->set_score(unscored->front().id, 4, "sum", "it adds up"));
  ASSERT_TRUE(journal->set_score(1'000'000, 4, "sum", "of an answer that is gone"));
  EXPECT_EQ(journal->unscored("ann", 10)->size(), 1u);
  const KeptAnswer scored = journal->find("ann", "a")->value();
  EXPECT_EQ(scored.score(), 4);
  EXPECT_EQ(scored.scorer, "sum");
  EXPECT_EQ(scored.score_reason, "it adds up");
  EXPECT_EQ(journal->find("ann", "b")->value().score(), 5);
  EXPECT_EQ(journal->find("ann", "b")->value().scored, 0);
}

TEST_P(JournalTest, ToolsThatCouldBeCalledAndOddTextsAreKept) {
  auto journal = open();
  const std::string odd = std::string("zero \0 in it", 12) + " and \xff \xc3";
  JournalAnswer made = answer("ann", "a", odd);
  made.tools.push_back({R"({"name":"mail"})"});
  made.seconds = 1.5;
  made.prompt_tokens = 7;
  made.artefacts = {"lora:x"};
  journal->add(std::move(made));
  // Two owners stay two, also where the database has no such text.
  journal->add(answer(std::string("ann\0", 4), "b"));
  journal->add(answer("ann\xff", "c"));
  journal->add(answer(std::string(5'000, 'o'), "d"));
  const KeptAnswer kept = journal->find("ann", "a")->value();
  EXPECT_NE(kept.tools.find("mail"), std::string::npos);
  EXPECT_NE(kept.answer.find("answer to zero "), std::string::npos);
  EXPECT_EQ(kept.artefacts, R"(["lora:x"])");
  EXPECT_EQ(kept.milliseconds, 1500);
  EXPECT_EQ(kept.prompt_tokens, 7);
  EXPECT_EQ(journal->state("ann")->answers, 1u);
  EXPECT_EQ(journal->state(std::string("ann\0", 4))->answers, 1u);
  EXPECT_EQ(journal->state("ann\xff")->answers, 1u);
  EXPECT_EQ(journal->state(std::string(5'000, 'o'))->answers, 1u);
  EXPECT_EQ(journal->owners()->size(), 4u);
  EXPECT_EQ(journal->counts().failed, 0u);
}

TEST_P(JournalTest, WhatOneHearsOfAnAgreementBindsTheOther) {
  auto here = open(Journal::Consent::given), there = open(Journal::Consent::given);
  there->add(answer("ann", "a"));
  ASSERT_EQ(there->state("ann")->answers, 1u);
  ASSERT_TRUE(here->agree("ann", false));
  // It has not heard of that yet.
  EXPECT_TRUE(there->keeps("ann"));
  there->add(answer("ann", "b", "what must not be kept"));
  EXPECT_EQ(there->state("ann")->answers, 1u);
  EXPECT_FALSE(is_on_disk("what must not be kept"));
  EXPECT_EQ(there->counts().kept, 1u);
  EXPECT_FALSE(there->keeps("ann"));
  EXPECT_EQ(there->state("ann")->agreed, false);
}

TEST_P(JournalTest, WhatIsHeldIsKeptOnceAnotherHeardOfTheAgreement) {
  auto here = open(Journal::Consent::ask), there = open(Journal::Consent::ask);
  there->add(answer("ann", "a"));
  ASSERT_TRUE(here->agree("ann", true));
  EXPECT_EQ(there->state("ann")->answers, 0u);
  EXPECT_EQ(there->state("ann")->answers, 1u);
  EXPECT_TRUE(there->keeps("ann"));
}

TEST_P(JournalTest, TurnsOfAConversationAreOne) {
  const chat::Message first = said("user", "hello"), reply = said("assistant", "hi"), second = said("user", "and?"),
                      rules = said("system", "be brief");
  EXPECT_EQ(conversation_of("ann", {first}), conversation_of("ann", {first, reply, second}));
  EXPECT_NE(conversation_of("ann", {first}), conversation_of("bob", {first}));
  EXPECT_NE(conversation_of("ann", {first}), conversation_of("ann", {rules, first}));
}

TEST_P(JournalTest, ManyThreadsLoseNothing) {
  auto journal = open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string id = std::to_string(t) + "-" + std::to_string(i);
        journal->add(answer("ann", id));
        if (i % 10 != 0) continue;
        EXPECT_TRUE(journal->give("ann", id, {FeedbackKind::thumb_up, 0, {}}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(journal->state("ann")->answers, 200u);
  EXPECT_EQ(journal->state("ann")->feedback, 20u);
  journal.reset();
  EXPECT_EQ(open()->state("ann")->answers, 200u);
}

TEST_P(JournalTest, AFileOfAnotherKindIsRefused) {
  if (!is_file()) return;  // where tables of others may stand beside those of the journal
  {
    auto other = Database::open(path(), Database::Mode::write);
    ASSERT_TRUE(other && other->execute("CREATE TABLE t(x)"));
  }
  const auto opened = Journal::open(path(), Journal::Consent::ask);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("expected a database of answers"), std::string::npos) << opened.error().message;
}

TEST_P(JournalTest, AcceptedAreThoseThatTheirOwnerHoldsForRight) {
  auto journal = open();
  for (const char* id : {"up", "down", "four", "three", "taken back", "corrected", "unsaid"})
    journal->add(answer("ann", id));
  JournalAnswer from_web = answer("ann", "web");
  from_web.foreign = {"web"};
  journal->add(std::move(from_web));
  journal->add(answer("bob", "bobs"));
  const auto say = [&](const char* owner, const char* id, FeedbackKind kind, int rating = 0) {
    EXPECT_TRUE(journal->give(owner, id, {kind, rating, kind == FeedbackKind::correction ? "better" : ""}));
  };
  say("ann", "up", FeedbackKind::thumb_up);
  say("ann", "web", FeedbackKind::thumb_up);
  say("ann", "down", FeedbackKind::thumb_down);
  say("ann", "four", FeedbackKind::rating, 4);
  say("ann", "three", FeedbackKind::rating, 3);
  say("ann", "taken back", FeedbackKind::thumb_up);
  say("ann", "taken back", FeedbackKind::thumb_down);
  say("ann", "corrected", FeedbackKind::correction);
  say("bob", "bobs", FeedbackKind::thumb_up);
  const auto accepted = journal->accepted("ann", 10);
  ASSERT_TRUE(accepted);
  std::vector<std::string> ids;
  for (const KeptAnswer& kept : *accepted) ids.push_back(kept.request_id);
  EXPECT_EQ(ids, (std::vector<std::string>{"corrected", "four", "up"}));
  EXPECT_EQ(journal->accepted("ann", 1)->size(), 1u);
}

}  // namespace
}  // namespace chimere::store
