// eval_tasks.h  Questions with known answers that the evaluation makes itself, from seeds; none of them was trained on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chimere::apps {

enum class TaskKind {
  sums,           // three numbers of three digits, two operations, in words or in signs
  short_sums,     // two numbers of two digits
  problems,       // stories in which a number changes two or three times
  long_problems,  // the same with four or five changes of larger numbers
  facts,          // capitals
  notes,          // what made-up notes say: names and numbers that nobody has heard
  documents,      // the same, where no two notes are about things of one name: to be found among all of them
  greetings,
};
const char* task_name(TaskKind kind);

struct EvalTask {
  TaskKind kind = TaskKind::sums;
  std::string text;
  std::string answer;                   // the number or the word that a right answer has; empty: any answer is right
  std::vector<std::string> notes = {};  // that are told with the question, or are to be found
};

// The same tasks for the same seed.
std::vector<EvalTask> made_tasks(TaskKind kind, uint32_t seed, int n);

// Whether the text has the answer in it by itself; commas inside numbers are left out first.
bool is_right(const std::string& text, const EvalTask& task);

}  // namespace chimere::apps
