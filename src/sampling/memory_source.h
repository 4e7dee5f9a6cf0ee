// memory_source.h  Where the memory of a row (RowInputs::memory) comes from: something that has seen text before.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "sampling/sampler.h"

namespace chimere {

// Belongs to one sequence. Its state is a value: a clone goes on from the same point.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual std::unique_ptr<MemorySource> clone() const = 0;
  // What it expects after these tokens; `in_thought`: the token to be drawn belongs to a thought. The entries live
  // until the next call of any function here. None: the row is drawn as if there were no memory, bit for bit.
  virtual std::span<const MemoryEntry> expect(std::span<const int32_t> tokens, bool in_thought) = 0;
  // The token that was taken after the last expect() that gave entries, with the model's own stats of that row
  // (logprob, entropy).
  virtual void accept(const Sampled& token) = 0;
};

// log p'(x) of the token that was taken, given the model's own log p(x): what the sampler makes of these entries.
double mixed_logprob(double logprob, int32_t token, std::span<const MemoryEntry> entries);

}  // namespace chimere
