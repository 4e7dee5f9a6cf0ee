#include "grammar/constraint.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "grammar/plain_text.h"

namespace chimere::grammar {
namespace {

// Bytes of a token, at most: a completion of more bytes a token need not be looked at.
constexpr std::uint32_t kMaxCompletionBytes = 16;

void allow_ids(std::span<const std::int32_t> ids, std::vector<std::uint64_t>& bits) {
  for (const std::int32_t id : ids) bits[static_cast<size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
}

}  // namespace

GrammarConstraint::GrammarConstraint(std::shared_ptr<const TokenGrammar> grammar)
    : grammar_(std::move(grammar)), recogniser_(grammar_->automaton()) {
  recogniser_.start(here_);
}

std::unique_ptr<TokenConstraint> GrammarConstraint::clone() const { return std::make_unique<GrammarConstraint>(*this); }

bool GrammarConstraint::is_in_text() const {
  const Automaton& automaton = grammar_->automaton();
  return std::any_of(here_.places.begin(), here_.places.end(), [&](const Place& place) {
    const State& state = automaton.states[place.state];
    const bool is_run = automaton.rules[state.rule].kind == Rule::Kind::run;
    return state.is_plain_loop && automaton.to_leave(place.state, place.count) <= (is_run ? 0 : 1);
  });
}

std::vector<Place> GrammarConstraint::key() const {
  std::vector<Place> places = here_.places;
  for (Place& place : places) place.count = grammar_->equal_count(place.state, place.count);
  return places;
}

GrammarConstraint::Known* GrammarConstraint::find(const std::vector<Place>& key) {
  for (Known& known : known_) {
    if (known.may_end == here_.may_end && known.places == key) return &known;
  }
  return nullptr;
}

bool GrammarConstraint::prepare(std::int64_t steps) {
  std::vector<Place> places = key();
  return find(places) || make(std::move(places), std::min(steps, TreeWalk::kBudget));
}

std::span<const std::uint64_t> GrammarConstraint::mask() {
  std::vector<Place> places = key();
  Known* known = find(places);
  if (!known) {
    make(places, TreeWalk::kBudget);
    known = find(places);
  }
  known->used = ++n_calls_;
  return known->bits;
}

bool GrammarConstraint::make(std::vector<Place> key, std::int64_t budget) {
  const bool is_whole_budget = budget >= TreeWalk::kBudget;
  std::vector<std::uint64_t> bits(grammar_->vocabulary().n_words(), 0);
  const size_t mark = recogniser_.mark();
  allow(here_.places, bits, budget);
  recogniser_.forget(mark);
  if (budget <= 0 && !is_whole_budget) return false;
  const auto is_stuck = [&] { return std::all_of(bits.begin(), bits.end(), [](std::uint64_t w) { return w == 0; }); };
  if (budget <= 0 && !here_.may_end && is_stuck()) {
    // Nothing was found in time, but there is a way to the end.
    const std::vector<std::int32_t> ids = completion(Part::all);
    if (!ids.empty()) allow_ids(std::span(ids).first(1), bits);
  }
  if (here_.may_end || is_in_text() || is_stuck()) allow_ids(grammar_->vocabulary().end_ids(), bits);
  if (known_.size() < kKept) known_.emplace_back();
  Known& known =
      *std::min_element(known_.begin(), known_.end(), [](const Known& a, const Known& b) { return a.used < b.used; });
  known = {std::move(key), here_.may_end, std::move(bits), ++n_calls_};
  return true;
}

// Places that differ in their stacks alone allow the same tokens up to the end of their rule, and are looked at as one.
void GrammarConstraint::allow(const std::vector<Place>& places, std::vector<std::uint64_t>& bits,
                              std::int64_t& budget) {
  std::vector<Place> sorted = places;
  std::sort(sorted.begin(), sorted.end(), [](const Place& a, const Place& b) {
    return std::tie(a.state, a.count, a.parent) < std::tie(b.state, b.count, b.parent);
  });
  std::vector<FrameId> parents;
  for (size_t i = 0; i < sorted.size() && budget > 0;) {
    const Place& place = sorted[i];
    parents.clear();
    for (; i < sorted.size() && sorted[i].state == place.state && sorted[i].count == place.count; ++i) {
      if (sorted[i].parent != kBottom) parents.push_back(sorted[i].parent);
    }
    const std::shared_ptr<const StateMask> mask = grammar_->state_mask(place.state, place.count, budget);
    budget -= static_cast<std::int64_t>(mask->bits.size() / 16 + mask->ids.size());
    for (size_t w = 0; w < mask->bits.size(); ++w) bits[w] |= mask->bits[w];
    allow_ids(mask->ids, bits);
    if (!parents.empty() && !mask->leaving.empty()) allow_beyond(*mask, parents, bits, budget);
  }
}

// Tokens that leave the rule go on where the stacks say. Many of them leave it with the same byte.
void GrammarConstraint::allow_beyond(const StateMask& mask, std::span<const FrameId> frames,
                                     std::vector<std::uint64_t>& bits, std::int64_t& budget) {
  PlaceSet after;
  std::uint64_t work = recogniser_.work();
  const auto spend = [&] {
    budget -= static_cast<std::int64_t>(recogniser_.work() - work);
    work = recogniser_.work();
  };
  recogniser_.enter(frames, after);
  std::array<std::unique_ptr<PlaceSet>, 256> by_byte;
  const TokenTree& tree = *mask.tree;
  for (const std::uint32_t node : mask.leaving) {
    std::unique_ptr<PlaceSet>& set = by_byte[tree.byte[node]];
    if (!set) {
      set = std::make_unique<PlaceSet>();
      recogniser_.step(after, tree.byte[node], *set);
      spend();
    }
    if (--budget <= 0) return;
    if (!set->is_alive()) continue;
    allow_ids(tree.ids_at(node), bits);
    if (tree.end[node] == node + 1 || set->places.empty()) continue;
    walk_.run(
        recogniser_, tree, node, *set, budget, [&](std::uint32_t inner) { allow_ids(tree.ids_at(inner), bits); },
        [](std::uint32_t) {});
    work = recogniser_.work();
  }
}

std::vector<std::int32_t> GrammarConstraint::completion(PlaceSet set, std::uint32_t to_end) {
  const size_t mark = recogniser_.mark();
  const std::uint64_t began = recogniser_.work();
  std::string text;
  PlaceSet next;
  bool is_near = false;
  for (;;) {
    const std::uint32_t left = recogniser_.to_end(set);
    is_near = left <= to_end;
    if (is_near || recogniser_.work() - began > kMaxCompletion) break;
    const std::optional<unsigned char> byte = recogniser_.nearer(set);
    if (!byte) break;
    recogniser_.step(set, *byte, next);
    if (recogniser_.to_end(next) >= left) break;  // the nearest way was one too many
    text += static_cast<char>(*byte);
    std::swap(set, next);
  }
  recogniser_.forget(mark);
  return is_near ? grammar_->vocabulary().longest_tokens(text) : std::vector<std::int32_t>{};
}

std::vector<std::int32_t> GrammarConstraint::completion(Part part) {
  const std::uint32_t left = recogniser_.to_end(here_);
  if (left == 0 || left == kFar) return {};
  std::uint32_t to_end = 0;
  if (part == Part::inner) {
    const Automaton& automaton = grammar_->automaton();
    const Place& place = *std::min_element(
        here_.places.begin(), here_.places.end(),
        [&](const Place& a, const Place& b) { return recogniser_.to_end(a) < recogniser_.to_end(b); });
    // Out of the rule; a run may be part of what it counts in, as the characters of a string are.
    const bool is_run = automaton.rules[automaton.states[place.state].rule].kind == Rule::Kind::run;
    const std::uint32_t outside = recogniser_.to_end_of(place.parent);
    to_end = std::min(outside - (is_run && outside > 0 ? 1 : 0), left - 1);
  }
  return completion(here_, to_end);
}

bool GrammarConstraint::can_end_after(std::int32_t id, std::int32_t n_tokens) {
  const size_t mark = recogniser_.mark();
  PlaceSet set = after(id);
  const std::uint32_t left = recogniser_.to_end(set);
  const auto most = static_cast<std::uint32_t>(std::max(n_tokens, 0));
  // Every byte is a token, so that this many are enough. Mostly fewer are.
  bool can = left <= most;
  if (!can && left / kMaxCompletionBytes <= most) {
    const std::vector<std::int32_t> ids = completion(std::move(set), 0);
    can = !ids.empty() && ids.size() <= most;
  }
  recogniser_.forget(mark);
  return can;
}

void GrammarConstraint::read(std::string_view bytes, PlaceSet& set) {
  PlaceSet next;
  for (const char c : bytes) {
    recogniser_.step(set, static_cast<unsigned char>(c), next);
    std::swap(set, next);
  }
}

PlaceSet GrammarConstraint::after(std::int32_t id) {
  const Vocabulary::Reading reading = grammar_->vocabulary().reading(id);
  PlaceSet as_text, as_code;
  if (!reading.text.empty()) {
    as_text = here_;
    read(reading.text, as_text);
  }
  if (!reading.code.empty()) {
    as_code = here_;
    read(reading.code, as_code);
  }
  as_text.may_end |= as_code.may_end;
  // A place that both lead to would stand here twice, which costs a little and harms nothing.
  as_text.places.insert(as_text.places.end(), as_code.places.begin(), as_code.places.end());
  return as_text;
}

void GrammarConstraint::accept(std::int32_t id) {
  PlaceSet next = after(id);
  if (!next.is_alive() && here_.places.size() > 1) {
    // Of very many ways those were forgotten that the mask had found: each is tried by itself.
    const std::vector<Place> places = std::exchange(here_.places, {});
    const std::uint64_t began = recogniser_.work();
    for (size_t i = 0; i < places.size() && !next.is_alive() && recogniser_.work() - began < kMaxCompletion; ++i) {
      here_.places = {places[i]};
      next = after(id);
    }
  }
  here_ = std::move(next);
  // A character that is not plain ends a string, or a line of it, or begins an escape.
  const std::string_view text = grammar_->vocabulary().reading(id).text;
  const bool is_plain = !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x80 && !is_plain_ascii(byte);
  });
  n_text_ = is_plain && (n_text_ > 0 || is_in_text()) ? n_text_ + 1 : 0;
  const bool is_digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  n_digits_ = is_digits ? n_digits_ + 1 : 0;
  if (recogniser_.mark() > kMaxFrames) {
    recogniser_.compact(here_);
    known_.clear();
  }
}

}  // namespace chimere::grammar
