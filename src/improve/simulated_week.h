// simulated_week.h  A week with a made-up person: seven days of questions, answers and corrections through the journal,
// seven nights of the jobs with their proof, and an exam after each night.
//
// Nights are those of the default clock: every kind every night, but prompts in the last one alone. In the fourth two bad
// candidates are planted: an adapter that is far too strong, and a prompt that asks for nonsense. After the fifth the
// adapter (where none is in use, the table) is rolled back and used again. After the sixth one conversation is
// forgotten, and the table compared with one that never saw it.
//
// All lies in a folder: the journal, what was learned, and `week.json`, from which a week that was ended goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "improve/workbench.h"

namespace chimere::improve {

struct WeekOptions {
  uint64_t seed = 1;
  int nights = 7;
  std::string folder;  // notes are in `notes/` of it: the workbench was opened with them
  std::vector<GuardPair> guard;
  std::vector<std::string> general;
  // Of the jobs that run, in this order.
  std::vector<std::string> kinds = {"closing", "words", "examples", "lora", "engram", "prompts"};
  size_t exam_questions = 20;  // of each task
  bool has_arms = true;        // at the end each kind of candidate alone, too
  std::function<void(const std::string&)> tell = [](const std::string&) {};
};

// The result as a JSON object.
Result<std::string> simulate_week(Workbench& bench, const WeekOptions& options);

// Several results as a table (Markdown), and as a plot of the nights (SVG).
struct WeekSummary {
  std::string markdown, svg;
};
Result<WeekSummary> summarise_weeks(const std::vector<std::string>& results);

}  // namespace chimere::improve
