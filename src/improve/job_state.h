// job_state.h  A job that is under way. For this folder alone.
#pragma once

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "improve/job.h"

namespace chimere::improve {

// Figures that were computed, by name, on the disk as they come: what was done is not done again.
class Remembered {
 public:
  Status open(const std::string& path);
  std::optional<double> find(const std::string& key) const;
  Status put(const std::string& key, double value);
  void remove();

 private:
  std::string path_;
  std::map<std::string, double> values_;
  std::ofstream out_;
};

struct JobState {
  const JobTools& tools;
  store::RunLock& lock;
  RunRecord run;
  Examples examples;
  Workbench* bench = nullptr;
  Remembered remembered;
  std::chrono::steady_clock::time_point looked = std::chrono::steady_clock::now();  // at the clock, the last time
  std::chrono::steady_clock::time_point told{};
  double cpu_looked = 0;
  double joules_began = package_joules();

  // After each thing computed. cancelled: the time or the energy is spent, or somebody wants an end.
  Status step();
  // As step(), for one that was computed in an earlier life.
  void skip_step() { ++run.done; }

  // score() of the workbench, remembered under the arm's name.
  Result<std::optional<double>> score(const std::string& arm_name, const Arm& arm, const std::string& example_name,
                                      const Asked& asked, const Wanted& wanted);
  // A figure of an arm, computed unless it is remembered; nullopt: it has none.
  Result<std::optional<double>> figure(const std::string& key,
                                       const std::function<Result<std::optional<double>>()>& compute);
  Result<std::vector<Difference>> differences(const std::string& name_a, const Arm& a, const std::string& name_b,
                                              const Arm& b, const std::vector<TaughtAnswer>& examples);
  // What guards general ability, before and after.
  Result<std::vector<GuardFigures>> guard_figures(const std::string& name_a, const Arm& a, const std::string& name_b,
                                                  const Arm& b);
};

// A question of the guard, and its answer without the end: who wants a farewell behind answers ends them later, and
// knows no less for that. That answers do end is looked at by itself.
Asked guard_question(const GuardPair& pair);
Wanted guard_answer(const GuardPair& pair);

// Of what the answer tells beyond its question (names, numbers, things), the part that is said, 0 to 1.
double told_part(const GuardPair& pair, const std::string& said);

// What is made of the examples: its bytes, and what it changes.
struct Candidate {
  std::string about;
  std::string bytes;   // empty: nothing is tried
  bool waits = false;  // it is no try: there is nothing new, or too little to prove it with
  std::string name;    // unique among those of one job
  Arm before, after;
  // What is in use, where that is of the same making from fewer answers: `before` is without either then, and a quarter of
  // the gain may be lost.
  std::optional<Arm> replaced = std::nullopt;
};

// What is in use for an owner, in the kind of arm that answers of the model alone have.
Result<Arm> arm_in_use(const ArtefactStore& store, Workbench& bench, const std::string& owner);

// The same with this artefact of a kind instead of its own.
Result<Arm> arm_with(const ArtefactStore& store, Workbench& bench, Arm arm, const std::string& kind,
                     const std::string& artefact);

// The same for kinds whose artefact is a text: closing, words, examples, prompts.
Result<Arm> arm_of_bytes(Workbench& bench, Arm arm, const std::string& kind, const std::string& bytes);

// The bytes of a table of what the examples say is to be answered; the same bytes for the same examples.
Result<std::string> engram_bytes(const Tokenizer& tokenizer, const std::vector<TaughtAnswer>& train,
                                 const std::string& scratch);

// What was made elsewhere (JobTools::given).
Result<Candidate> take_given(JobState& state);
Result<Candidate> make_engram(JobState& state);
Result<Candidate> make_prompt(JobState& state);
Result<Candidate> make_lora(JobState& state);
Result<Candidate> make_closing(JobState& state);
Result<Candidate> make_words(JobState& state);
Result<Candidate> make_examples(JobState& state);
// All of a job of the kind thinking: its gain is tokens that are not written.
Status make_and_prove_thoughts(JobState& state);
// An adapter file, loaded under this name, as a set of one.
Result<std::shared_ptr<const AdapterSet>> adapter_set(Workbench& bench, const std::string& path,
                                                      const std::string& name);
// Without a verdict: scores of answers in the journal.
Status score_answers(JobState& state);

// The in-use artefacts of an owner as one text, for fingerprints.
std::string in_use_text(const Manifest& manifest, const std::string& owner);

}  // namespace chimere::improve
