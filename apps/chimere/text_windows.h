// text_windows.h  Texts from files as windows of tokens, for commands that measure a model on them.
#pragma once

#include <string>
#include <vector>

#include "quantizer/divergence.h"
#include "tokenizer/tokenizer.h"

namespace chimere::apps {

// Each file is cut into windows of `context` tokens; what is left at its end is dropped. The first token of a window is the
// one that begins a text, where the model's files say so. At most max_windows, 0: all. Fails when there is no whole one.
Result<quantizer::Windows> read_windows(const std::vector<std::string>& paths, const Tokenizer& tokenizer, int context,
                                        size_t max_windows);

}  // namespace chimere::apps
