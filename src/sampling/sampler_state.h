// sampler_state.h  What a sequence's sampler remembers between tokens: the tokens. A plain value: copy it to fork a
// sequence, roll it back when a draft is rejected. The random numbers are counter-based and need no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace chimere {

class SamplerState {
 public:
  SamplerState() = default;
  explicit SamplerState(std::span<const std::int32_t> prompt)
      : tokens_(prompt.begin(), prompt.end()), n_prompt_(prompt.size()) {}

  void accept(std::int32_t id) { tokens_.push_back(id); }

  // Forgets the last n accepted tokens; afterwards the state equals one that never saw them.
  // REQUIRES: n <= n_generated()
  void rollback(std::size_t n);

  std::span<const std::int32_t> tokens() const { return tokens_; }  // prompt, then answer
  std::size_t n_prompt() const { return n_prompt_; }
  std::size_t n_generated() const { return tokens_.size() - n_prompt_; }

  bool operator==(const SamplerState&) const = default;

 private:
  std::vector<std::int32_t> tokens_;
  std::size_t n_prompt_ = 0;
};

}  // namespace chimere
