#include "grammar/analysis.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <span>
#include <utility>

namespace chimere::grammar {
namespace {

// Counting empty things is only sensible when it can be done by trying.
constexpr std::uint32_t kMaxEmptyRepeat = 64;

// Brings `grow` to its fixed point: it looks at a state and says whether what is known about the state became more. A
// state is looked at again when a state it leads to, or the start of a rule it calls, became more.
template <class Grow>
void fix(const Network& network, Grow grow) {
  const size_t n = network.states.size();
  std::vector<std::vector<StateId>> leads_here(n);
  for (StateId s = 0; s < n; ++s) {
    for (const NfaState::Edge& edge : network.states[s].edges) leads_here[edge.target].push_back(s);
    for (const auto& [rule, target] : network.states[s].calls) {
      leads_here[target].push_back(s);
      if (network.rules[rule].start != kNoState) leads_here[network.rules[rule].start].push_back(s);
    }
  }
  std::deque<StateId> waiting;
  std::vector<bool> waits(n, true);
  for (StateId s = 0; s < n; ++s) waiting.push_back(static_cast<StateId>(n - 1 - s));
  while (!waiting.empty()) {
    const StateId s = waiting.front();
    waiting.pop_front();
    waits[s] = false;
    if (!grow(s)) continue;
    for (const StateId before : leads_here[s]) {
      if (!waits[before]) waiting.push_back(before);
      waits[before] = true;
    }
  }
}

// States from which the end of their rule can be reached without reading a byte.
std::vector<bool> states_that_may_end(const Network& network) {
  std::vector<bool> ends(network.states.size());
  fix(network, [&](StateId s) {
    if (ends[s]) return false;
    const Rule& rule = network.rules[network.owner[s]];
    const DfaState& state = network.states[s];
    if (rule.kind == Rule::Kind::repeat) {
      ends[s] = rule.min == 0 || ends[network.rules[rule.body].start];
    } else if (network.is_head(s)) {
      ends[s] = rule.min == 0;
    } else {
      ends[s] = state.is_final || std::any_of(state.calls.begin(), state.calls.end(), [&](const auto& call) {
                  return ends[network.rules[call.first].start] && ends[call.second];
                });
    }
    return static_cast<bool>(ends[s]);
  });
  return ends;
}

std::vector<ByteSet> first_bytes(const Network& network, const std::vector<bool>& ends) {
  std::vector<ByteSet> first(network.states.size());
  fix(network, [&](StateId s) {
    ByteSet bytes;
    for (const NfaState::Edge& edge : network.states[s].edges) {
      for (int b = edge.bytes.first; b <= edge.bytes.last; ++b) bytes.set(static_cast<size_t>(b));
    }
    for (const auto& [rule, target] : network.states[s].calls) {
      const StateId start = network.rules[rule].start;
      bytes |= first[start];
      if (ends[start]) bytes |= first[target];
    }
    const bool more = bytes != first[s];
    first[s] = bytes;
    return more;
  });
  return first;
}

// What comes after the rules that a state calls, given what comes after its own.
void fill_follow(Network& network, const std::vector<bool>& ends, const std::vector<ByteSet>& first) {
  std::vector<std::vector<StateId>> callers(network.rules.size());  // states of a rule that call another
  for (StateId s = 0; s < network.states.size(); ++s) {
    if (!network.states[s].calls.empty()) callers[network.owner[s]].push_back(s);
  }
  std::deque<RuleId> waiting;
  for (RuleId r = 0; r < network.rules.size(); ++r) waiting.push_back(r);
  while (!waiting.empty()) {
    const RuleId r = waiting.front();
    waiting.pop_front();
    for (const StateId s : callers[r]) {
      for (const auto& [called, target] : network.states[s].calls) {
        ByteSet after = first[target];
        if (ends[target] || network.is_repeat(target)) after |= network.rules[r].follow;
        ByteSet& follow = network.rules[called].follow;
        if ((follow | after) == follow) continue;
        follow |= after;
        waiting.push_back(called);
      }
    }
  }
}

// Rules that can be entered from a rule's start before a byte was read.
std::vector<RuleId> entered_first(const Network& network, const std::vector<bool>& ends, RuleId rule) {
  std::vector<RuleId> entered;
  std::vector<StateId> reached{network.rules[rule].start};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const auto& [called, target] : network.states[reached[i]].calls) {
      entered.push_back(called);
      const bool is_new = std::find(reached.begin(), reached.end(), target) == reached.end();
      if (ends[network.rules[called].start] && is_new) reached.push_back(target);
    }
  }
  std::sort(entered.begin(), entered.end());
  entered.erase(std::unique(entered.begin(), entered.end()), entered.end());
  return entered;
}

