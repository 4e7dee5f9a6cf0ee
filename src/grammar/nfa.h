// nfa.h  One rule on its way from an expression to a deterministic automaton.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/expression.h"

namespace chimere::grammar {

struct NfaState {
  struct Edge {
    ByteRange bytes;
    std::uint32_t target;
  };
  std::vector<Edge> edges;
  std::vector<std::pair<RuleId, std::uint32_t>> calls;
  std::vector<std::uint32_t> empty;  // edges that read nothing
};

struct Nfa {
  std::vector<NfaState> states;
  std::uint32_t start = 0, end = 0;
};

struct DfaState {
  std::vector<NfaState::Edge> edges;  // sorted, disjoint
  std::vector<std::pair<RuleId, std::uint32_t>> calls;
  bool is_final = false;
};
// State 0 is the start.
using Dfa = std::vector<DfaState>;

// Repetitions that are too large to be written out become rules of their own. The id after `rule` is kept for a rule of
// the body.
struct CountedRule {
  RuleId rule;
  ExprId body;
  int min, max;
};

class NfaBuilder {
 public:
  // New rules get ids from `first_new_rule` on.
  NfaBuilder(const Grammar& grammar, RuleId first_new_rule) : grammar_(grammar), next_rule_(first_new_rule) {}

  Result<Nfa> build(ExprId expr);
  // Those met since the last call, each used by one of the automata built.
  std::vector<CountedRule> take_counted() { return std::exchange(counted_, {}); }

 private:
  std::uint32_t new_state();
  void join(std::uint32_t from, std::uint32_t to) { nfa_.states[from].empty.push_back(to); }
  // Both return the state where the expression ends when it starts at `from`.
  Result<std::uint32_t> add(ExprId expr, std::uint32_t from, int depth);
  std::uint32_t add_without(const std::string& mark, std::uint32_t from);
  Result<std::uint32_t> add_repeat(const Expr& expr, std::uint32_t from, int depth);
  Result<std::uint32_t> add_fields(const Expr& expr, std::uint32_t from, int depth);
  // States an expression takes, counted no further than `most`.
  size_t size(ExprId expr, size_t most, int depth) const;

  const Grammar& grammar_;
  RuleId next_rule_;
  Nfa nfa_;
  std::vector<CountedRule> counted_;
};

// `budget` is the number of states that may still be made, of `max_states`, by which the work is limited, too.
Result<Dfa> determinise(const Nfa& nfa, size_t& budget, size_t max_states);

}  // namespace chimere::grammar
