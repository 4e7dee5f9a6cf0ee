// simulated_person.h  A made-up person who uses the system for a week: what they ask, and what they hold for a good
// answer. A function of the seed.
//
//   style  general questions; every text ends with the person's own farewell
//   tool   a tool of theirs, asked for in words whose meaning only they know
//   open   things to be sorted by the person's rule: no answer that was accepted, and no note, names the thing
//   fact   who is responsible for what: notes and accepted answers tell it
//
// Questions of the exam are worded in ways that no day has, and (but for facts) are about other things.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "improve/examples.h"
#include "improve/workbench.h"

namespace chimere::improve {

enum class TaskOf { style, tool, open, fact };
inline constexpr TaskOf kTasks[] = {TaskOf::style, TaskOf::tool, TaskOf::open, TaskOf::fact};
const char* task_name(TaskOf of);

struct PersonQuestion {
  std::string id;
  TaskOf of = TaskOf::style;
  Asked asked;
  std::string content;              // what a good answer has in it; empty: any will do
  std::vector<std::string> others;  // what it has not
  chat::ToolCall call;              // of `tool`
};

class SimulatedPerson {
 public:
  explicit SimulatedPerson(uint64_t seed);

  const std::string& farewell() const { return farewell_; }
  // Facts as the person would have them remembered.
  std::vector<std::string> notes() const;
  std::vector<PersonQuestion> day(int day) const;  // from 1
  std::vector<PersonQuestion> exam() const;

  // Whether an answer is as the person wants it. In an exam what a question is about counts alone: the farewell is what
  // style asks for.
  bool accepts(const PersonQuestion& question, const Answered& answer) const;
  bool is_right(const PersonQuestion& question, const Answered& answer) const;
  // What the person says would have been right.
  std::string correction(const PersonQuestion& question, const Answered& answer) const;

 private:
  struct Choice {
    std::string word;
    std::string value;
  };
  struct Topic {
    std::string label;
    std::vector<std::string> things;
  };
  size_t drawn(uint64_t what, uint64_t at, size_t n) const;
  template <class T>
  std::vector<T> shuffled(std::vector<T> list, uint64_t what) const;
  PersonQuestion style(const std::string& text) const;
  PersonQuestion tool(const std::string& form, const Choice& choice, const std::string& room) const;
  PersonQuestion open(const std::string& form, size_t topic, const std::string& thing) const;
  PersonQuestion fact(const std::string& form, size_t i) const;

  uint64_t seed_;
  std::string farewell_;
  size_t tool_ = 0;
  std::vector<Choice> choices_;
  std::vector<std::string> rooms_;
  std::vector<Topic> topics_;
  std::vector<std::string> things_, people_, countries_, ideas_;
};

}  // namespace chimere::improve
