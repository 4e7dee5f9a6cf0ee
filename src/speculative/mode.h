// mode.h  Whether drafts are tried.
#pragma once

#include <string_view>

#include "base/result.h"

namespace chimere::speculative {

//   off        never
//   automatic  where the plan expects a gain, from every source (plan.h)
//   ngram      the same, from repeats of the text alone
//   mtp        the same, from the draft pass of the model alone
//   always     as many as there are guesses: for tests and measurements
enum class Mode { off, automatic, ngram, mtp, always };
inline constexpr Mode kModes[] = {Mode::off, Mode::automatic, Mode::ngram, Mode::mtp, Mode::always};

const char* name(Mode mode);  // "off", "auto", "ngram", "mtp", "always"
Result<Mode> mode_from_text(std::string_view text);
// Whether guesses of the model's draft pass are among those that are tried.
inline bool uses_draft_pass(Mode mode) { return mode != Mode::off && mode != Mode::ngram; }

}  // namespace chimere::speculative
