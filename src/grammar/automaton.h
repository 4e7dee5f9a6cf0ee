// automaton.h  A grammar in the form that runs: one deterministic byte automaton per rule, which may call each other.
//
// A place in the text is a state, a count and a stack of places to return to (recogniser.h). There are three kinds of
// rules:
//
//   plain    states with byte edges and calls; a final state returns
//   run      a body that is a byte automaton and can not be a prefix of itself (a character, mostly), `min` to `max`
//            times. Its start is the head: to arrive there adds one to the count. So `.{0,100000}` has a handful of
//            states.
//   repeat   any other body, `min` to `max` times. Its one state calls the body; the count stands in the stack.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "grammar/expression.h"

namespace chimere::grammar {

using StateId = std::uint32_t;
inline constexpr StateId kNoState = UINT32_MAX;
inline constexpr std::uint32_t kNoLimit = UINT32_MAX;
inline constexpr size_t kMaxStates = 30'000;
// Distances count no further: no answer is as long.
inline constexpr std::uint32_t kFar = 1u << 30;

using ByteSet = std::bitset<256>;

struct Call {
  RuleId rule;
  StateId target;  // where to go on after it
  bool is_last;    // at the target nothing but the return is left, so that the stack need not grow
};

struct Rule {
  enum class Kind { plain, run, repeat };
  Kind kind = Kind::plain;
  StateId start = kNoState;
  std::uint32_t min = 0, max = 0;  // run, repeat; max may be kNoLimit
  RuleId body = 0;                 // repeat
  std::uint32_t round = 0;         // run, repeat: bytes of the shortest body
  ByteSet follow;                  // bytes that can come after the rule, wherever it is called
};

struct State {
  RuleId rule = 0;
  std::uint32_t first_call = 0, n_calls = 0;
  bool is_final = false;
  bool has_bytes = false;
  // All plain characters (vocabulary.h) lead back to this state.
  bool is_plain_loop = false;
  // Neither calls nor returns, and its rule counts nothing: a step that arrives here is done.
  bool is_simple = false;
  // Bytes of the shortest way to the end of the rule; of a run, to its head.
  std::uint32_t to_end = 0;
};

struct Automaton {
  std::vector<Rule> rules;
  std::vector<State> states;
  std::vector<Call> calls;
  std::array<std::uint8_t, 256> byte_class{};
  std::uint32_t n_classes = 0;
  std::vector<StateId> next;  // [state][byte class]
  RuleId root = 0;

  StateId step(StateId state, unsigned char byte) const { return next[state * n_classes + byte_class[byte]]; }
  // Rules count no further than this.
  static std::uint32_t cap(const Rule& rule) { return rule.max == kNoLimit ? rule.min : rule.max; }
  // Bytes of the shortest way out of the rule of a state.
  std::uint32_t to_leave(StateId state, std::uint32_t count) const;
};

// Refuses what is too large, left-recursive, or matches no text at all.
Result<Automaton> compile(const Grammar& grammar, size_t max_states = kMaxStates);

}  // namespace chimere::grammar
