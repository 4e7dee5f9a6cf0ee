// foreign_table.h  The options of llama-server and Ollama that `chimere serve` does not have by the same name.
#pragma once

#include <string_view>

namespace chimere::apps {

enum class ForeignKind {
  value,     // another name; its value goes along
  flag,      // another name, without a value
  off,       // has a value, and no effect here
  off_flag,  // has none
  refused,   // has a value; what it does is not here, or is said otherwise
  refused_flag
};

struct ForeignOption {
  std::string_view names;  // separated by spaces
  ForeignKind kind;
  std::string_view ours;  // the name; or why it has no effect, or what to do instead
};

// Null for a word that is none of them.
const ForeignOption* foreign_option(std::string_view name);

}  // namespace chimere::apps
