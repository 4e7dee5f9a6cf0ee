#include "grammar/pattern.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/recogniser.h"
#include "grammar/regex.h"

namespace chimere::grammar {

// Far fewer than a grammar may have: a file has many patterns, and each is compiled when it is read.
constexpr size_t kMaxPatternStates = 2000;

// States of the text, by number; 0 is its beginning.
struct PatternTable {
  static constexpr size_t kMaxTableStates = 1024;
  static constexpr std::uint64_t kMaxTableWork = 2'000'000;  // steps of the recogniser

  std::vector<std::uint16_t> next;  // [state][byte class]
  std::vector<bool> ends;           // the text may end here
  std::vector<bool> stays;          // every byte leads back here: the rest of the text changes nothing
};

Result<Pattern> Pattern::parse(std::string_view regex) {
  Grammar grammar;
  RegexOptions options;
  options.is_search = true;
  TRY_ASSIGN(const ExprId root, parse_regex(regex, grammar, options));
  grammar.root = grammar.add_rule("pattern");
  grammar.define(grammar.root, root);
  TRY_ASSIGN(Automaton automaton, compile(grammar, kMaxPatternStates));
  return Pattern(std::make_shared<const Automaton>(std::move(automaton)));
}

bool Pattern::tabulate() {
  using Key = std::tuple<StateId, std::uint32_t, FrameId>;
  const Automaton& automaton = *automaton_;
  const size_t n_classes = automaton.n_classes;
  std::vector<unsigned char> byte_of(n_classes, 0);  // one of each class
  for (int byte = 255; byte >= 0; --byte) byte_of[automaton.byte_class[byte]] = static_cast<unsigned char>(byte);
  Recogniser recogniser(automaton);  // forgets no frame, so that equal places have equal numbers
  std::map<std::pair<bool, std::vector<Key>>, std::uint16_t> numbers;
  std::vector<PlaceSet> sets;
  const auto number_of = [&](PlaceSet set) {
    std::vector<Key> keys;
    for (const Place& place : set.places) keys.emplace_back(place.state, place.count, place.parent);
    std::sort(keys.begin(), keys.end());
    const auto [at, is_new] =
        numbers.emplace(std::pair(set.may_end, std::move(keys)), static_cast<std::uint16_t>(sets.size()));
    if (is_new) sets.push_back(std::move(set));
    return at->second;
  };
  auto table = std::make_shared<PatternTable>();
  PlaceSet set;
  recogniser.start(set);
  number_of(std::move(set));
  for (size_t state = 0; state < sets.size(); ++state) {
    table->ends.push_back(sets[state].may_end);
    bool stays = true;
    for (size_t c = 0; c < n_classes; ++c) {
      PlaceSet to;
      recogniser.step(sets[state], byte_of[c], to);
      table->next.push_back(number_of(std::move(to)));
      stays = stays && table->next.back() == state;
      if (sets.size() > PatternTable::kMaxTableStates || recogniser.work() > PatternTable::kMaxTableWork) return false;
    }
    table->stays.push_back(stays);
  }
  table_ = std::move(table);
  return true;
}

bool Pattern::is_in(std::string_view text) const {
  if (table_) {
    size_t state = 0;
    for (const char byte : text) {
      if (table_->stays[state]) break;
      state = table_->next[state * automaton_->n_classes + automaton_->byte_class[static_cast<unsigned char>(byte)]];
    }
    return table_->ends[state];
  }
  Recogniser recogniser(*automaton_);
  PlaceSet here, next;
  recogniser.start(here);
  for (const char byte : text) {
    recogniser.step(here, static_cast<unsigned char>(byte), next);
    std::swap(here, next);
    if (!here.is_alive()) return false;
  }
  return here.may_end;
}

}  // namespace chimere::grammar
