// thinking_candidate.cpp  When a thought may end, and whether that is proven: fewer tokens of thought on conversations that
// were held out, with answers that are not less likely there and no less true elsewhere.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "improve/closing.h"
#include "improve/content_hash.h"
#include "improve/example_set.h"
#include "improve/job_state.h"
#include "improve/thought_setting.h"

namespace chimere::improve {
namespace {

constexpr int kMostThought = 1024;
constexpr int kAnswerBehindTokens = 96;

size_t n_of_conversations(const std::vector<TaughtAnswer>& examples) {
  std::set<std::string> names;
  for (const TaughtAnswer& example : examples) names.insert(example.conversation);
  return names.size();
}

// Of one question: its thought and the beginnings of it that settings choose. A thought is written once, and only where a
// figure is not remembered.
class ThoughtOf {
 public:
  ThoughtOf(JobState& state, std::string name, const Asked& asked, const Arm& arm)
      : state_(state), name_(std::move(name)), asked_(asked), arm_(arm) {}

  // Whether the model has a thought about this.
  Result<bool> exists() {
    TRY_ASSIGN(const auto tokens, figure("tokens", [this]() -> Result<std::optional<double>> {
                 TRY(write());
                 return thought_ ? std::optional<double>{static_cast<double>(thought_->ids.size())} : std::nullopt;
               }));
    tokens_ = static_cast<int32_t>(tokens.value_or(0));
    return tokens_ > 0;
  }
  // REQUIRES of all below: exists().
  int32_t tokens() const { return tokens_; }
  Result<std::vector<ThoughtCut>> cuts() {
    TRY_ASSIGN(const auto n, figure("cuts", [this]() -> Result<std::optional<double>> {
                 TRY(write());
                 return std::optional<double>{static_cast<double>(possible_.size())};
               }));
    std::vector<ThoughtCut> cuts(static_cast<size_t>(n.value_or(0)));
    for (size_t i = 0; i < cuts.size(); ++i) {
      const auto part = [&](const std::string& key, const std::function<double(const ThoughtCut&)>& of) {
        return figure(std::to_string(i) + " " + key, [&]() -> Result<std::optional<double>> {
          TRY(write());
          return std::optional<double>{of(possible_[i])};
        });
      };
      TRY_ASSIGN(const auto at, part("at", [](const ThoughtCut& cut) { return static_cast<double>(cut.at); }));
      cuts[i].at = static_cast<int32_t>(*at);
      for (size_t w = 0; w < cuts[i].certainty.size(); ++w) {
        TRY_ASSIGN(const auto certainty,
                   part("w" + std::to_string(w), [w](const ThoughtCut& cut) { return cut.certainty[w]; }));
        cuts[i].certainty[w] = *certainty;
      }
    }
    return Result<std::vector<ThoughtCut>>{std::move(cuts)};
  }
  // How many of its tokens are left by a setting.
  Result<int32_t> left_by(const ThoughtSetting& setting) {
    if (!setting.closes()) return tokens_;
    TRY_ASSIGN(const auto all, cuts());
    const ThoughtCut* cut = cut_by(setting, all);
    return cut ? cut->at : tokens_;
  }
  Result<std::optional<double>> score(int32_t at, const Wanted& wanted) {
    return figure("score " + std::to_string(at), [&]() -> Result<std::optional<double>> {
      TRY(write());
      return state_.bench->score_behind(asked_, beginning(at), wanted, state_.run.slot.owner, arm_);
    });
  }
  // Of the model's own answer: whether it ends, or what it tells.
  Result<std::optional<double>> said(const std::string& what, int32_t at,
                                     const std::function<double(const Answered&)>& measure) {
    return figure(what + " " + std::to_string(at), [&]() -> Result<std::optional<double>> {
      if (said_.count(at) == 0) {
        TRY(write());
        TRY_ASSIGN(said_[at], state_.bench->answer_behind(asked_, beginning(at), state_.run.slot.owner, arm_,
                                                          kAnswerBehindTokens));
      }
      return std::optional<double>{measure(said_[at])};
    });
  }

