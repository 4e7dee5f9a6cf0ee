// pattern.h  A regular expression that is looked for in texts. Time is linear in the text, whatever the expression.
//
// The expressions are those of regex.h, as byte automata: none of them can be made to take forever, to overflow a stack
// or to fill the memory, as those of std::regex can. One that is asked often gets a table of its states (tabulate()).
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"

namespace chimere::grammar {

struct Automaton;
struct PatternTable;

class Pattern {
 public:
  static Result<Pattern> parse(std::string_view regex);

  // Anywhere in the text; ^ and $ bind the expression to its ends.
  bool is_in(std::string_view text) const;

  // Follows all ways through the expression once, so that is_in() costs a look into a table for each byte: some fifty
  // times less. False where these are too many, as with long counts of wide classes; is_in() is then as before.
  bool tabulate();

 private:
  explicit Pattern(std::shared_ptr<const Automaton> automaton) : automaton_(std::move(automaton)) {}

  std::shared_ptr<const Automaton> automaton_;
  std::shared_ptr<const PatternTable> table_;
};

}  // namespace chimere::grammar
