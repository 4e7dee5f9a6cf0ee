#include "speculative/mode.h"

#include <string>

namespace chimere::speculative {

const char* name(Mode mode) {
  switch (mode) {
    case Mode::off: return "off";
    case Mode::automatic: return "auto";
    case Mode::ngram: return "ngram";
    case Mode::always: return "always";
  }
  return "";
}

Result<Mode> mode_from_text(std::string_view text) {
  for (const Mode mode : {Mode::off, Mode::automatic, Mode::ngram, Mode::always}) {
    if (text == name(mode)) return mode;
  }
  return Error{Code::invalid_argument, "expected auto, off, ngram or always, found \"" + std::string(text) + "\""};
}

}  // namespace chimere::speculative
