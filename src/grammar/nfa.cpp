#include "grammar/nfa.h"

#include <algorithm>
#include <map>
#include <set>

namespace chimere::grammar {
namespace {

constexpr size_t kMaxNfaStates = 400'000;
// Repetitions up to this many states are written out: they then merge with their neighbours.
constexpr size_t kWrittenOut = 160;
constexpr size_t kMaxWork = 2'000'000;  // about a second

Error too_large(const char* what, size_t limit) {
  return {Code::invalid_argument, "the grammar is too large: expected at most " + std::to_string(limit) + " " + what};
}

using Subset = std::vector<std::uint32_t>;  // sorted

void close(const Nfa& nfa, Subset& subset, std::vector<bool>& seen) {
  for (size_t i = 0; i < subset.size(); ++i) {
    for (const std::uint32_t target : nfa.states[subset[i]].empty) {
      if (!seen[target]) {
        seen[target] = true;
        subset.push_back(target);
      }
    }
  }
  for (const std::uint32_t s : subset) seen[s] = false;
  std::sort(subset.begin(), subset.end());
}

}  // namespace

std::uint32_t NfaBuilder::new_state() {
  nfa_.states.emplace_back();
  return static_cast<std::uint32_t>(nfa_.states.size() - 1);
}

Result<Nfa> NfaBuilder::build(ExprId expr) {
  nfa_ = Nfa{};
  nfa_.start = new_state();
  TRY_ASSIGN(nfa_.end, add(expr, nfa_.start, 0));
  return std::move(nfa_);
}

Result<std::uint32_t> NfaBuilder::add(ExprId id, std::uint32_t from, int depth) {
  if (nfa_.states.size() > kMaxNfaStates) return too_large("steps in a rule", kMaxNfaStates);
  // Front ends limit their own nesting; what they build around it is a small factor.
  if (depth > 20 * kMaxNesting) return too_large("nested expressions", 20 * kMaxNesting);
  const Expr& e = grammar_.expr(id);
  switch (e.kind) {
    case Expr::Kind::bytes:
      for (const char c : e.bytes) {
        const std::uint32_t to = new_state();
        const auto byte = static_cast<unsigned char>(c);
        nfa_.states[from].edges.push_back({{byte, byte}, to});
        from = to;
      }
      return from;
    case Expr::Kind::chars: {
      const std::uint32_t end = new_state();
      for (const std::vector<ByteRange>& run : utf8_runs(e.chars)) {
        std::uint32_t at = from;
        for (size_t i = 0; i < run.size(); ++i) {
          const std::uint32_t to = i + 1 == run.size() ? end : new_state();
          nfa_.states[at].edges.push_back({run[i], to});
          at = to;
        }
      }
      return end;
    }
    case Expr::Kind::without: return add_without(e.bytes, from);
    case Expr::Kind::sequence:
      for (const ExprId part : e.parts) {
        TRY_ASSIGN(from, add(part, from, depth + 1));
      }
      return from;
    case Expr::Kind::choice: {
      const std::uint32_t end = new_state();
      for (const ExprId part : e.parts) {
        // A state of its own: a part that loops back to its beginning must not let the others in again.
        const std::uint32_t begin = new_state();
        join(from, begin);
        TRY_ASSIGN(const std::uint32_t part_end, add(part, begin, depth + 1));
        join(part_end, end);
      }
      return end;
    }
    case Expr::Kind::repeat: return add_repeat(e, from, depth);
    case Expr::Kind::call: {
      const std::uint32_t to = new_state();
      nfa_.states[from].calls.push_back({e.rule, to});
      return to;
    }
    case Expr::Kind::fields: return add_fields(e, from, depth);
  }
  return from;
}

// One state for each number of bytes of the mark that the text ends with, as in the search of Knuth, Morris and Pratt.
std::uint32_t NfaBuilder::add_without(const std::string& mark, std::uint32_t from) {
  const auto base = static_cast<std::uint32_t>(nfa_.states.size());
  for (size_t i = 0; i < mark.size(); ++i) new_state();
  const std::uint32_t end = new_state(), not_ascii = new_state();
  join(from, base);
  for (const std::vector<ByteRange>& run : utf8_runs(CharSet(0x80, kLastChar))) {
    std::uint32_t at = not_ascii;
    for (size_t i = 0; i < run.size(); ++i) {
      const std::uint32_t to = i + 1 == run.size() ? base : new_state();
      nfa_.states[at].edges.push_back({run[i], to});
      at = to;
    }
  }
  for (std::uint32_t seen = 0; seen < mark.size(); ++seen) {
    join(base + seen, end);
    join(base + seen, not_ascii);
    for (int b = 0; b < 0x80; ++b) {
      const std::string text = mark.substr(0, seen) + static_cast<char>(b);
      size_t n = text.size();
      while (n > 0 && !(n <= mark.size() && mark.starts_with(std::string_view(text).substr(text.size() - n)))) --n;
      if (n == mark.size()) continue;
      const auto byte = static_cast<unsigned char>(b);
      nfa_.states[base + seen].edges.push_back({{byte, byte}, base + static_cast<std::uint32_t>(n)});
    }
  }
  return end;
}

Result<std::uint32_t> NfaBuilder::add_repeat(const Expr& e, std::uint32_t from, int depth) {
  const bool is_loop = e.max == kUnbounded;
  const auto copies = static_cast<size_t>(is_loop ? std::max(e.min, 1) : e.max);
  const size_t part = size(e.parts[0], kWrittenOut + 1, 0);
  if (copies > 1 && part * copies > kWrittenOut) {
    counted_.push_back({next_rule_, e.parts[0], e.min, e.max});
    const std::uint32_t to = new_state();
    nfa_.states[from].calls.push_back({next_rule_, to});
    next_rule_ += 2;
    return to;
  }
  std::uint32_t last_begin = from;
  const std::uint32_t end = new_state();
  for (int i = 0; i < static_cast<int>(copies); ++i) {
    if (i >= e.min) join(from, end);
    last_begin = new_state();
    join(from, last_begin);
    TRY_ASSIGN(from, add(e.parts[0], last_begin, depth + 1));
  }
  if (is_loop) join(from, last_begin);
  join(from, end);
  return end;
}

// Two chains over the fields: one where nothing was written yet, one where a separator comes first.
Result<std::uint32_t> NfaBuilder::add_fields(const Expr& e, std::uint32_t from, int depth) {
  std::uint32_t none = from, some = new_state();
  bool can_be_none = true, can_be_some = false;
  for (const Field& field : e.fields) {
    const std::uint32_t begin = new_state(), end = new_state();
    if (can_be_none) join(none, begin);
    if (can_be_some) {
      TRY_ASSIGN(const std::uint32_t separated, add(e.parts[0], some, depth + 1));
      join(separated, begin);
    }
    TRY_ASSIGN(const std::uint32_t written, add(field.expr, begin, depth + 1));
    join(written, end);
    if (field.required) {
      can_be_none = false;
    } else if (can_be_some) {
      join(some, end);
    }
    some = end;
    can_be_some = true;
  }
  const std::uint32_t end = new_state();
  if (e.parts.size() > 1) {
    const std::uint32_t begin = new_state();
    if (can_be_none) join(none, begin);
    TRY_ASSIGN(const std::uint32_t written, add(e.parts[1], begin, depth + 1));
    TRY_ASSIGN(const std::uint32_t separated, add(e.parts[0], written, depth + 1));
    join(separated, begin);
    if (can_be_some) {
      TRY_ASSIGN(const std::uint32_t after_fields, add(e.parts[0], some, depth + 1));
      join(after_fields, begin);
    }
    join(written, end);
  }
  if (can_be_none) join(none, end);
  if (can_be_some) join(some, end);
  return end;
}

size_t NfaBuilder::size(ExprId id, size_t most, int depth) const {
  const Expr& e = grammar_.expr(id);
  size_t n = 1;
  const auto add_part = [&](ExprId part) {
    if (n < most) n += size(part, most - n, depth + 1);
  };
  if (depth > 20 * kMaxNesting) return most;
  switch (e.kind) {
    case Expr::Kind::bytes: return e.bytes.size();
    case Expr::Kind::without: return 10 * e.bytes.size();
    case Expr::Kind::chars: return std::max<size_t>(1, utf8_runs(e.chars).size());
    case Expr::Kind::call: return 1;
    case Expr::Kind::repeat: {
      const auto copies = static_cast<size_t>(e.max == kUnbounded ? std::max(e.min, 1) : e.max);
      const size_t part = size(e.parts[0], most, depth + 1);
      return part * copies > kWrittenOut ? 1 : part * copies + 1;
    }
    case Expr::Kind::sequence:
    case Expr::Kind::choice: break;
    case Expr::Kind::fields:
      for (const Field& field : e.fields) add_part(field.expr);
      break;
  }
  for (const ExprId part : e.parts) add_part(part);
  return n;
}

Result<Dfa> determinise(const Nfa& nfa, size_t& budget, size_t max_states) {
  Dfa dfa;
  std::map<Subset, std::uint32_t> numbers;
  std::vector<const Subset*> subsets;
  std::vector<bool> seen(nfa.states.size());
  const auto number_of = [&](Subset subset) {
    std::sort(subset.begin(), subset.end());
    subset.erase(std::unique(subset.begin(), subset.end()), subset.end());
    for (const std::uint32_t s : subset) seen[s] = true;
    close(nfa, subset, seen);
    const auto [at, is_new] = numbers.try_emplace(std::move(subset), static_cast<std::uint32_t>(dfa.size()));
    if (is_new) {
      subsets.push_back(&at->first);
      dfa.emplace_back();
    }
    return at->second;
  };
  // What makes the work large is not the number of states but the sizes of the subsets they stand for.
  size_t work = kMaxWork * max_states / kMaxStates;
  number_of({nfa.start});
  for (std::uint32_t i = 0; i < dfa.size(); ++i) {
    const Subset& subset = *subsets[i];
    if (dfa.size() > budget || subset.size() > work) return too_large("states", max_states);
    work -= subset.size();
    std::set<int> cuts;
    std::map<RuleId, Subset> called;
    for (const std::uint32_t s : subset) {
      for (const NfaState::Edge& edge : nfa.states[s].edges) {
        cuts.insert(edge.bytes.first);
        cuts.insert(edge.bytes.last + 1);
      }
      for (const auto& [rule, target] : nfa.states[s].calls) called[rule].push_back(target);
    }
    std::map<int, Subset> targets;  // by the first byte of a piece between two cuts
    for (const std::uint32_t s : subset) {
      for (const NfaState::Edge& edge : nfa.states[s].edges) {
        for (auto cut = cuts.find(edge.bytes.first); *cut <= edge.bytes.last; ++cut) {
          targets[*cut].push_back(edge.target);
          work -= std::min<size_t>(work, 1);
        }
      }
    }
    std::vector<NfaState::Edge> edges;
    for (auto& [first, target] : targets) {
      const int last = *cuts.upper_bound(first) - 1;
      const std::uint32_t to = number_of(std::move(target));
      if (!edges.empty() && edges.back().target == to && edges.back().bytes.last + 1 == first) {
        edges.back().bytes.last = static_cast<unsigned char>(last);
      } else {
        edges.push_back({{static_cast<unsigned char>(first), static_cast<unsigned char>(last)}, to});
      }
    }
    dfa[i].edges = std::move(edges);
    for (auto& [rule, target] : called) {
      const std::uint32_t to = number_of(std::move(target));
      dfa[i].calls.push_back({rule, to});
    }
    dfa[i].is_final = std::binary_search(subset.begin(), subset.end(), nfa.end);
  }
  budget -= dfa.size();
  return dfa;
}

}  // namespace chimere::grammar
