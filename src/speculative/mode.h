// mode.h  Whether drafts are tried.
#pragma once

#include <string_view>

#include "base/result.h"

namespace chimere::speculative {

//   off        never
//   automatic  where the plan expects a gain, from every source (plan.h)
//   ngram      the same, from repeats of the text alone
//   always     as many as there are guesses: for tests and measurements
enum class Mode { off, automatic, ngram, always };

const char* name(Mode mode);  // "off", "auto", "ngram", "always"
Result<Mode> mode_from_text(std::string_view text);

}  // namespace chimere::speculative
