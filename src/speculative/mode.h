// mode.h  Whether drafts are tried.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace chimere::speculative {

//   off        never
//   automatic  where the plan expects a gain, from every source (plan.h)
//   ngram      the same, from repeats of the text alone
//   engram     the same, from the request's Engram tables alone
//   mtp        the same, from the draft pass of the model alone
//   draft      the same, from a draft model alone
//   dflash     the same, from a DFlash drafter alone
//   always     as many as there are guesses: for tests and measurements
enum class Mode { off, automatic, ngram, engram, mtp, draft, dflash, always };
inline constexpr Mode kModes[] = {Mode::off, Mode::automatic, Mode::ngram,  Mode::engram,
                                  Mode::mtp, Mode::draft,     Mode::dflash, Mode::always};

const char* name(Mode mode);  // "off", "auto", "ngram", "engram", "mtp", "draft", "dflash", "always"
std::string mode_names();     // "off, auto, ... or always", for messages
Result<Mode> mode_from_text(std::string_view text);
// Whether guesses from the text itself are among those that are tried.
inline bool uses_text(Mode mode) { return mode == Mode::automatic || mode == Mode::ngram || mode == Mode::always; }
// Whether guesses of a source that the request brought are: its Engram tables.
inline bool uses_own(Mode mode) { return mode == Mode::automatic || mode == Mode::engram || mode == Mode::always; }
// Whether guesses of the model's draft pass are among those that are tried.
inline bool uses_draft_pass(Mode mode) { return mode == Mode::automatic || mode == Mode::mtp || mode == Mode::always; }
// Whether those of a DFlash drafter are.
inline bool uses_drafter(Mode mode) { return mode == Mode::automatic || mode == Mode::dflash || mode == Mode::always; }
// Whether those of a draft model are.
inline bool uses_draft_model(Mode mode) {
  return mode == Mode::automatic || mode == Mode::draft || mode == Mode::always;
}

}  // namespace chimere::speculative
