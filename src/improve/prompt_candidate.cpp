// prompt_candidate.cpp  A system prompt, found by reflection: a prompt is changed, by the model itself from
// what went wrong and by edits from a bank, and kept if it is better somewhere.
//
// What is better somewhere: the Pareto set, the prompts that are best on at least one example. Parents are drawn from it,
// each as likely as it is best often. A score is the log-probability of the answer that was wanted.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/philox.h"
#include "improve/content_hash.h"
#include "improve/job_state.h"

namespace chimere::improve {
namespace {

constexpr size_t kMaxPromptBytes = 1'200;
constexpr size_t kRounds = 10;
constexpr size_t kSearched = 24;  // examples that prompts are compared on
constexpr int kReflectionTokens = 96;

// What people write to models when they want answers of a certain kind.
constexpr std::array kEdits = {
    "Answer in full sentences.",
    "Answer in one short sentence.",
    "Give only the answer, without an explanation.",
    "Explain your answer step by step.",
    "Be polite and friendly.",
    "Write in a formal tone.",
    "Answer in the language of the question.",
    "Say so when you do not know something.",
    "Use a list where there are several things.",
    "Repeat the words of the question in the answer.",
};

struct Tried {
  std::string prompt;
  std::vector<double> scores;
};

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// Of each prompt: on how many examples none is better.
std::vector<size_t> wins_of(const std::vector<Tried>& tried) {
  std::vector<size_t> wins(tried.size(), 0);
  for (size_t e = 0; e < tried.front().scores.size(); ++e) {
    double best = -INFINITY;
    for (const Tried& one : tried) best = std::max(best, one.scores[e]);
    for (size_t i = 0; i < tried.size(); ++i) wins[i] += tried[i].scores[e] >= best - 1e-9;
  }
  return wins;
}

size_t drawn(const std::vector<size_t>& weights, uint32_t word) {
  size_t sum = 0;
  for (const size_t weight : weights) sum += weight;
  size_t at = static_cast<size_t>((uint64_t{word} * sum) >> 32);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (at < weights[i]) return i;
    at -= weights[i];
  }
  return 0;
}

// The example on which a prompt does worst tells what to change.
Result<std::string> reflected(JobState& state, const Tried& parent, const std::vector<TaughtAnswer>& on) {
  const auto worst = std::min_element(parent.scores.begin(), parent.scores.end()) - parent.scores.begin();
  const TaughtAnswer& example = on[static_cast<size_t>(worst)];
  chat::Message ask;
  ask.role = "user";
  ask.content = "An assistant was told: " + (parent.prompt.empty() ? "nothing" : parent.prompt) +
                "\nIt was asked: " + question_in(example.asked.messages).substr(0, 400) +
                "\nIt should have answered: " + example.wanted.shown().substr(0, 400) +
                "\n\nWrite one sentence that tells the assistant how to answer such questions.";
  TRY_ASSIGN(Answered reflection, state.bench->answer({{ask}, {}}, {}, {}, kReflectionTokens));
  std::string sentence = std::move(reflection.text);
  std::replace(sentence.begin(), sentence.end(), '\n', ' ');
  return sentence;
}

std::string joined(const std::string& prompt, const std::string& edit) {
  return prompt.empty() ? edit : prompt + " " + edit;
}

}  // namespace

Result<Candidate> make_prompt(JobState& state) {
  const Slot& slot = state.run.slot;
  Candidate candidate;
  TRY_ASSIGN(candidate.before, arm_in_use(state.tools.store, *state.bench, slot.owner));
  TRY_ASSIGN(const auto manifest, state.tools.store.manifest());
  std::string base;
  if (const Version* version = manifest->in_use(slot)) {
    TRY_ASSIGN(base, state.tools.store.read(version->artefact));
  }
  candidate.before.system_prompt = base;

  std::vector<TaughtAnswer> on = state.examples.train;
  if (on.size() > kSearched) on.erase(on.begin(), on.end() - static_cast<std::ptrdiff_t>(kSearched));
  std::vector<Tried> tried;
  const auto try_prompt = [&](const std::string& prompt) -> Status {
    for (const Tried& one : tried) {
      if (one.prompt == prompt) return Ok{};
    }
    Tried one{prompt, {}};
    Arm arm = candidate.before;
    arm.system_prompt = prompt;
    for (const TaughtAnswer& example : on) {
      const std::string arm_name = "p" + content_hash(prompt).substr(0, 16);
      TRY_ASSIGN(const auto score,
                 state.score(arm_name, arm, "e" + std::to_string(example.id), example.asked, example.wanted));
      one.scores.push_back(score.value_or(-100));
    }
    tried.push_back(std::move(one));
    return Ok{};
  };
  state.run.total += on.size() * (1 + kEdits.size() + kRounds);
  TRY(try_prompt(base));
  for (const char* edit : kEdits) TRY(try_prompt(joined(base, edit)));
  const size_t from_bank = tried.size();
  for (size_t round = 0; round < kRounds; ++round) {
    const PhiloxWords words = philox(state.tools.rules.seed, round, 0x70726f6d);
    const Tried parent = tried[drawn(wins_of(tried), words[0])];
    std::string edit;
    if (round % 2 == 0) {
      TRY_ASSIGN(edit, reflected(state, parent, on));
    } else {
      edit = kEdits[(uint64_t{words[1]} * kEdits.size()) >> 32];
    }
    const std::string next = joined(parent.prompt, edit);
    if (edit.empty() || next.size() > kMaxPromptBytes || parent.prompt.find(edit) != std::string::npos) continue;
    TRY(try_prompt(next));
  }
  const auto best = std::max_element(
      tried.begin(), tried.end(), [](const Tried& a, const Tried& b) { return mean_of(a.scores) < mean_of(b.scores); });
  const std::string counted = std::to_string(tried.size()) + " prompts tried, " +
                              std::to_string(tried.size() - from_bank) + " of them found by reflection";
  if (best == tried.begin()) {
    candidate.about = "none of " + counted + " is better than the one in use";
    return Result<Candidate>{std::move(candidate)};
  }
  candidate.bytes = best->prompt;
  candidate.name = "p" + content_hash(best->prompt).substr(0, 16);
  candidate.after = candidate.before;
  candidate.after.system_prompt = best->prompt;
  candidate.about = counted + "; the best: " + best->prompt;
  return Result<Candidate>{std::move(candidate)};
}

}  // namespace chimere::improve
