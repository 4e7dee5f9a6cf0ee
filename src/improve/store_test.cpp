#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/scratch_for_test.h"
#include "improve/artefact_store.h"
#include "improve/content_hash.h"
#include "improve/report.h"
#include "improve/schedule.h"

namespace chimere::improve {
namespace {

std::shared_ptr<ArtefactStore> store_in(const std::filesystem::path& folder) {
  auto opened = ArtefactStore::open(folder.string());
  EXPECT_TRUE(opened);
  return *opened;
}

const Slot kAnns{"ann", "engram", ""};

TEST(ArtefactStore, KeepsBytesByTheirHash) {
  const auto store = store_in(fixture::scratch_folder());
  const auto hash = store->put("some bytes");
  ASSERT_TRUE(hash);
  EXPECT_EQ(*hash, content_hash("some bytes"));
  EXPECT_EQ(*store->read(*hash), "some bytes");
  std::ofstream(store->path_of(*hash)) << "other bytes";
  EXPECT_FALSE(store->read(*hash));
  EXPECT_FALSE(store->read("../manifest.json"));
}

TEST(ArtefactStore, AnotherProcessSeesTheNewManifest) {
  const auto folder = fixture::scratch_folder();
  const auto writer = store_in(folder), reader = store_in(folder);
  EXPECT_EQ((*reader->manifest())->in_use(kAnns), nullptr);
  const std::string one = *writer->put("1"), two = *writer->put("2");
  for (const std::string& hash : {one, two}) {
    ASSERT_TRUE(writer->update([&](Manifest& manifest) -> Status {
      manifest.promote(kAnns, {hash, 100, "run"});
      return Ok{};
    }));
  }
  ASSERT_NE((*reader->manifest())->in_use(kAnns), nullptr);
  EXPECT_EQ((*reader->manifest())->in_use(kAnns)->artefact, two);
  // Nobody else's.
  EXPECT_EQ((*reader->manifest())->in_use({"bob", "engram", ""}), nullptr);
  const auto back = [&](Manifest& manifest) { return manifest.rollback(kAnns, 200); };
  ASSERT_TRUE(writer->update(back));
  EXPECT_EQ((*reader->manifest())->in_use(kAnns)->artefact, one);
  ASSERT_TRUE(writer->update(back));
  EXPECT_EQ((*reader->manifest())->in_use(kAnns), nullptr);
  EXPECT_FALSE(writer->update(back));
  EXPECT_EQ((*reader->manifest())->history.size(), 4u);
}

TEST(ArtefactStore, TwoWritersLoseNothing) {
  const auto folder = fixture::scratch_folder();
  const auto write = [&](const char* owner) {
    const auto store = store_in(folder);
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(store->update([&](Manifest& manifest) -> Status {
        manifest.promote({owner, "engram", ""}, {content_hash(std::to_string(i)), i, "run"});
        return Ok{};
      }));
    }
  };
  std::thread other(write, "bob");
  write("ann");
  other.join();
  const auto manifest = *store_in(folder)->manifest();
  EXPECT_EQ(manifest->serial, 40u);
  EXPECT_EQ(manifest->history.size(), 40u);
}

TEST(ArtefactStore, RefusesAManifestThatIsNone) {
  const auto folder = fixture::scratch_folder();
  const auto store = store_in(folder);
  for (const char* text : {"", "[]", "{}", R"({"version":1,"in_use":[{"versions":[{"artefact":"../x"}]}]})"}) {
    std::ofstream(folder / "manifest.json", std::ios::trunc) << text;
    EXPECT_FALSE(store_in(folder)->manifest()) << text;
  }
}

TEST(ArtefactStore, RunsAreReadAsTheyWereWritten) {
  const auto store = store_in(fixture::scratch_folder());
  RunRecord run;
  run.slot = kAnns;
  run.id = new_run_id(run.slot, 1'700'000'000);
  run.state = "proven";
  run.learned_from = {"a", "b"};
  run.verdict.gain = {12, 0.5, 0.25, 0.75};
  run.verdict.guards = {{"general", 0.01, {40, 0, -0.001, 0.001}, true}};
  run.last_answer = 17;
  ASSERT_TRUE(store->save_run(run));
  const auto read = store->run(run.id);
  ASSERT_TRUE(read);
  EXPECT_EQ(run_text(*read), run_text(run));
  EXPECT_EQ(store->runs("bob")->size(), 0u);
  EXPECT_EQ(store->runs("ann")->size(), 1u);
  EXPECT_FALSE(store->run("../../etc/passwd"));
  const std::string text = report_markdown(report_of(Manifest(), *store->runs("ann"), "ann"));
  EXPECT_NE(text.find("+0.5000 [+0.2500, +0.7500]"), std::string::npos) << text;
}

TEST(ArtefactStore, OneRunAtATime) {
  const auto folder = fixture::scratch_folder();
  const auto a = store_in(folder), b = store_in(folder);
  const auto lock = a->lock_runs();
  ASSERT_TRUE(lock && *lock);
  const auto second = b->lock_runs();
  ASSERT_TRUE(second);
  EXPECT_FALSE(*second);
}

TEST(Schedule, ReadsAndWritesTimes) {
  for (const char* text : {"03:00", "mon 02:00", "every 6h", "off"}) {
    const auto when = parse_when(text);
    ASSERT_TRUE(when) << text;
    EXPECT_EQ(when_text(*when), text);
  }
  for (const char* text : {"", "24:00", "3:00", "every h", "every 0h", "moo 02:00", "03:00 "}) {
    EXPECT_FALSE(parse_when(text)) << text;
  }
  Schedule schedule = default_schedule();
  EXPECT_TRUE(set_when(schedule, "engram=off"));
  EXPECT_FALSE(set_when(schedule, "dreams=03:00"));
}

TEST(Schedule, CatchesUpOnceAfterDowntime) {
  const int64_t day = 86'400, begin = 1'790'000'000;
  for (const char* text : {"03:00", "mon 02:00", "every 6h"}) {
    const When when = *parse_when(text);
    const int64_t due = due_after(when, begin);
    EXPECT_GT(due, begin);
    EXPECT_LE(due, begin + 8 * day);
    // Down for thirty days: due long ago. Once done, the next is ahead.
    EXPECT_LT(due, begin + 30 * day);
    EXPECT_GT(due_after(when, begin + 30 * day), begin + 30 * day);
  }
  EXPECT_EQ(due_after(*parse_when("off"), begin), 0);
  const auto file = (fixture::scratch_folder() / "clock.json").string();
  EXPECT_TRUE(read_last_times(file).empty());
  ASSERT_TRUE(write_last_times(file, {{"engram", begin}}));
  EXPECT_EQ(read_last_times(file).at("engram"), begin);
}

}  // namespace
}  // namespace chimere::improve
