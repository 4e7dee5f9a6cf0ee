// thought_setting.h  When a thought may end, for one owner: fitted on answers that were accepted behind thoughts.
//
// Of each such question the model's whole thought is known, and how likely the accepted answer is behind it and behind the
// beginnings of it at which some setting would have closed it. The setting is the one with the fewest tokens at which
// answers are not less likely than behind whole thoughts. It follows from the entries, so that an artefact without a
// conversation is the one that never saw it.
//
//   {"most": N, "window": N, "min_tokens": N, "close_above": X, "vocabulary": FINGERPRINT,
//    "entries": [{"conversation", "key", "tokens", "score", "cuts": [{"at", "score", "certainty": [..]}]}]}
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "improve/examples.h"
#include "improve/workbench.h"
#include "orchestrator/chat_request.h"

namespace chimere::improve {

struct ThoughtSetting {
  int32_t most = -1;  // tokens of a thought; -1: any number, 0: none
  // Otherwise as in ThinkingOptions; above 1: nothing closes a thought but its own end.
  int32_t window = 16;
  int32_t min_tokens = 0;
  double close_above = 2;

  bool closes() const { return most == 0 || close_above <= 1; }
  bool operator==(const ThoughtSetting&) const = default;
};

inline constexpr std::array<int32_t, 3> kThoughtWindows = {8, 16, 32};

// The beginning of a thought, up to the end of a sentence.
struct ThoughtCut {
  int32_t at = 0;                                             // tokens
  std::array<double, kThoughtWindows.size()> certainty = {};  // over each window's last tokens; -1: there are fewer
  double score = 0;                                           // of the accepted answer behind it: nats a token
};

struct ThoughtEntry {
  std::string conversation;
  std::string key;  // entry_key() of what it was made from
  int32_t tokens = 0;
  double score = 0;              // behind the whole thought
  std::vector<ThoughtCut> cuts;  // by their place: those at which one of the settings closes it
};

struct FittedThoughts {
  ThoughtSetting setting;
  std::vector<ThoughtEntry> entries;
};

inline constexpr size_t kMaxThoughtEntries = 100;

// All that are tried, the most careful first.
const std::vector<ThoughtSetting>& thought_settings();
// The places at which sentences end, with their certainties; the first is the empty beginning. Without scores.
std::vector<ThoughtCut> sentence_ends(const WrittenThought& thought);
// At which of these a setting closes the thought; null: at none, it comes to its end.
const ThoughtCut* cut_by(const ThoughtSetting& setting, const std::vector<ThoughtCut>& cuts);
// Those of them at which one of the settings does.
std::vector<ThoughtCut> possible_cuts(const std::vector<ThoughtCut>& ends);

// In their one order, with the setting that they lead to.
FittedThoughts fitted_thoughts(std::vector<ThoughtEntry> entries);
std::string thought_bytes(const FittedThoughts& fitted, uint64_t vocabulary);
// unsupported: of another vocabulary.
Result<FittedThoughts> read_thoughts(std::string_view bytes, uint64_t vocabulary);

// Answers that the model thought before: those of which it wrote clearly more than what is shown.
std::vector<TaughtAnswer> thought_answers(const Tokenizer& tokenizer, const std::vector<TaughtAnswer>& examples);
// What these answers alone would have made; nullopt: a figure of one of them is missing, so only a model can make it.
// Empty: they lead to no setting.
Result<std::optional<std::string>> thoughts_without(std::string_view bytes, uint64_t vocabulary,
                                                    const Tokenizer& tokenizer, const std::vector<TaughtAnswer>& train);

// Unless the request says itself how it thinks; whether that was so.
bool use_thought_setting(const ThoughtSetting& setting, orchestrator::ChatRequest& request);

}  // namespace chimere::improve
