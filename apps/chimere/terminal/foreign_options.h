// foreign_options.h  A command line of llama-server, in our words: what people have in their scripts works here, or is
// told what it is called.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace chimere::apps {

struct OwnWords {
  std::vector<std::string> arguments;  // as `chimere serve` takes them
  std::vector<std::string> notes;      // for those of the command line that have no effect here, and why
};

// Arguments behind `serve`. Those that llama-server does not have are passed on as they are. An error names an option
// whose work nothing here does.
Result<OwnWords> in_own_words(const std::vector<std::string>& arguments);

}  // namespace chimere::apps
