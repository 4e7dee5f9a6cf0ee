#include "speculative/mode.h"

#include <string>

namespace chimere::speculative {

const char* name(Mode mode) {
  switch (mode) {
    case Mode::off: return "off";
    case Mode::automatic: return "auto";
    case Mode::ngram: return "ngram";
    case Mode::mtp: return "mtp";
    case Mode::always: return "always";
  }
  return "";
}

Result<Mode> mode_from_text(std::string_view text) {
  for (const Mode mode : kModes) {
    if (text == name(mode)) return mode;
  }
  return Error{Code::invalid_argument, "expected auto, off, ngram, mtp or always, found \"" + std::string(text) + "\""};
}

}  // namespace chimere::speculative
