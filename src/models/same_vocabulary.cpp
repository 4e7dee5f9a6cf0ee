#include "models/same_vocabulary.h"

#include <algorithm>
#include <string>

namespace chimere::models {

Status check_same_vocabulary(const gguf::Metadata& model, const gguf::Metadata& other) {
  constexpr size_t kNamed = 5;
  TRY_ASSIGN(const auto ours, model.get_strings("tokenizer.ggml.tokens"));
  TRY_ASSIGN(const auto theirs, other.get_strings("tokenizer.ggml.tokens"));
  const size_t shorter = std::min(ours.size(), theirs.size());
  size_t n_different = 0;
  std::string named;
  for (size_t id = 0; id < shorter; ++id) {
    if (ours[id] == theirs[id]) continue;
    if (++n_different <= kNamed) named += (named.empty() ? "" : ", ") + std::to_string(id);
  }
  if (n_different > 0) {
    return Error{Code::invalid_argument, "expected the same vocabulary, found another text for " +
                                             std::to_string(n_different) + " of " + std::to_string(shorter) +
                                             " ids: " + named + (n_different > kNamed ? ", ..." : "")};
  }
  if (std::max(ours.size(), theirs.size()) - shorter <= kMaxPadding) return Ok{};
  return Error{Code::invalid_argument, "expected the same vocabulary, found " + std::to_string(theirs.size()) +
                                           " tokens in place of " + std::to_string(ours.size()) + ": ids from " +
                                           std::to_string(shorter) + " on are in one of them alone"};
}

}  // namespace chimere::models