 private:
  Result<std::optional<double>> figure(const std::string& key,
                                       const std::function<Result<std::optional<double>>()>& compute) {
    return state_.figure(name_ + " " + key, compute);
  }
  std::span<const int32_t> beginning(int32_t at) const {
    return std::span(thought_->ids).first(static_cast<size_t>(at));
  }
  Status write() {
    if (was_written_) return Ok{};
    TRY_ASSIGN(thought_, state_.bench->think(asked_, state_.run.slot.owner, arm_, kMostThought));
    if (thought_) possible_ = possible_cuts(sentence_ends(*thought_));
    was_written_ = true;
    return Ok{};
  }

  JobState& state_;
  const std::string name_;
  const Asked& asked_;
  const Arm& arm_;
  bool was_written_ = false;
  std::optional<WrittenThought> thought_;
  std::vector<ThoughtCut> possible_;  // of it
  int32_t tokens_ = 0;
  std::map<int32_t, Answered> said_;
};

// The thoughts are those of the model as it came, so that they do not depend on what else was learned.
Result<std::vector<ThoughtEntry>> thought_entries(JobState& state, const std::string& closing) {
  const Arm plain;
  std::vector<ThoughtEntry> entries;
  for (const TaughtAnswer& example : state.examples.train) {
    const Wanted wanted{without_closing(example.wanted.text, closing), example.wanted.calls, true};
    ThoughtOf thought(state, "fit e" + std::to_string(example.id), example.asked, plain);
    TRY_ASSIGN(const bool exists, thought.exists());
    if (!exists) continue;
    ThoughtEntry entry{example.conversation, entry_key(example), thought.tokens(), 0, {}};
    TRY_ASSIGN(entry.cuts, thought.cuts());
    TRY_ASSIGN(const auto whole, thought.score(entry.tokens, wanted));
    if (!whole) continue;
    entry.score = *whole;
    for (ThoughtCut& cut : entry.cuts) {
      TRY_ASSIGN(const auto score, thought.score(cut.at, wanted));
      cut.score = *score;
    }
    entries.push_back(std::move(entry));
  }
  return Result<std::vector<ThoughtEntry>>{std::move(entries)};
}

// On what was held out: the part of its tokens that a thought is shorter by, and what becomes of the answers.
Status compare_held_out(JobState& state, const Arm& arm, const ThoughtSetting& setting, std::vector<Difference>& saved,
                        GuardFigures& accepted) {
  std::vector<Difference> changes;
  for (const TaughtAnswer& example : state.examples.held_out) {
    ThoughtOf thought(state, "e" + std::to_string(example.id), example.asked, arm);
    TRY_ASSIGN(const bool exists, thought.exists());
    if (!exists) continue;
    TRY_ASSIGN(const int32_t left, thought.left_by(setting));
    TRY_ASSIGN(const auto before, thought.score(thought.tokens(), example.wanted));
    TRY_ASSIGN(const auto after, thought.score(left, example.wanted));
    if (!before || !after) continue;
    saved.push_back({example.conversation, 1 - static_cast<double>(left) / thought.tokens()});
    changes.push_back({example.conversation, *after - *before});
  }
  accepted.differences = grouped(changes);
  return Ok{};
}

// The guard's questions, thought about whole and as the setting has it.
Result<std::vector<GuardFigures>> guards_behind_thoughts(JobState& state, const Arm& arm,
                                                         const ThoughtSetting& setting) {
  const ProofRules& rules = state.tools.rules;
  std::vector<GuardFigures> guards{{"answers that end", {}, rules.ending_margin},
                                   {"what answers tell", {}, rules.telling_margin}};
  for (size_t i = 0; i < state.tools.guard.size(); ++i) {
    const GuardPair& pair = state.tools.guard[i];
    const Asked asked = guard_question(pair);
    ThoughtOf thought(state, "g" + std::to_string(i), asked, arm);
    TRY_ASSIGN(const bool exists, thought.exists());
    if (!exists) continue;
    TRY_ASSIGN(const int32_t left, thought.left_by(setting));
    const auto compare = [&](GuardFigures& guard, const std::function<double(const Answered&)>& measure) -> Status {
      TRY_ASSIGN(const auto before, thought.said(guard.name, thought.tokens(), measure));
      TRY_ASSIGN(const auto after, thought.said(guard.name, left, measure));
      guard.differences.push_back(*after - *before);
      return Ok{};
    };
    TRY(compare(guards[0], [](const Answered& said) { return said.has_ended ? 1.0 : 0.0; }));
    TRY(compare(guards[1], [&](const Answered& said) { return told_part(pair, said.text); }));
  }
  return Result<std::vector<GuardFigures>>{std::move(guards)};
}

std::string shown_setting(const ThoughtSetting& setting) {
  if (setting.most == 0) return "no thought";
  char text[120];
  std::snprintf(text, sizeof text, "closed behind a sentence at a certainty of %.2f over %d tokens, after at least %d",
                setting.close_above, setting.window, setting.min_tokens);
  return text;
}

}  // namespace

Status make_and_prove_thoughts(JobState& state) {
  RunRecord& run = state.run;
  const Tokenizer& tokenizer = state.bench->tokenizer();
  state.examples.train = thought_answers(tokenizer, state.examples.train);
  state.examples.held_out = thought_answers(tokenizer, state.examples.held_out);
  run.learned_from = state.examples.conversations();
  run.examples = state.examples.train.size();
  run.held_out = state.examples.held_out.size();
  const size_t least = state.tools.rules.min_examples;
  if (state.examples.train.empty() || n_of_conversations(state.examples.held_out) < least) {
    run.state = "skipped";
    run.problem = "too few accepted answers had a thought: " + std::to_string(run.examples) +
                  " to learn from, and to prove with " + std::to_string(n_of_conversations(state.examples.held_out)) +
                  " conversations of at least " + std::to_string(least);
    return Ok{};
  }
  TRY_ASSIGN(const Arm arm, arm_in_use(state.tools.store, *state.bench, run.slot.owner));
  const uint64_t vocabulary = state.bench->vocabulary().fingerprint;
  FittedThoughts fitted;
  if (state.tools.given.empty()) {
    TRY_ASSIGN(auto entries, thought_entries(state, arm.closing));
    fitted = fitted_thoughts(std::move(entries));
  } else {
    TRY_ASSIGN(fitted, read_thoughts(state.tools.given, vocabulary));
  }
  const ThoughtSetting& setting = fitted.setting;
  run.about = shown_setting(setting) + "; fitted on " + std::to_string(fitted.entries.size()) + " thoughts";
  if (!setting.closes()) {
    run.state = "refused";
    run.about =
        "no setting is shorter with answers as likely, on " + std::to_string(fitted.entries.size()) + " thoughts";
    run.verdict.reason = run.about;
    return Ok{};
  }
  const std::string bytes = thought_bytes(fitted, vocabulary);
  TRY_ASSIGN(const auto manifest, state.tools.store.manifest());
  const Version* version = manifest->in_use(run.slot);
  if (version && version->artefact == content_hash(bytes)) {
    run.state = "skipped";
    run.problem = "what is in use is what would be made";
    return Ok{};
  }
  TRY_ASSIGN(run.artefact, state.tools.store.put(bytes));
  // Both of them against whole thoughts, whatever is in use: no setting has to outdo another one's luck.
  std::vector<Difference> saved;
  GuardFigures accepted{"accepted answers", {}, state.tools.rules.guard_margin};
  TRY(compare_held_out(state, arm, setting, saved, accepted));
  TRY_ASSIGN(auto guards, guards_behind_thoughts(state, arm, setting));
  guards.insert(guards.begin(), std::move(accepted));
  run.verdict = judge(saved, guards, run.verdict.attempt, state.tools.rules);
  run.state = run.verdict.is_proven ? "proven" : "refused";
  return Ok{};
}

}  // namespace chimere::improve
