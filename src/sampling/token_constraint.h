// token_constraint.h  What a grammar is for the engine: which tokens may follow those that came so far.
//
// One object belongs to one answer and is used by one thread at a time. Clones share what is immutable and what is
// cached, nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace chimere {

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // The same place in the text, going on by itself.
  virtual std::unique_ptr<TokenConstraint> clone() const = 0;
  // Bits as RowInputs::mask, at least one of them 1: where the text may end, those of the tokens that end a generation;
  // also where nothing else may follow. Valid until the next call of mask() or accept().
  virtual std::span<const std::uint64_t> mask() = 0;
  // The token is part of the text. One that the mask did not allow (it was forced) leaves only the end.
  virtual void accept(std::int32_t id) = 0;
  // Nothing but the end may follow.
  virtual bool is_finished() const = 0;
};

}  // namespace chimere
