// recogniser.h  Where a text stands in a grammar: all the ways it can have been read so far.
//
// A way is a Place: a state, how often its rule has counted, and the stack of places to return to. Stacks are trees
// that grow towards the root: a frame knows its parent, equal frames are one, so that ways share what they have in
// common and equality of stacks is equality of numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "grammar/automaton.h"

namespace chimere::grammar {

using FrameId = std::uint32_t;
inline constexpr FrameId kBottom = 0;  // below the root rule: a return to it is the end of the text
inline constexpr FrameId kOpen = 1;    // a stack that is not known: a return to it is noted (PlaceSet::leaves)

struct Place {
  StateId state;
  std::uint32_t count;
  FrameId parent;
  bool operator==(const Place&) const = default;
};

struct PlaceSet {
  std::vector<Place> places;  // each has byte edges
  bool may_end = false;       // the text can end here
  bool leaves = false;        // a stack that is not known can be returned to here

  bool is_alive() const { return !places.empty() || may_end || leaves; }
};

class Recogniser {
 public:
  // Deeper nesting is not offered; ways beyond this many (only very ambiguous grammars have them) are forgotten. What
  // is produced is right in both cases, but not everything right can be produced.
  static constexpr std::uint32_t kMaxDepth = 500;
  static constexpr size_t kMaxPlaces = 512;
  // Steps of one closure, those included that lead where another led already.
  static constexpr std::uint64_t kMaxClosure = 16 * kMaxPlaces;

  explicit Recogniser(const Automaton& automaton);

  // The beginning of a text.
  void start(PlaceSet& set);
  // What returning to a frame leads to.
  void enter(FrameId frame, PlaceSet& set) { enter(std::span(&frame, 1), set); }
  void enter(std::span<const FrameId> frames, PlaceSet& set);
  void step(const PlaceSet& from, unsigned char byte, PlaceSet& to);

  // Bytes of the shortest way from a place to the end of the text; kFar when there is none.
  std::uint32_t to_end(const Place& place) const;
  std::uint32_t to_end(const PlaceSet& set) const;
  // From the frame that a place returns to.
  std::uint32_t to_end_of(FrameId frame) const { return frames_[frame].to_end; }
  // A byte that leads one nearer to the end, the lowest there is; none where the text ends.
  std::optional<unsigned char> nearer(const PlaceSet& set) const;
  // Steps taken so far: what all of this costs.
  std::uint64_t work() const { return work_; }

  // Frames made after a mark can be forgotten when no place refers to them.
  size_t mark() const { return frames_.size(); }
  void forget(size_t mark);
  // Forgets every frame that the set does not need, and gives the others new numbers.
  void compact(PlaceSet& set);

 private:
  struct Frame {
    StateId state;
    std::uint32_t count;
    FrameId parent;
    std::uint32_t depth;
    std::uint32_t to_end;  // bytes of the shortest way from here to the end of the text
    FrameId chained;       // the next frame in the same bucket
  };
  static constexpr size_t kBuckets = 1024;

  Place next(const Place& from, StateId to) const;
  FrameId push(StateId state, std::uint32_t count, FrameId parent);  // kNoFrame when too deep
  void add(const Place& place);
  bool is_full() const { return reached_.size() >= kMaxPlaces || work_ - closure_began_ > kMaxClosure; }
  // All that can be reached from the places added since the last call, without reading.
  void close(PlaceSet& to);
  void follow_calls(const Place& place, PlaceSet& to);
  static size_t bucket(StateId state, std::uint32_t count, FrameId parent);

  const Automaton& automaton_;
  std::vector<Frame> frames_;
  std::vector<FrameId> buckets_;
  std::vector<Place> reached_;          // of the closure at work
  std::vector<std::uint32_t> waiting_;  // of these, still to be followed
  std::vector<std::uint32_t> slots_;    // hash table over reached_, used when it is long
  std::uint64_t work_ = 0, closure_began_ = 0;
};

}  // namespace chimere::grammar
