// job.h  One try to become better, from the journal to a verdict: `engram`, `prompts`, ... Each can run alone.
//
// A job keeps what it has computed as it goes: after kill -9, or when its time is over, the next one of its kind goes on
// where it was. One runs at a time, whoever starts it: of those that share a folder (ArtefactStore::lock_runs), and of
// replicas that share a journal (store::Journal::lock_runs).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "improve/artefact_store.h"
#include "improve/examples.h"
#include "improve/proof.h"
#include "improve/workbench.h"
#include "store/journal.h"

namespace chimere::improve {

struct JobLimits {
  double seconds = 3600;
  double joules = 0;  // 0: any; counts only where the processor tells
};

// What a job works with; all of it outlives the job.
struct JobTools {
  store::Journal& journal;
  ArtefactStore& store;
  // Is asked for once there is something to compute; loading takes time and memory.
  std::function<Result<Workbench*>()> bench;
  std::vector<GuardPair> guard;
  JobLimits limits;
  ProofRules rules;
  std::vector<std::string> general = {};  // passages of general text, which guard beside the questions
  bool promotes = true;                   // what is proven is used
  // Not empty: the bytes of a table, an adapter or a prompt that were made elsewhere, to be proven instead of what the
  // job would make.
  std::string given = {};
  std::function<void(const RunRecord&)> tell = [](const RunRecord&) {};
  std::function<bool()> must_end = [] { return false; };
  std::chrono::seconds patience{0};  // with another run; one that was killed ends in a moment
};

// Names of the kinds there are.
const std::vector<std::string>& job_kinds();
// The same in a sentence: "scores, engram, ...".
std::string kind_names();

// Runs one job. `skipped`: there is nothing new to learn from. Errors are of the store and of a run that goes on
// elsewhere (exhausted); a job that fails is a record that says so.
Result<RunRecord> run_job(const JobTools& tools, const Slot& slot);

// Uses what a run has made. One that was not proven only `anyway`: its owner may know better than figures do.
Status promote_run(ArtefactStore& store, const std::string& id, bool anyway);

// Energy the processor's package has used, in joules, since some moment; -1 where it does not tell.
double package_joules();

}  // namespace chimere::improve
