#include "grammar/recogniser.h"

#include <algorithm>

#include "base/check.h"

namespace chimere::grammar {
namespace {

constexpr FrameId kNoFrame = UINT32_MAX;
constexpr size_t kShort = 16;  // up to here a look at every element is faster than hashing
constexpr size_t kSlots = 4096;

std::uint32_t mix(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint64_t x = (static_cast<std::uint64_t>(a) << 32 | b) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 29) ^ c) * 0xBF58476D1CE4E5B9u;
  return static_cast<std::uint32_t>(x >> 32);
}

}  // namespace

Recogniser::Recogniser(const Automaton& automaton) : automaton_(automaton), buckets_(kBuckets, kNoFrame) {
  frames_.push_back({kNoState, 0, kBottom, 0, 0, kNoFrame});
  frames_.push_back({kNoState, 0, kBottom, 0, 0, kNoFrame});
}

size_t Recogniser::bucket(StateId state, std::uint32_t count, FrameId parent) {
  return mix(state, count, parent) % kBuckets;
}

FrameId Recogniser::push(StateId state, std::uint32_t count, FrameId parent) {
  const size_t b = bucket(state, count, parent);
  for (FrameId f = buckets_[b]; f != kNoFrame; f = frames_[f].chained) {
    const Frame& frame = frames_[f];
    if (frame.state == state && frame.count == count && frame.parent == parent) return f;
  }
  const std::uint32_t depth = frames_[parent].depth + 1;
  if (depth > kMaxDepth) return kNoFrame;
  const auto id = static_cast<FrameId>(frames_.size());
  const std::uint32_t to_end = this->to_end({state, count, parent});
  frames_.push_back({state, count, parent, depth, to_end, buckets_[b]});
  buckets_[b] = id;
  return id;
}

void Recogniser::forget(size_t mark) {
  while (frames_.size() > mark) {
    const Frame& last = frames_.back();
    buckets_[bucket(last.state, last.count, last.parent)] = last.chained;
    frames_.pop_back();
  }
}

void Recogniser::compact(PlaceSet& set) {
  std::vector<bool> needed(frames_.size());
  needed[kBottom] = needed[kOpen] = true;
  for (const Place& place : set.places) {
    for (FrameId f = place.parent; !needed[f]; f = frames_[f].parent) needed[f] = true;
  }
  std::vector<FrameId> moved(frames_.size(), kNoFrame);
  const std::vector<Frame> old = std::move(frames_);
  frames_.assign(old.begin(), old.begin() + 2);
  std::fill(buckets_.begin(), buckets_.end(), kNoFrame);
  moved[kBottom] = kBottom;
  moved[kOpen] = kOpen;
  for (FrameId f = 2; f < old.size(); ++f) {  // parents come before their children
    if (needed[f]) moved[f] = push(old[f].state, old[f].count, moved[old[f].parent]);
  }
  for (Place& place : set.places) place.parent = moved[place.parent];
}

std::uint32_t Recogniser::to_end(const Place& place) const {
  return std::min(automaton_.to_leave(place.state, place.count) + frames_[place.parent].to_end, kFar);
}

std::uint32_t Recogniser::to_end(const PlaceSet& set) const {
  if (set.may_end) return 0;
  std::uint32_t nearest = kFar;
  for (const Place& place : set.places) nearest = std::min(nearest, to_end(place));
  return nearest;
}

void Recogniser::add(const Place& place) {
  ++work_;
  if (is_full()) return;
  if (reached_.size() < kShort) {
    if (std::find(reached_.begin(), reached_.end(), place) != reached_.end()) return;
    waiting_.push_back(static_cast<std::uint32_t>(reached_.size()));
    reached_.push_back(place);
    return;
  }
  const auto enlist = [&](std::uint32_t index) {
    const Place& p = reached_[index];
    size_t slot = mix(p.state, p.count, p.parent) % kSlots;
    while (slots_[slot] != 0) slot = (slot + 1) % kSlots;
    slots_[slot] = index + 1;
  };
  if (reached_.size() == kShort) {
    slots_.assign(kSlots, 0);
    for (std::uint32_t i = 0; i < kShort; ++i) enlist(i);
  }
  for (size_t slot = mix(place.state, place.count, place.parent) % kSlots; slots_[slot] != 0;
       slot = (slot + 1) % kSlots) {
    if (reached_[slots_[slot] - 1] == place) return;
  }
  waiting_.push_back(static_cast<std::uint32_t>(reached_.size()));
  reached_.push_back(place);
  enlist(waiting_.back());
}

