// shared_journal_test.cpp  A journal in PostgreSQL: a database that goes away and comes back, processes that are killed,
// who leads, and what is shown of its URL.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <ctime>
#include <set>
#include <thread>

#include "store/journal.h"
#include "store/journal_url.h"
#include "store/postgres_for_test.h"

namespace chimere::store {
namespace {

using fixture::PostgresServer;

JournalAnswer asked(const std::string& owner, const std::string& id) {
  JournalAnswer made;
  made.owner = owner;
  made.request_id = id;
  made.created = static_cast<int64_t>(std::time(nullptr));
  made.messages.emplace_back();
  made.messages.back().role = "user";
  made.messages.back().content = "question " + id;
  made.answer = "answer " + id;
  return made;
}

class SharedJournal : public testing::Test {
 protected:
  void SetUp() override {
    if (!PostgresServer::get()) GTEST_SKIP() << PostgresServer::why_not();
    static int n = 0;
    url_ = PostgresServer::get()->url("shared_" + std::to_string(++n));
  }
  std::shared_ptr<Journal> open(JournalLimits limits = {}) const {
    auto opened = Journal::open(url_, Journal::Consent::given, limits);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    return opened ? *opened : nullptr;
  }
  template <class Condition>
  static bool comes_true(const Condition& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  }

