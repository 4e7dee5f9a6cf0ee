// draft_source.h  Where drafts come from: something that guesses the next tokens of a text.
//
// A guess changes no answer: the model computes the rows of all guesses in one step, a token is drawn from each row in
// order, and a row counts only while the guess before it was what was drawn. So a source may be wrong, and says how
// sure it is by the kind of each guess; how often a kind is right is counted (acceptance.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace chimere::speculative {

// Kinds of guesses, by what is known of them before they are tried.
//   0      forced: nothing else can follow
//   1..9   a repeat of the text itself, by the length of what stands before it in both places (repeat_kind)
//   10..13 of a source that the request brought, by its own order, the least sure first
//   14..21 of the model's draft pass, by how many guesses stand before it (pass_kind)
//   22..28 of Engram tables, by the length of the n-gram that it follows (engram_kind)
//   29..36 of a draft model, by how many guesses stand before it (draft_model_kind)
//   37..51 of a DFlash drafter, by the slot of its block (dflash_kind)
using Kind = uint8_t;
inline constexpr Kind kForced = 0;
inline constexpr Kind kFirstRepeat = 1;
inline constexpr Kind kFirstOwn = 10;
inline constexpr Kind kFirstPass = 14;
inline constexpr int kPassKinds = 8;
inline constexpr Kind kFirstEngram = kFirstPass + kPassKinds;
inline constexpr int kShortestEngram = 2, kLongestEngram = 8;  // tokens of an n-gram
inline constexpr int kEngramKinds = kLongestEngram - kShortestEngram + 1;
inline constexpr Kind kFirstDraftModel = kFirstEngram + kEngramKinds;
inline constexpr int kDraftModelKinds = 8;
inline constexpr Kind kFirstDFlash = kFirstDraftModel + kDraftModelKinds;
inline constexpr int kDFlashKinds = 15;
inline constexpr int kKinds = kFirstDFlash + kDFlashKinds;

// `i` of `n` kinds from `first` on; what is beyond the last is of the last.
inline Kind kind_of(Kind first, int n, int i) { return static_cast<Kind>(first + (i < n ? i : n - 1)); }

// The kind of guess `i` of a chain of the draft pass.
inline Kind pass_kind(int i) { return kind_of(kFirstPass, kPassKinds, i); }
// The kind of a guess behind an n-gram of `length` tokens. REQUIRES: kShortestEngram at least.
inline Kind engram_kind(int length) { return kind_of(kFirstEngram, kEngramKinds, length - kShortestEngram); }
// The kinds of guess `i` of a chain of a draft model, and of slot `i` of a DFlash block.
inline Kind draft_model_kind(int i) { return kind_of(kFirstDraftModel, kDraftModelKinds, i); }
inline Kind dflash_kind(int i) { return kind_of(kFirstDFlash, kDFlashKinds, i); }

struct Guess {
  int32_t id = -1;
  Kind kind = kForced;

  bool operator==(const Guess&) const = default;
};

// Belongs to one request. Its state is a value: a clone goes on from the same point.
class DraftSource {
 public:
  virtual ~DraftSource() = default;
  virtual std::unique_ptr<DraftSource> clone() const = 0;
  // Puts up to `most` guesses at what follows `tokens` behind those in `guesses`. `tokens` only grows from call to
  // call, by what was really taken: a source that learns does so from there.
  virtual void propose(std::span<const int32_t> tokens, int most, std::vector<Guess>& guesses) = 0;
};

}  // namespace chimere::speculative
