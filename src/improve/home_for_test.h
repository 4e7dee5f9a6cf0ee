// home_for_test.h  A made-up owner's journal and artefacts, jobs on them, and the model in the box to do them with.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/scratch_for_test.h"
#include "improve/job.h"
#include "orchestrator/chat_model.h"
#include "orchestrator/models_for_test.h"

namespace chimere::improve {

inline Workbench& nano_bench() {
  static const std::unique_ptr<Workbench> one = [] {
    LoadOptions options;
    options.n_threads = 1;
    auto model = models::Model::load(orchestrator::kModelInTheBox, models::BackendKind::cpu, options);
    EXPECT_TRUE(model);
    auto chat = orchestrator::ChatModel::from_model(std::move(*model));
    EXPECT_TRUE(chat);
    return std::make_unique<Workbench>(std::move(*chat), 1024);
  }();
  return *one;
}

struct HomeForTest {
  explicit HomeForTest(const std::string& name)
      : folder(fixture::scratch_folder(name)),
        journal(*store::Journal::open((folder / "journal.db").string(), store::Journal::Consent::given)),
        store(*ArtefactStore::open((folder / "improve").string())) {}

  // Of the owner ann, with the first so many of the guard's questions. `given`: a candidate made elsewhere.
  RunRecord run(const std::string& kind, int n_guard, const std::string& given = {}) const {
    JobTools tools{*journal, *store, [] { return &nano_bench(); }, {}, {}, {.resamples = 2000}};
    const auto guard = read_guard(CHIMERE_TESTS_DIR "/../assets/improve/guard.jsonl");
    tools.guard.assign(guard->begin(), guard->begin() + n_guard);
    tools.given = given;
    auto run = run_job(tools, {"ann", kind, ""});
    EXPECT_TRUE(run);
    return *run;
  }

  const std::filesystem::path folder;
  const std::shared_ptr<store::Journal> journal;
  const std::shared_ptr<ArtefactStore> store;
};

}  // namespace chimere::improve
