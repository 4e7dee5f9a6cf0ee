#include "improve/scores.h"

#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "improve/examples.h"
#include "improve/job_state.h"
#include "odo/sums.h"
#include "text/json.h"
#include "tools/expression.h"

namespace chimere::improve {
namespace {

constexpr int kRight = 5, kWrong = 1;
constexpr size_t kJudgedBytes = 2'000;  // of the question, and of the answer
constexpr int kScorePage = 64;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::optional<Scored> check_sums(const std::string& question, const std::string& answer) {
  const std::vector<std::string> sums = odo::sums_in(question);
  if (sums.empty()) return std::nullopt;
  for (const std::string& sum : sums) {
    const auto value = tools::evaluate(sum);
    if (!value || value->is_rounded) return std::nullopt;
    if (!tells_number(answer, value->text)) return Scored{kWrong, "sum", sum + " = " + value->text};
  }
  return Scored{kRight, "sum", sums.front() + (sums.size() > 1 ? ", ..." : "")};
}

// The text between ```json and ```, or all of it where it begins as JSON does.
std::optional<std::string_view> json_part(std::string_view answer) {
  const std::string_view text = trimmed(answer);
  if (text.starts_with("```json")) {
    const size_t end = text.find("```", 7);
    return text.substr(7, end == std::string_view::npos ? end : end - 7);
  }
  if (text.starts_with("{") && text.find('"') < 4) return text;
  return std::nullopt;
}

std::optional<Scored> check_json_forms(const store::KeptAnswer& kept) {
  const auto calls = parse_json(kept.tool_calls);
  if (calls && calls->is_array() && !calls->empty()) {
    for (const Json& call : *calls) {
      const auto arguments = parse_json(call.value("arguments", ""));
      if (arguments && arguments->is_object()) continue;
      return Scored{kWrong, "json", "arguments of " + call.value("name", "a call") + " are no object"};
    }
    return std::nullopt;  // well formed, and yet perhaps the wrong call
  }
  const auto part = json_part(kept.answer);
  if (!part || parse_json(*part)) return std::nullopt;
  return Scored{kWrong, "json", "it begins as JSON and is none"};
}

// By the chances that the model gives to the digits 1 to 5: their mean says more than the likeliest one.
Result<Scored> judge_answer(Workbench& bench, const store::KeptAnswer& kept) {
  const std::string question = question_in(messages_of(kept)).substr(0, kJudgedBytes);
  chat::Message ask;
  ask.role = "user";
  ask.content = "Question: " + question + "\nAnswer: " + kept.answer.substr(0, kJudgedBytes) +
                "\n\nHow good is this answer? Write one digit from 1 (wrong) to 5 (right and complete).";
  TRY_ASSIGN(const std::vector<double> chances, bench.choose({ask}, {"1", "2", "3", "4", "5"}));
  double mean = 0;
  for (size_t i = 0; i < chances.size(); ++i) mean += chances[i] * static_cast<double>(i + 1);
  return Scored{static_cast<int>(std::lround(mean)), "judge", "mean " + std::to_string(mean).substr(0, 4)};
}

}  // namespace

bool tells_number(std::string_view text, std::string_view number) {
  // Without the commas and blanks between thousands.
  std::string plain;
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (size_t i = 0; i < text.size(); ++i) {
    const bool joins = (text[i] == ',' || text[i] == ' ') && i > 0 && is_digit(text[i - 1]) && i + 3 < text.size() &&
                       is_digit(text[i + 1]) && is_digit(text[i + 2]) && is_digit(text[i + 3]) &&
                       (i + 4 >= text.size() || !is_digit(text[i + 4]));
    if (!joins) plain += text[i];
  }
  for (size_t at = plain.find(number); at != std::string::npos; at = plain.find(number, at + 1)) {
    const size_t end = at + number.size();
    const bool begins =
        at == 0 || (!is_digit(plain[at - 1]) && plain[at - 1] != '.' &&
                    !(plain[at - 1] == '-' && !number.starts_with('-') && (at == 1 || plain[at - 2] == ' ')));
    const bool goes_on =
        end < plain.size() &&
        (is_digit(plain[end]) || (plain[end] == '.' && end + 1 < plain.size() && is_digit(plain[end + 1])));
    if (begins && !goes_on) return true;
  }
  return false;
}

std::optional<Scored> check_exactly(const store::KeptAnswer& kept) {
  if (auto wrong = check_json_forms(kept)) return wrong;
  if (kept.answer.empty()) return std::nullopt;
  return check_sums(question_in(messages_of(kept)), kept.answer);
}

// Each score is on the disk before the next is made.
Status score_answers(JobState& state) {
  size_t exact = 0, judged = 0;
  for (;;) {
    TRY_ASSIGN(const auto waiting, state.tools.journal.unscored(state.run.slot.owner, kScorePage));
    if (waiting.empty()) break;
    state.run.total = state.run.done + waiting.size();
    for (const store::KeptAnswer& kept : waiting) {
      Scored scored{3, "judge", "too long to be judged"};
      if (auto checked = check_exactly(kept)) {
        scored = std::move(*checked);
        ++exact;
      } else {
        auto by_model = judge_answer(*state.bench, kept);
        if (by_model) scored = std::move(*by_model);
        if (!by_model && by_model.error().code != Code::exhausted) return by_model.error();
        ++judged;
      }
      TRY(state.tools.journal.set_score(kept.id, scored.score, scored.scorer, scored.reason));
      TRY(state.step());
    }
  }
  state.run.state = "done";
  state.run.about =
      std::to_string(exact) + " answers checked exactly, " + std::to_string(judged) + " judged by the model";
  return Ok{};
}

}  // namespace chimere::improve
