// analysis.h  What follows from a set of rules as a whole.
#pragma once

#include <string>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/nfa.h"

namespace chimere::grammar {

// All rules' states in one list; the numbers in edges and calls are places in it.
struct Network {
  std::vector<Rule> rules;
  std::vector<DfaState> states;
  std::vector<RuleId> owner;  // of each state

  bool is_repeat(StateId state) const { return rules[owner[state]].kind == Rule::Kind::repeat; }
  bool is_head(StateId state) const {
    const Rule& rule = rules[owner[state]];
    return rule.kind == Rule::Kind::run && rule.start == state;
  }
};

// Takes away the edges and calls that lead where no text can be completed. False when that is so from the very start.
bool keep_productive(Network& network, RuleId root);
// Fills Rule::follow. Refuses rules that call themselves before they read anything, and empty things repeated often.
Status analyse(Network& network, const Grammar& grammar);
// State::to_end of every state; fills Rule::round. What can never end is kFar away.
std::vector<std::uint32_t> shortest_ends(Network& network);

}  // namespace chimere::grammar
