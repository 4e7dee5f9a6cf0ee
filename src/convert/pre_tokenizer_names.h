// pre_tokenizer_names.h  The name of the way a tokenizer.json splits text, as `tokenizer.ggml.pre` has it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace chimere::convert {

// What the `pre_tokenizer` of a tokenizer.json does, in order: an expression, or "<digits>" for single digits,
// "<punctuation>" for runs of punctuation, "<gpt2>" for the expression that ByteLevel has built in.
struct Splitting {
  std::vector<std::string> steps;
  bool ignore_merges = false;
  bool nfc = false;
};

// unsupported, with the steps, when no name stands for them.
Result<std::string> pre_tokenizer_name(const Splitting& splitting);

}  // namespace chimere::convert
