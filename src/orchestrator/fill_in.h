// fill_in.h  A gap in a text, as models for code are asked to fill it: what stands before it, what stands behind it,
// and other files of the project.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace chimere::orchestrator {

struct FillIn {
  struct File {
    std::string name;
    std::string text;
  };
  std::string suffix;
  std::vector<File> files = {};
};

// <repo> name, <file> name text ..., <prefix> before <suffix> behind <middle>: the order that Qwen-Coder, StarCoder and
// DeepSeek-Coder were trained on. Unsupported when the vocabulary has no such tokens.
Result<std::vector<int32_t>> fill_in_prompt(const Tokenizer& tokenizer, const std::string& prefix, const FillIn& gap);

}  // namespace chimere::orchestrator
