// run_record.h  One try to become better: what it was made from, what it cost, what was proven. Kept whatever came of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "improve/manifest.h"
#include "improve/proof.h"

namespace chimere::improve {

struct RunRecord {
  std::string id;
  Slot slot;
  // running; proven (and in use); refused (kept as a result); skipped (nothing new to learn from); failed; stopped
  std::string state = "running";
  std::string problem;  // of failed and stopped, and why it was skipped
  int64_t created = 0;
  int64_t ended = 0;
  std::string model;
  std::string input;                      // fingerprint of examples and model: a second try with the same is none
  std::string artefact;                   // empty: none was made
  std::string about;                      // one line for people: what the candidate is
  std::vector<std::string> learned_from;  // conversations
  int64_t last_answer = 0;                // of the journal, by its id, that it knew of
  size_t examples = 0;                    // it was made from
  size_t held_out = 0;                    // it was proven with
  size_t duplicates = 0;                  // that were left out, and what nobody accepted
  size_t foreign = 0;
  Verdict verdict;
  double seconds = 0;  // of the clock, without pauses that came from outside
  double cpu_seconds = 0;
  double joules = -1;            // of the processor's package; -1: can not be read here
  uint64_t done = 0, total = 0;  // progress, in steps of the kind's own

  bool is_over() const { return state != "running"; }
};

std::string run_text(const RunRecord& run);
Result<RunRecord> parse_run(std::string_view text);

}  // namespace chimere::improve
