// own_text.h  Text that the model writes itself, as examples of what shall stay as it is.
//
// Where an adapter is learned from a few dozen answers, everything else drifts unless something holds it. What the model
// writes when nobody asks is a sample of all it knows, and is always at hand.
#pragma once

#include <span>
#include <vector>

#include "improve/mezo/trainer.h"

namespace chimere::improve {

inline constexpr int kMaxOwnText = 65'536;

// About n_tokens in texts that start from a token each, drawn from the model's own distribution; a function of the seed.
// With a beginning, all texts start there: what opens a conversation, say.
Result<std::vector<Example>> write_own_text(models::Model& model, int n_tokens, uint64_t seed,
                                            std::span<const int32_t> beginning = {});

}  // namespace chimere::improve
