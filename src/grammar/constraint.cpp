#include "grammar/constraint.h"

#include <algorithm>
#include <array>
#include <utility>

namespace chimere::grammar {
namespace {

void allow_ids(std::span<const std::int32_t> ids, std::vector<std::uint64_t>& bits) {
  for (const std::int32_t id : ids) bits[static_cast<size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
}

}  // namespace

GrammarConstraint::GrammarConstraint(std::shared_ptr<const TokenGrammar> grammar)
    : grammar_(std::move(grammar)), recogniser_(grammar_->automaton()) {
  recogniser_.start(here_);
}

std::unique_ptr<TokenConstraint> GrammarConstraint::clone() const { return std::make_unique<GrammarConstraint>(*this); }

std::span<const std::uint64_t> GrammarConstraint::mask() {
  ++n_calls_;
  std::vector<Place> places = here_.places;
  for (Place& place : places) place.count = grammar_->equal_count(place.state, place.count);
  for (Known& known : known_) {
    if (known.may_end != here_.may_end || known.places != places) continue;
    known.used = n_calls_;
    return known.bits;
  }
  if (known_.size() < kKept) known_.emplace_back();
  Known& known =
      *std::min_element(known_.begin(), known_.end(), [](const Known& a, const Known& b) { return a.used < b.used; });
  known.places = std::move(places);
  known.may_end = here_.may_end;
  known.used = n_calls_;
  known.bits.assign(grammar_->vocabulary().n_words(), 0);
  const size_t mark = recogniser_.mark();
  std::int64_t budget = TreeWalk::kBudget;
  for (const Place& place : here_.places) allow(place, known.bits, budget);
  recogniser_.forget(mark);
  const bool is_stuck = std::all_of(known.bits.begin(), known.bits.end(), [](std::uint64_t word) { return word == 0; });
  if (here_.may_end || is_stuck) allow_ids(grammar_->vocabulary().end_ids(), known.bits);
  return known.bits;
}

void GrammarConstraint::allow(const Place& place, std::vector<std::uint64_t>& bits, std::int64_t& budget) {
  const std::shared_ptr<const StateMask> mask = grammar_->state_mask(place.state, place.count, budget);
  for (size_t i = 0; i < mask->bits.size(); ++i) bits[i] |= mask->bits[i];
  allow_ids(mask->ids, bits);
  if (place.parent != kBottom && !mask->leaving.empty()) allow_beyond(*mask, place.parent, bits, budget);
}

// Tokens that leave the rule go on where the stack says. Many of them leave it with the same byte.
void GrammarConstraint::allow_beyond(const StateMask& mask, FrameId frame, std::vector<std::uint64_t>& bits,
                                     std::int64_t& budget) {
  PlaceSet after;
  recogniser_.enter(frame, after);
  std::array<std::unique_ptr<PlaceSet>, 256> by_byte;
  const TokenTree& tree = *mask.tree;
  for (const std::uint32_t node : mask.leaving) {
    std::unique_ptr<PlaceSet>& set = by_byte[tree.byte[node]];
    if (!set) {
      set = std::make_unique<PlaceSet>();
      recogniser_.step(after, tree.byte[node], *set);
    }
    if (!set->is_alive()) continue;
    allow_ids(tree.ids_at(node), bits);
    if (tree.end[node] == node + 1 || set->places.empty()) continue;
    walk_.run(
        recogniser_, tree, node, *set, budget, [&](std::uint32_t inner) { allow_ids(tree.ids_at(inner), bits); },
        [](std::uint32_t) {});
  }
}

void GrammarConstraint::read(std::string_view bytes, PlaceSet& set) {
  PlaceSet next;
  for (const char c : bytes) {
    recogniser_.step(set, static_cast<unsigned char>(c), next);
    std::swap(set, next);
  }
}

void GrammarConstraint::accept(std::int32_t id) {
  const Vocabulary::Reading reading = grammar_->vocabulary().reading(id);
  PlaceSet as_text, as_code;
  if (!reading.text.empty()) {
    as_text = here_;
    read(reading.text, as_text);
  }
  if (!reading.code.empty()) {
    as_code = std::move(here_);
    read(reading.code, as_code);
  }
  here_ = std::move(as_text);
  here_.may_end |= as_code.may_end;
  // A place that both lead to would stand here twice, which costs a little and harms nothing.
  here_.places.insert(here_.places.end(), as_code.places.begin(), as_code.places.end());
  if (recogniser_.mark() > kMaxFrames) {
    recogniser_.compact(here_);
    known_.clear();
  }
}

}  // namespace chimere::grammar
