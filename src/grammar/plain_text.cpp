#include "grammar/plain_text.h"

#include <map>
#include <utility>

namespace chimere::grammar {
namespace {

// How a character of several bytes may go on after its first byte (RFC 3629).
struct Lead {
  int first, last;  // of the first byte
  int second_first, second_last;
  int n_more;  // bytes after the first
};
constexpr Lead kLeads[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 1}, {0xE0, 0xE0, 0xA0, 0xBF, 2}, {0xE1, 0xEC, 0x80, 0xBF, 2}, {0xED, 0xED, 0x80, 0x9F, 2},
    {0xEE, 0xEF, 0x80, 0xBF, 2}, {0xF0, 0xF0, 0x90, 0xBF, 3}, {0xF1, 0xF3, 0x80, 0xBF, 3}, {0xF4, 0xF4, 0x80, 0x8F, 3},
};

class LoopCheck {
 public:
  LoopCheck(const Automaton& automaton, StateId state) : automaton_(automaton), state_(state) {}

  bool holds() {
    for (int b = 0; b < 0x80; ++b) {
      const auto byte = static_cast<unsigned char>(b);
      if (is_plain_ascii(byte) && automaton_.step(state_, byte) != state_) return false;
    }
    for (const Lead& lead : kLeads) {
      for (int b = lead.first; b <= lead.last; ++b) {
        const StateId to = automaton_.step(state_, static_cast<unsigned char>(b));
        if (!returns(to, lead.n_more, lead.second_first, lead.second_last)) return false;
      }
    }
    return true;
  }

 private:
  bool returns(StateId from, int n_more, int first, int last) {
    if (from == kNoState) return false;
    if (n_more == 0) return from == state_;
    const bool is_any = first == 0x80 && last == 0xBF;
    if (const auto known = known_.find({from, n_more}); is_any && known != known_.end()) return known->second;
    bool all = true;
    for (int b = first; all && b <= last; ++b) {
      all = returns(automaton_.step(from, static_cast<unsigned char>(b)), n_more - 1, 0x80, 0xBF);
    }
    if (is_any) known_[{from, n_more}] = all;
    return all;
  }

  const Automaton& automaton_;
  StateId state_;
  std::map<std::pair<StateId, int>, bool> known_;
};

}  // namespace

std::optional<int> count_plain(std::string_view text) {
  int n = 0;
  for (size_t i = 0; i < text.size(); ++n) {
    const auto c = static_cast<unsigned char>(text[i++]);
    if (c < 0x80) {
      if (!is_plain_ascii(c)) return std::nullopt;
      continue;
    }
    const Lead* lead = nullptr;
    for (const Lead& l : kLeads) {
      if (l.first <= c && c <= l.last) lead = &l;
    }
    if (!lead || i + static_cast<size_t>(lead->n_more) > text.size()) return std::nullopt;
    for (int k = 0; k < lead->n_more; ++k, ++i) {
      const auto next = static_cast<unsigned char>(text[i]);
      const int first = k == 0 ? lead->second_first : 0x80, last = k == 0 ? lead->second_last : 0xBF;
      if (next < first || next > last) return std::nullopt;
    }
  }
  return n;
}

ByteSet plain_first_bytes() {
  ByteSet bytes;
  for (size_t b = 0; b < 256; ++b) bytes[b] = b < 0x80 ? is_plain_ascii(static_cast<unsigned char>(b)) : b >= 0xC2;
  return bytes;
}

void mark_plain_loops(Automaton& automaton) {
  for (StateId s = 0; s < automaton.states.size(); ++s) {
    State& state = automaton.states[s];
    if (automaton.step(s, 'a') != s || automaton.step(s, ' ') != s) continue;
    state.is_plain_loop = LoopCheck(automaton, s).holds();
  }
}

}  // namespace chimere::grammar