Status refuse_left_recursion(const Network& network, const std::vector<bool>& ends, const Grammar& grammar) {
  const size_t n = network.rules.size();
  std::vector<std::vector<RuleId>> entered(n);
  std::vector<size_t> n_entering(n);
  for (RuleId r = 0; r < n; ++r) {
    if (network.rules[r].start == kNoState) continue;
    entered[r] = entered_first(network, ends, r);
    for (const RuleId other : entered[r]) ++n_entering[other];
  }
  // Takes away what nothing enters, again and again; what is left goes round in circles, or is entered by such.
  std::vector<RuleId> free;
  for (RuleId r = 0; r < n; ++r) {
    if (n_entering[r] == 0) free.push_back(r);
  }
  for (size_t i = 0; i < free.size(); ++i) {
    for (const RuleId other : entered[free[i]]) {
      if (--n_entering[other] == 0) free.push_back(other);
    }
  }
  if (free.size() == n) return Ok{};
  std::string names;
  for (RuleId r = 0; r < grammar.n_rules(); ++r) {
    if (n_entering[r] == 0 || names.size() > 100) continue;
    names += (names.empty() ? "" : ", ") + grammar.rule_name(r);
  }
  return Error{Code::invalid_argument,
               "left recursion: expected every rule to read something before it comes back to itself, found a circle "
               "among the rules " +
                   names};
}

// Bytes from each state of a run to its head, and of the shortest round. `before`: along one byte.
void measure_run(Rule& rule, const std::vector<std::vector<StateId>>& before, std::vector<std::uint32_t>& to_end) {
  std::vector<std::pair<StateId, std::uint32_t>> reached{{rule.start, 0}};
  for (size_t i = 0; i < reached.size(); ++i) {
    const auto [state, distance] = reached[i];
    for (const StateId s : before[state]) {
      std::uint32_t& known = s == rule.start ? rule.round : to_end[s];
      if (known != kFar) continue;
      known = distance + 1;
      if (s != rule.start) reached.push_back({s, known});
    }
  }
}

}  // namespace

