// judge.cpp  Beside what judge.h says: an equation with a number that neither the question nor an earlier step has halves the score,
// and so do, in a whole answer, numbers of the question that no equation uses. Both are signs, no proof.
#include "odo/judge.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/hash.h"
#include "odo/equations.h"
#include "odo/word_chances.h"
#include "orchestrator/constraints.h"
#include "text/json.h"

namespace chimere::odo {
namespace {

constexpr uint64_t kVerdictScope = 0x6f646f206a756467;  // "odo judg"
constexpr size_t kMaxJudgedBytes = 12 << 10;            // of question and text each: their ends decide
constexpr const char* kRunCode = "run_code";

chat::Message verdict_message(const char* role, std::string text) {
  chat::Message message;
  message.role = role;
  message.content = std::move(text);
  return message;
}

std::string end_of(const std::string& text) {
  if (text.size() <= kMaxJudgedBytes) return text;
  size_t begin = text.size() - kMaxJudgedBytes;
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
  return text.substr(begin);
}

// Numbers that need no source: small ones, and those of clocks, calendars and per cents.
bool is_common(const std::string& number) {
  constexpr std::array kCommon = {"24", "30", "60", "100", "365", "1000"};
  return number.size() == 1 || number == "10" || number == "12" ||
         std::find(kCommon.begin(), kCommon.end(), number) != kCommon.end();
}

bool has(const std::vector<std::string>& numbers, const std::string& number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// A number of an equation that comes from nowhere; empty: there is none.
std::string stray_number(const std::string& question, const std::string& before,
                         const std::vector<Equation>& equations) {
  std::vector<std::string> known = numbers_in(question);
  for (const std::string& number : numbers_in(before)) known.push_back(number);
  for (const Equation& equation : equations) {
    const std::vector<std::string> numbers = numbers_in(equation.text);
    for (size_t i = 0; i + 1 < numbers.size(); ++i) {
      if (!has(known, numbers[i]) && !is_common(numbers[i])) return numbers[i];
    }
    known.push_back(numbers.back());
  }
  return {};
}

// A number of the question that no equation uses; empty: there is none.
std::string unused_number(const std::string& question, const std::vector<Equation>& equations) {
  std::vector<std::string> used;
  for (const Equation& equation : equations) {
    for (const std::string& number : numbers_in(equation.text)) used.push_back(number);
  }
  for (const std::string& number : numbers_in(question)) {
    if (!has(used, number)) return number;
  }
  return {};
}

std::string shown(double score) {
  char text[16];
  std::snprintf(text, sizeof text, "%.2f", score);
  return text;
}

}  // namespace

// What of a text could be computed again.
struct Judge::Checks {
  int n_held = 0;
  std::string doubt;  // what makes it less likely; empty: nothing does
  std::string wrong;  // the first that failed; empty: none did
};

int Judgement::stars() const {
  constexpr std::array kLeast = {0.3, 0.5, 0.7, 0.9};
  return 1 +
         static_cast<int>(std::count_if(kLeast.begin(), kLeast.end(), [&](double least) { return score >= least; }));
}

std::string program_in(const std::string& text) {
  constexpr std::string_view kOpen = "```python\n";
  const size_t begin = text.find(kOpen);
  if (begin == std::string::npos) return {};
  const size_t end = text.find("```", begin + kOpen.size());
  return end == std::string::npos ? std::string() : text.substr(begin + kOpen.size(), end - begin - kOpen.size());
}

orchestrator::ChatRequest verdict_question(const Judged& judged) {
  std::string asked = "Question: " + end_of(judged.question) + "\n\nSolution: " + end_of(judged.before + judged.text) +
                      "\n\nIs the last step right? Answer + or -.";
  orchestrator::ChatRequest request =
      word_question({verdict_message("user", std::move(asked))}, hash_mix(kVerdictScope ^ judged.cache_scope));
  request.owner = judged.owner;
  request.deadline = judged.deadline;
  return request;
}

Judge::Judge(JudgeParts parts) : parts_(std::move(parts)) {
  prm_ = parts_.prm;
  if (prm_ || !parts_.chat) return;
  const auto loaded = parts_.chat->adapters().list();
  by_adapter_ =
      std::any_of(loaded.begin(), loaded.end(), [](const auto& entry) { return entry.name == kJudgeAdapter; });
  if (by_adapter_) prm_ = parts_.chat;
}

Result<double> Judge::by_model(const Judged& judged) const {
  orchestrator::ChatRequest request = verdict_question(judged);
  if (by_adapter_) request.adapters = {{kJudgeAdapter, {}}};
  TRY_ASSIGN(const std::vector<double> chances, word_chances(*prm_, request, {"+", "-"}, "verdict"));
  return 1 / (1 + std::exp(chances[1] - chances[0]));
}

bool Judge::runs(const std::string& program, std::string& why) const {
  const tools::ToolResult result = parts_.box->run(kRunCode, to_text(Json{{"code", program}}), parts_.context);
  if (result.is_error) why = "its program fails: " + result.text.substr(0, 400);
  return !result.is_error;
}

Judge::Checks Judge::check(const Judged& judged) const {
  Checks checks;
  // A whole answer is judged with its thought, a step by itself.
  const bool is_whole = judged.form != nullptr;
  const std::vector<Equation> equations = equations_in(is_whole ? judged.before + "\n" + judged.text : judged.text);
  if (!equations.empty() && !judged.question.empty()) {
    const std::string stray = stray_number(judged.question, is_whole ? "" : judged.before, equations);
    const std::string unused = is_whole ? unused_number(judged.question, equations) : "";
    if (!unused.empty()) checks.doubt = unused + " is not used";
    if (!stray.empty()) checks.doubt = stray + " comes from nowhere";
  }
  for (const Equation& equation : equations) {
    if (equation.holds) {
      ++checks.n_held;
    } else if (checks.wrong.empty()) {
      checks.wrong = equation.text + " is not right";
    }
  }
  if (judged.form && !judged.form->is_free()) {
    const auto fits = orchestrator::fits_form(*judged.form, judged.text);
    if (fits && *fits) ++checks.n_held;
    if (fits && !*fits && checks.wrong.empty()) checks.wrong = "it does not have the form that was asked for";
  }
  const bool runs_code = parts_.runs_code && parts_.box && parts_.box->policy(kRunCode) == tools::Policy::allow;
  if (runs_code && checks.wrong.empty()) {
    if (const std::string program = program_in(judged.text); !program.empty() && runs(program, checks.wrong)) {
      ++checks.n_held;
    }
  }
  return checks;
}

Judgement Judge::judge(const Judged& judged) const {
  Judgement verdict;
  const Checks checks = check(judged);
  if (!checks.wrong.empty()) {
    verdict.by = "check";
    verdict.why = checks.wrong;
    verdict.is_proven_wrong = true;
    return verdict;
  }
  verdict.score = std::exp(std::min(0.0, judged.logprob));
  verdict.why = "sure to " + shown(verdict.score);
  bool is_by_model = false;
  if (prm_) {
    if (const auto score = by_model(judged)) {
      is_by_model = true;
      verdict.score = *score;
      verdict.by = "model";
      verdict.why = "the judge says " + shown(*score);
      verdict.tokens = 2;
    }
  }
  // A model has read the equations, too: that they hold is nothing new to it.
  if (checks.n_held > 0 && !is_by_model) {
    verdict.score = (1 + verdict.score) / 2;
    verdict.by = "check";
    verdict.why = std::to_string(checks.n_held) + (checks.n_held == 1 ? " check holds" : " checks hold");
  }
  if (!checks.doubt.empty()) {
    verdict.score /= 2;
    verdict.by = "check";
    verdict.why = checks.doubt;
  }
  if (judged.is_cut) {
    verdict.score /= 2;
    verdict.why += "; it ends in the middle";
  }
  return verdict;
}

}  // namespace chimere::odo
