// foreign_options.h  A command line of llama-server or Ollama, in our words: what people have in their scripts works
// here, or is told what it is called.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace chimere::apps {

struct OwnWords {
  std::vector<std::string> arguments;  // as `chimere serve` takes them
  std::vector<std::string> notes;      // for those of the command line that have no effect here, and why
};

// Arguments behind `serve`. Those that the others do not have are passed on as they are. An error names an option whose
// work nothing here does.
Result<OwnWords> in_own_words(const std::vector<std::string>& arguments);

// Arguments behind `run`, as Ollama has it, become those of `chimere chat`: the model, its options, and the question
// behind -p. The name of the model is left as it is.
Result<OwnWords> chat_in_own_words(const std::vector<std::string>& arguments);

}  // namespace chimere::apps
