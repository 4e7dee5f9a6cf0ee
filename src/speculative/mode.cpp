#include "speculative/mode.h"

#include <iterator>

namespace chimere::speculative {

const char* name(Mode mode) {
  switch (mode) {
    case Mode::off: return "off";
    case Mode::automatic: return "auto";
    case Mode::ngram: return "ngram";
    case Mode::engram: return "engram";
    case Mode::mtp: return "mtp";
    case Mode::draft: return "draft";
    case Mode::dflash: return "dflash";
    case Mode::always: return "always";
  }
  return "";
}

std::string mode_names() {
  std::string names;
  for (const Mode mode : kModes) {
    if (mode != kModes[0]) names += mode == *std::rbegin(kModes) ? " or " : ", ";
    names += name(mode);
  }
  return names;
}

Result<Mode> mode_from_text(std::string_view text) {
  for (const Mode mode : kModes) {
    if (text == name(mode)) return mode;
  }
  return Error{Code::invalid_argument, "expected " + mode_names() + ", found \"" + std::string(text) + "\""};
}

}  // namespace chimere::speculative