void Recogniser::follow_calls(const Place& place, PlaceSet& to) {
  const State& state = automaton_.states[place.state];
  const Rule& rule = automaton_.rules[state.rule];
  bool has_bytes = state.has_bytes, is_final = state.is_final;
  if (rule.kind == Rule::Kind::repeat) {
    is_final = place.count >= rule.min;
    if (place.count < rule.max) {
      const std::uint32_t count = std::min(place.count + 1, Automaton::cap(rule));
      const FrameId frame = push(place.state, count, place.parent);
      if (frame != kNoFrame) add({automaton_.rules[rule.body].start, 0, frame});
    }
  } else if (rule.kind == Rule::Kind::run && place.state == rule.start) {
    is_final = place.count >= rule.min;
    has_bytes &= place.count < rule.max;
  }
  if (has_bytes) to.places.push_back(place);
  if (rule.kind == Rule::Kind::plain) {
    for (std::uint32_t i = 0; i < state.n_calls && !is_full(); ++i) {
      const Call& call = automaton_.calls[state.first_call + i];
      const FrameId frame = call.is_last ? place.parent : push(call.target, 0, place.parent);
      if (frame != kNoFrame) add({automaton_.rules[call.rule].start, 0, frame});
    }
  }
  if (!is_final) return;
  if (place.parent == kBottom) {
    to.may_end = true;
  } else if (place.parent == kOpen) {
    to.leaves = true;
  } else {
    const Frame& frame = frames_[place.parent];
    add({frame.state, frame.count, frame.parent});
  }
}

void Recogniser::close(PlaceSet& to) {
  to.places.clear();
  to.may_end = to.leaves = false;
  // The newest first: when there are too many ways, some are followed to the byte they read, and not all of them
  // halfway.
  while (!waiting_.empty()) {
    const Place place = reached_[waiting_.back()];  // a copy: the list grows
    waiting_.pop_back();
    ++work_;
    follow_calls(place, to);
  }
  reached_.clear();
  closure_began_ = work_;
}

void Recogniser::start(PlaceSet& set) {
  add({automaton_.rules[automaton_.root].start, 0, kBottom});
  close(set);
}

void Recogniser::enter(std::span<const FrameId> frames, PlaceSet& set) {
  for (const FrameId id : frames) {
    CHECK(id != kBottom && id != kOpen);
    const Frame& frame = frames_[id];
    add({frame.state, frame.count, frame.parent});
  }
  close(set);
}

void Recogniser::step(const PlaceSet& from, unsigned char byte, PlaceSet& to) {
  work_ += from.places.size();
  closure_began_ = work_;
  if (from.places.size() == 1) {
    const Place& place = from.places[0];
    const StateId next = automaton_.step(place.state, byte);
    if (next == kNoState || automaton_.states[next].is_simple) {
      to.may_end = to.leaves = false;
      to.places.clear();
      if (next != kNoState) to.places.push_back({next, 0, place.parent});
      return;
    }
  }
  for (const Place& place : from.places) {
    const StateId next = automaton_.step(place.state, byte);
    if (next == kNoState) continue;
    add(this->next(place, next));
  }
  close(to);
}

// Along one byte.
Place Recogniser::next(const Place& from, StateId to) const {
  const Rule& rule = automaton_.rules[automaton_.states[to].rule];
  const bool counts = rule.kind == Rule::Kind::run && to == rule.start;
  return {to, counts ? std::min(from.count + 1, Automaton::cap(rule)) : from.count, from.parent};
}

std::optional<unsigned char> Recogniser::nearer(const PlaceSet& set) const {
  const std::uint32_t left = to_end(set);
  for (const Place& place : set.places) {
    if (to_end(place) != left) continue;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const StateId to = automaton_.step(place.state, static_cast<unsigned char>(byte));
      if (to != kNoState && to_end(next(place, to)) < left) return static_cast<unsigned char>(byte);
    }
  }
  return std::nullopt;
}

}  // namespace chimere::grammar
