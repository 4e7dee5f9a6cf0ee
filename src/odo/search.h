// search.h  Several answers in place of one, and the best of them.
//
//   majority   n answers; the one that most of them agree on
//   best_of    n answers; the one that the judge likes best (judge.h)
//   dvts       sub-trees that grow step by step (a sentence, a line): in each, up to `width` steps are tried and the best one
//              stays, so that a mistake is left behind where it is made, and a sum that is wrong gets its right result; they
//              begin differently and never mix. Their answers vote, each with its score
//
// The answers are forks of one prompt. What all of it may cost is counted in tokens.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "odo/judge.h"
#include "odo/model_turn.h"

namespace chimere::odo {

enum class SearchKind { none, majority, best_of, dvts };
// "majority", "best_of", "dvts", "none"
std::optional<SearchKind> search_kind(std::string_view name);
const char* search_name(SearchKind kind);
inline constexpr const char* kSearchNames = "dvts, best_of, majority or none";

inline constexpr int kMaxBranches = 16;
inline constexpr int kMaxWidth = 4;
inline constexpr int32_t kMaxSearchTokens = 1 << 17;

struct SearchRule {
  SearchKind kind = SearchKind::none;
  int branches = 4;       // answers, or sub-trees
  int width = 2;          // dvts: steps that are tried
  int32_t tokens = 4096;  // of all branches together; what is open then is brought to its end without branching
};

// The temperature at which branches are drawn where nobody said one: colder ones are all alike.
inline constexpr float kSearchTemperature = 0.8f;

// A step `search` of the run; the answer is not told yet. Where all branches fail, the turn is failed.
// REQUIRES: a kind, and a request that goes on with nothing and calls no tools.
ModelTurn search_answer(orchestrator::ChatService& chat, const orchestrator::ChatRequest& request,
                        const SearchRule& rule, const Judge& judge, RunTeller& teller);

// What an answer says, for votes: its last number, else its words.
std::string answer_key(const std::string& content);

}  // namespace chimere::odo
