// token_constraint.h  What a grammar is for the engine: which tokens may follow those that came so far.
//
// One object belongs to one answer and is used by one thread at a time. Clones share what is immutable and what is
// cached, nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace chimere {

inline constexpr std::int64_t kWholeMask = INT64_MAX;

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // The same place in the text, going on by itself.
  virtual std::unique_ptr<TokenConstraint> clone() const = 0;
  // Bits as RowInputs::mask, at least one of them 1: where the text may end, those of the tokens that end a generation;
  // also where nothing else may follow, and inside free text (a string), where such a token is a wish to end it: the
  // completion(Part::inner) then stands in its place. Valid until the next call of mask() or accept().
  virtual std::span<const std::uint64_t> mask() = 0;
  // Takes at most so many steps towards the next mask, which then costs nothing; false when there are more to take.
  // kWholeMask are always enough.
  virtual bool prepare(std::int64_t steps) {
    (void)steps;
    return true;
  }
  // The token is part of the text. One that the mask did not allow (it was forced) leaves only the end.
  virtual void accept(std::int32_t id) = 0;
  // Nothing but the end may follow.
  virtual bool is_finished() const = 0;
  // The text so far is whole.
  virtual bool may_end() const { return is_finished(); }

  // Of the last tokens, how many stand in one line of one string (or other free text that has to be closed) or are
  // digits of one number: nothing between them could have ended it.
  virtual std::int32_t n_text() const { return 0; }

  // What a completion completes: all of the text, or the string, number or other part of it that is being written.
  enum class Part { all, inner };
  // Tokens of a shortest completion. Empty where there is nothing to complete, and where none is known.
  virtual std::vector<std::int32_t> completion(Part part) {
    (void)part;
    return {};
  }
  // Whether the text could still be completed in `n_tokens` more behind this token; true where that is not known.
  virtual bool can_end_after(std::int32_t id, std::int32_t n_tokens) {
    (void)id;
    (void)n_tokens;
    return true;
  }
};

}  // namespace chimere
