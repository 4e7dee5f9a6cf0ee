#include "sampling/thinking_params.h"

#include <string>

namespace chimere {

Status ThinkingParams::validate(int32_t n_vocab) const {
  constexpr int32_t kMaxWindow = 4096;
  if (window < 1 || window > kMaxWindow) {
    return Error{Code::invalid_argument, "thinking window: expected 1 to " + std::to_string(kMaxWindow) +
                                             " tokens, found " + std::to_string(window)};
  }
  if (loop.tokens < 4) {
    return Error{Code::invalid_argument,
                 "loop guard: expected at least 4 tokens, found " + std::to_string(loop.tokens)};
  }
  for (const std::vector<int32_t>* phrase : {&warning, &extension}) {
    for (const int32_t id : *phrase) {
      if (id < 0 || id >= n_vocab) {
        return Error{Code::invalid_argument, "a phrase of a thought: id " + std::to_string(id) +
                                                 " is outside the vocabulary of " + std::to_string(n_vocab)};
      }
    }
  }
  return Ok{};
}

}  // namespace chimere
