#include "grammar/plain_text.h"

#include <map>
#include <utility>

#include "text/utf8.h"

namespace chimere::grammar {
namespace {

class LoopCheck {
 public:
  LoopCheck(const Automaton& automaton, StateId state) : automaton_(automaton), state_(state) {}

  bool holds() {
    for (int b = 0; b < 0x80; ++b) {
      const auto byte = static_cast<unsigned char>(b);
      if (is_plain_ascii(byte) && automaton_.step(state_, byte) != state_) return false;
    }
    for (int b = 0x80; b < 0x100; ++b) {
      const auto byte = static_cast<unsigned char>(b);
      const Utf8Lead lead = utf8_lead(byte);
      if (lead.n_more == 0) continue;
      if (!returns(automaton_.step(state_, byte), lead.n_more, lead.low, lead.high)) return false;
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
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t n_bytes = utf8_length(text, i);
    if (n_bytes == 0 || (c < 0x80 && !is_plain_ascii(c))) return std::nullopt;
    i += n_bytes;
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