// Dijkstra's search from the ends, in Knuth's form for grammars: what is nearest to its end is final, and a call adds
// up two distances that are.
std::vector<std::uint32_t> shortest_ends(Network& network) {
  const size_t n = network.states.size();
  std::vector<std::uint32_t> known(n, kFar);
  struct Caller {
    StateId state, callee, target;
  };
  std::vector<std::vector<StateId>> before(n);   // along one byte
  std::vector<std::vector<Caller>> callers(n);   // by the start of what they call, and by where they go on
  std::vector<std::vector<RuleId>> repeated(n);  // repeats, by the start of their body
  using Entry = std::pair<std::uint64_t, StateId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> nearest;
  for (StateId s = 0; s < n; ++s) {
    for (const NfaState::Edge& edge : network.states[s].edges) before[edge.target].push_back(s);
  }
  for (RuleId r = 0; r < network.rules.size(); ++r) {
    Rule& rule = network.rules[r];
    if (rule.kind == Rule::Kind::plain || rule.start == kNoState) continue;
    rule.round = kFar;
    if (rule.kind == Rule::Kind::run) {
      measure_run(rule, before, known);
      nearest.push({static_cast<std::uint64_t>(rule.min) * rule.round, rule.start});
    } else {
      repeated[network.rules[rule.body].start].push_back(r);
      if (rule.min == 0) nearest.push({0, rule.start});
    }
  }
  for (StateId s = 0; s < n; ++s) {
    if (network.rules[network.owner[s]].kind != Rule::Kind::plain) continue;
    if (network.states[s].is_final) nearest.push({0, s});
    for (const auto& [called, target] : network.states[s].calls) {
      const Caller caller{s, network.rules[called].start, target};
      callers[caller.callee].push_back(caller);
      if (caller.callee != target) callers[target].push_back(caller);
    }
  }
  std::vector<std::uint64_t> final(n, kFar);  // of a run's head: out of the whole run
  std::vector<bool> is_final(n);
  while (!nearest.empty()) {
    const auto [distance, s] = nearest.top();
    nearest.pop();
    if (is_final[s]) continue;
    is_final[s] = true;
    final[s] = std::min<std::uint64_t>(distance, kFar);
    const bool is_plain = network.rules[network.owner[s]].kind == Rule::Kind::plain;
    for (const StateId b : before[s]) {
      if (is_plain) nearest.push({final[s] + 1, b});
    }
    for (const Caller& c : callers[s]) {
      if (is_final[c.callee] && is_final[c.target]) nearest.push({final[c.callee] + final[c.target], c.state});
    }
    for (const RuleId r : repeated[s]) {
      Rule& rule = network.rules[r];
      rule.round = static_cast<std::uint32_t>(final[s]);
      if (rule.min > 0) nearest.push({rule.min * final[s], rule.start});
    }
  }
  for (StateId s = 0; s < n; ++s) {
    if (network.rules[network.owner[s]].kind == Rule::Kind::plain) known[s] = static_cast<std::uint32_t>(final[s]);
  }
  return known;
}

bool keep_productive(Network& network, RuleId root) {
  std::vector<bool> good(network.states.size());
  fix(network, [&](StateId s) {
    if (good[s]) return false;
    const Rule& rule = network.rules[network.owner[s]];
    const DfaState& state = network.states[s];
    const auto calls_on = [&](const auto& call) { return good[network.rules[call.first].start] && good[call.second]; };
    if (rule.kind == Rule::Kind::repeat) {
      good[s] = rule.min == 0 || good[network.rules[rule.body].start];
    } else {
      good[s] = state.is_final ||
                std::any_of(state.edges.begin(), state.edges.end(),
                            [&](const NfaState::Edge& edge) { return static_cast<bool>(good[edge.target]); }) ||
                std::any_of(state.calls.begin(), state.calls.end(), calls_on);
    }
    return static_cast<bool>(good[s]);
  });
  for (StateId s = 0; s < network.states.size(); ++s) {
    DfaState& state = network.states[s];
    std::erase_if(state.edges, [&](const NfaState::Edge& edge) { return !good[edge.target]; });
    std::erase_if(state.calls,
                  [&](const auto& call) { return !good[network.rules[call.first].start] || !good[call.second]; });
  }
  return good[network.rules[root].start];
}

Status analyse(Network& network, const Grammar& grammar) {
  const std::vector<bool> ends = states_that_may_end(network);
  for (const Rule& rule : network.rules) {
    if (rule.kind != Rule::Kind::repeat || !ends[network.rules[rule.body].start]) continue;
    if (Automaton::cap(rule) > kMaxEmptyRepeat) {
      return Error{Code::invalid_argument, "repetition: expected at most " + std::to_string(kMaxEmptyRepeat) +
                                               " times for something that may be empty, found " +
                                               std::to_string(Automaton::cap(rule))};
    }
  }
  TRY(refuse_left_recursion(network, ends, grammar));
  fill_follow(network, ends, first_bytes(network, ends));
  return Ok{};
}

}  // namespace chimere::grammar
