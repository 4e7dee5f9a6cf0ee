// automaton.cpp  From a Grammar to an Automaton: rule by rule, then what only all rules together show.
#include "grammar/automaton.h"

#include <algorithm>
#include <map>
#include <optional>

#include "grammar/analysis.h"
#include "grammar/nfa.h"
#include "grammar/plain_text.h"

namespace chimere::grammar {
namespace {

// A body that can be counted without a stack: bytes alone, never empty, over where it could end, and never back at its
// beginning in between.
bool is_countable(const Dfa& body) {
  bool ends = false;
  for (const DfaState& state : body) {
    if (!state.calls.empty()) return false;
    if (state.is_final && !state.edges.empty()) return false;
    ends |= state.is_final;
    for (const NfaState::Edge& edge : state.edges) {
      if (edge.target == 0) return false;
    }
  }
  return ends && !body[0].is_final;
}

class Compiler {
 public:
  Compiler(const Grammar& grammar, size_t max_states)
      : grammar_(grammar),
        builder_(grammar, static_cast<RuleId>(grammar.n_rules())),
        max_states_(max_states),
        budget_(max_states) {}

  Result<Network> run() {
    network_.rules.resize(grammar_.n_rules());
    for (RuleId r = 0; r < grammar_.n_rules(); ++r) {
      const std::optional<ExprId> expr = grammar_.definition(r);
      if (!expr) return Error{Code::invalid_argument, "rule " + grammar_.rule_name(r) + " is used but not defined"};
      TRY_ASSIGN(const Dfa dfa, automaton_of(*expr));
      add_plain(r, dfa);
      TRY(add_counted());
    }
    return std::move(network_);
  }

 private:
  Result<Dfa> automaton_of(ExprId expr) {
    TRY_ASSIGN(const Nfa nfa, builder_.build(expr));
    return determinise(nfa, budget_, max_states_);
  }

  // Repetitions inside repetitions turn up while bodies are built.
  Status add_counted() {
    std::vector<CountedRule> waiting = builder_.take_counted();
    while (!waiting.empty()) {
      const CountedRule counted = waiting.back();
      waiting.pop_back();
      TRY_ASSIGN(const Dfa body, automaton_of(counted.body));
      for (const CountedRule& inner : builder_.take_counted()) waiting.push_back(inner);
      if (network_.rules.size() < counted.rule + 2) network_.rules.resize(counted.rule + 2);
      Rule& rule = network_.rules[counted.rule];
      rule.min = static_cast<std::uint32_t>(counted.min);
      rule.max = counted.max == kUnbounded ? kNoLimit : static_cast<std::uint32_t>(counted.max);
      if (is_countable(body)) {
        rule.kind = Rule::Kind::run;
        add_run(counted.rule, body);
      } else {
        rule.kind = Rule::Kind::repeat;
        rule.body = counted.rule + 1;
        rule.start = new_state(counted.rule);
        network_.states[rule.start].calls = {{rule.body, rule.start}};
        add_plain(counted.rule + 1, body);
      }
    }
    return Ok{};
  }

  StateId new_state(RuleId owner) {
    network_.states.emplace_back();
    network_.owner.push_back(owner);
    return static_cast<StateId>(network_.states.size() - 1);
  }

  void add_plain(RuleId rule, const Dfa& dfa) {
    const auto base = static_cast<StateId>(network_.states.size());
    network_.rules[rule].start = base;
    for (const DfaState& state : dfa) {
      DfaState& copy = network_.states[new_state(rule)];
      copy = state;
      for (NfaState::Edge& edge : copy.edges) edge.target += base;
      for (auto& [called, target] : copy.calls) target += base;
    }
  }

  // The places where the body ends are its beginning.
  void add_run(RuleId rule, const Dfa& body) {
    const auto base = static_cast<StateId>(network_.states.size());
    network_.rules[rule].start = base;
    for (const DfaState& state : body) {
      DfaState& copy = network_.states[new_state(rule)];
      copy.edges = state.edges;
      for (NfaState::Edge& edge : copy.edges) edge.target = body[edge.target].is_final ? base : edge.target + base;
    }
    network_.states[base].is_final = true;  // once the count permits it
  }

  const Grammar& grammar_;
  NfaBuilder builder_;
  Network network_;
  const size_t max_states_;
  size_t budget_;
};

// Bytes that no edge tells apart share a column of the table.
void fill_table(const Network& network, Automaton& automaton) {
  std::array<bool, 257> cuts{};
  for (const DfaState& state : network.states) {
    for (const NfaState::Edge& edge : state.edges) cuts[edge.bytes.first] = cuts[edge.bytes.last + 1] = true;
  }
  std::uint32_t column = 0;
  for (size_t b = 0; b < 256; ++b) {
    if (b > 0 && cuts[b]) ++column;
    automaton.byte_class[b] = static_cast<std::uint8_t>(column);
  }
  automaton.n_classes = column + 1;
  automaton.next.assign(network.states.size() * automaton.n_classes, kNoState);
  for (size_t s = 0; s < network.states.size(); ++s) {
    for (const NfaState::Edge& edge : network.states[s].edges) {
      const size_t last = automaton.byte_class[edge.bytes.last];
      for (size_t c = automaton.byte_class[edge.bytes.first]; c <= last; ++c) {
        automaton.next[s * automaton.n_classes + c] = edge.target;
      }
    }
  }
}

}  // namespace

std::uint32_t Automaton::to_leave(StateId state, std::uint32_t count) const {
  const State& s = states[state];
  const Rule& rule = rules[s.rule];
  if (rule.kind == Rule::Kind::plain) return s.to_end;
  std::uint64_t bytes = 0;
  if (rule.kind == Rule::Kind::run && state != rule.start) {
    bytes = s.to_end;
    ++count;  // the round that is being read
  }
  if (count < rule.min) bytes += static_cast<std::uint64_t>(rule.min - count) * rule.round;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kFar));
}

Result<Automaton> compile(const Grammar& grammar, size_t max_states) {
  TRY(grammar.check_size());
  TRY_ASSIGN(Network network, Compiler(grammar, max_states).run());
  if (!keep_productive(network, grammar.root)) {
    return Error{Code::invalid_argument,
                 "there is no text that fits: rule " + grammar.rule_name(grammar.root) + " can never be completed"};
  }
  TRY(analyse(network, grammar));
  const std::vector<std::uint32_t> to_end = shortest_ends(network);
  Automaton automaton;
  automaton.root = grammar.root;
  automaton.rules = std::move(network.rules);
  fill_table(network, automaton);
  automaton.states.resize(network.states.size());
  for (StateId s = 0; s < network.states.size(); ++s) {
    const DfaState& from = network.states[s];
    State& to = automaton.states[s];
    to.rule = network.owner[s];
    const Rule& rule = automaton.rules[to.rule];
    to.first_call = static_cast<std::uint32_t>(automaton.calls.size());
    to.is_final = from.is_final;
    to.has_bytes = !from.edges.empty();
    to.to_end = to_end[s];
    for (const auto& [called, target] : from.calls) {
      const DfaState& after = network.states[target];
      const bool is_last =
          rule.kind == Rule::Kind::plain && after.is_final && after.edges.empty() && after.calls.empty();
      automaton.calls.push_back({called, target, is_last});
    }
    to.n_calls = static_cast<std::uint32_t>(automaton.calls.size()) - to.first_call;
    to.is_simple = rule.kind == Rule::Kind::plain && !to.is_final && to.n_calls == 0;
  }
  mark_plain_loops(automaton);
  return Result<Automaton>{std::move(automaton)};
}

}  // namespace chimere::grammar