  std::string url_;
};

TEST_F(SharedJournal, WhileTheDatabaseIsAwayAnswersWaitAndWhatIsTooMuchIsCounted) {
  JournalLimits limits;
  limits.waiting_bytes = 2'000;
  auto journal = open(limits);
  journal->add(asked("ann", "before"));
  ASSERT_EQ(journal->state("ann")->answers, 1u);
  PostgresServer::get()->stop();
  uint64_t added = 1;
  for (int i = 0; i < 20; ++i, ++added) journal->add(asked("ann", std::to_string(i)));
  EXPECT_TRUE(comes_true([&] { return !journal->state("ann"); }));
  const JournalCounts away = journal->counts();
  EXPECT_GT(away.waiting, 0u);
  EXPECT_GT(away.dropped, 0u);
  EXPECT_EQ(away.kept + away.waiting + away.dropped, added);
  EXPECT_EQ(journal->give("ann", "before", {FeedbackKind::thumb_up, 0, {}}).error().code, Code::io);
  PostgresServer::get()->go_on();
  EXPECT_TRUE(comes_true([&] { return journal->counts().waiting == 0; }));
  const JournalCounts back = journal->counts();
  EXPECT_EQ(back.failed, 0u);
  EXPECT_EQ(back.dropped, away.dropped);
  EXPECT_EQ(back.kept, added - away.dropped);
  EXPECT_EQ(journal->state("ann")->answers, back.kept);
  EXPECT_TRUE(journal->give("ann", "before", {FeedbackKind::thumb_up, 0, {}}));
}

TEST_F(SharedJournal, WhatWaitsWhenAllEndsIsCountedAsFailed) {
  auto journal = open();
  std::vector<std::string> told;
  journal->tell_of_trouble([&](const std::string& text) { told.push_back(text); });
  PostgresServer::get()->stop();
  journal->add(asked("ann", "a"));
  EXPECT_TRUE(comes_true([&] { return journal->counts().waiting == 1 && !journal->state("ann"); }));
  journal.reset();
  ASSERT_GE(told.size(), 1u);
  EXPECT_NE(told.back().find("1 answers were not kept"), std::string::npos) << told.back();
  PostgresServer::get()->go_on();
}

TEST_F(SharedJournal, OneLeadsAndAnotherGoesOnWhereItIsGone) {
  (void)open();
  auto first = std::make_unique<SharedJobs>(url_);
  SharedJobs second(url_);
  EXPECT_TRUE(*first->lead());
  EXPECT_TRUE(*first->lead());
  EXPECT_FALSE(*second.lead());
  EXPECT_FALSE(second.set_time("lora", 1, true));
  auto journal = open();
  journal->add(asked("ann", "a"));
  journal->add(asked("bob", "b"));
  ASSERT_EQ(journal->owners()->size(), 2u);
  ASSERT_TRUE(first->set_time("lora", 7, true));
  ASSERT_TRUE(first->set_time("scores", 9, false));
  ASSERT_TRUE(second.add({"scores", "ann"}));
  ASSERT_TRUE(second.add({"scores", "ann"}));
  ASSERT_TRUE(first->remove({"lora", "ann"}));
  first.reset();
  EXPECT_TRUE(comes_true([&] { return *second.lead(); }));
  EXPECT_EQ(*second.waiting(), (std::vector<SharedJob>{{"lora", "bob"}, {"scores", "ann"}}));
  EXPECT_EQ(*second.times(), (std::map<std::string, int64_t>{{"lora", 7}, {"scores", 9}}));
  // Another journal of the same database has a leader of its own.
  const std::string other = PostgresServer::get()->url("another_journal");
  ASSERT_TRUE(Journal::open(other, Journal::Consent::ask));
  EXPECT_TRUE(*SharedJobs(other).lead());
}

TEST_F(SharedJournal, OneLearnsAtATimeUntilItsSessionEnds) {
  auto here = open(), there = open();
  {
    auto lock = here->lock_runs();
    ASSERT_TRUE(lock && *lock);
    EXPECT_TRUE((*lock)->is_held(true));
    auto none = there->lock_runs();
    EXPECT_TRUE(none && !*none);
    PostgresServer::get()->sql(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype='advisory' AND granted AND "
        "pid<>pg_backend_pid()");
    EXPECT_FALSE((*lock)->is_held(true));
    EXPECT_FALSE((*lock)->is_held());
    EXPECT_TRUE(comes_true([&] { return there->lock_runs()->has_value(); }));
  }
  EXPECT_TRUE(comes_true([&] { return here->lock_runs()->has_value(); }));
}

// A process that writes, says so, and is killed whenever that is. What it said is there.
TEST_F(SharedJournal, NothingThatWasAcknowledgedIsLostInAHundredKills) {
  (void)open();  // makes the tables
  constexpr int kKills = 100;
  std::set<std::string> acknowledged;
  unsigned draw = 11;
  for (int kill = 0; kill < kKills; ++kill) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto journal = Journal::open(url_, Journal::Consent::given);
      for (int i = 0; journal; ++i) {
        const std::string id = std::to_string(kill) + "-" + std::to_string(i);
        (*journal)->add(asked("ann", id));
        const auto kept = (*journal)->find("ann", id);
        if (!kept || !*kept || !(*journal)->set_score((*kept)->id, 1 + i % 5, "judge", id)) break;
        if (!(*journal)->give("ann", id, {FeedbackKind::copied, 0, {}})) break;
        const std::string line = id + "\n";
        if (::write(ends[1], line.data(), line.size()) < 0) break;
      }
      ::_exit(1);
    }
    ::close(ends[1]);
    // Up to so many, and then somewhere in the middle of the next.
    draw = draw * 1664525u + 1013904223u;
    const size_t wanted = acknowledged.size() + 1 + (draw >> 16) % 4;
    std::string said;
    char byte = 0;
    bool is_killed = false;
    while (::read(ends[0], &byte, 1) == 1) {
      if (byte != '\n') {
        said += byte;
        continue;
      }
      acknowledged.insert(std::exchange(said, {}));
      if (is_killed || acknowledged.size() < wanted) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(draw % 3'000));
      ::kill(child, SIGKILL);
      is_killed = true;
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(is_killed) << "it ended by itself";
  }
  ASSERT_GE(acknowledged.size(), static_cast<size_t>(kKills));
  auto journal = open();
  const auto all = journal->list("ann", 0, 1'000'000);
  ASSERT_TRUE(all);
  std::set<std::string> there;
  for (const KeptAnswer& kept : *all) {
    EXPECT_TRUE(there.insert(kept.request_id).second) << kept.request_id << " is there twice";
    if (acknowledged.count(kept.request_id) == 0) continue;
    EXPECT_EQ(kept.score_reason, kept.request_id);
    EXPECT_GT(kept.scored, 0);
    EXPECT_EQ(kept.feedback.size(), 1u);
  }
  for (const std::string& id : acknowledged) EXPECT_EQ(there.count(id), 1u) << id;
  RecordProperty("acknowledged", static_cast<int>(acknowledged.size()));
}

TEST_F(SharedJournal, TablesOfANewerProgramAreRefused) {
  (void)open();
  const std::string schema = url_.substr(url_.rfind("%3D") + 3);
  PostgresServer::get()->sql("UPDATE " + schema + ".chimere_journal SET version=2");
  const auto opened = Journal::open(url_, Journal::Consent::ask);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::unsupported);
  EXPECT_NE(opened.error().message.find("expected version 1, found 2"), std::string::npos) << opened.error().message;
}

TEST(JournalUrl, ItsPasswordIsShownToNobody) {
  const std::pair<const char*, const char*> shown[] = {
      {"/var/lib/journal.db", "/var/lib/journal.db"},
      {"postgresql://ann@db/j", "postgresql://ann@db/j"},
      {"postgresql://ann:s3cret@db:5432/j", "postgresql://ann:********@db:5432/j"},
      {"postgres://ann:s3:cret@db", "postgres://ann:********@db"},
      {"postgresql://ann:s@cret@db/j", "postgresql://ann:********@db/j"},
      {"postgresql://db:5432/j", "postgresql://db:5432/j"},
      {"postgresql:///j?user=ann&password=s3cret&host=/tmp", "postgresql:///j?user=ann&password=********&host=/tmp"},
      {"postgresql://a:s3cret@db?sslpassword=s3cret", "postgresql://a:********@db?sslpassword=********"},
      {"postgresql://ann:s3cret/j", "postgresql://ann:********/j"},
      {"postgresql://[::1]:5432,db:1,ann:s3cret/j", "postgresql://[::1]:5432,db:1,ann:********/j"},
      {"postgresql://db?pass%77ord=s3cret", "postgresql://db?pass%77ord=********"},
  };
  for (const auto& [url, wanted] : shown) {
    EXPECT_EQ(without_password(url), wanted);
    EXPECT_EQ(has_password(url), std::string(url) != wanted) << url;
  }
  for (const char* url :
       {"postgresql://ann:s@cret@db/j", "postgresql://ann:s3cret@db/j?s3cret=%", "postgresql://ann:%s3cret@db",
        "postgresql://ann:s3cret@/j?host=/nowhere", "postgresql://ann:s3cret@db:s3cret/j"}) {
    const auto opened = Journal::open(url, Journal::Consent::ask);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().message.find("cret"), std::string::npos) << opened.error().message;
  }
}

}  // namespace
}  // namespace chimere::store
