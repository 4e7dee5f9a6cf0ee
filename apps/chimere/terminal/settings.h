// settings.h  What `serve` is told, and by whom: the command line, else a variable of the environment, else a file, else
// nobody. A name is that of the option on the command line: `--rate-limit` is `rate-limit:` in the file and
// CHIMERE_RATE_LIMIT in the environment. This knows names and places alone; what a value means is known by the option.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "terminal/option_file.h"

namespace chimere::apps {

struct KnownOption {
  std::string name;         // "rate-limit"
  bool takes_list = false;  // several values: a list in the file, joined by commas in the environment
  bool is_secret = false;   // shown to nobody, and one value in the environment, whatever is in it
};

// What a file says: of the server, and of single models (option_file.h).
struct FileSettings {
  std::vector<GivenOption> settings;
  std::vector<ModelSection> models;
};

// "rate-limit" is "CHIMERE_RATE_LIMIT".
std::string variable_of(std::string_view option);

// A map of names and values, and `model-options`. A name that no option has is an error with its place and the nearest one.
Result<FileSettings> settings_of_yaml(std::string_view text, const std::string& file,
                                      const std::vector<KnownOption>& known);

struct EnvironmentSettings {
  std::vector<GivenOption> settings;
  std::vector<std::string> strangers;  // a sentence for each variable CHIMERE_... that no option has
};
// `variables`: name and value. An empty one counts as absent.
EnvironmentSettings settings_of_environment(const std::vector<std::pair<std::string, std::string>>& variables,
                                            const std::vector<KnownOption>& known);
// Those of this process whose names begin with CHIMERE_.
std::vector<std::pair<std::string, std::string>> own_variables();

// For each name the first that has it, in the order of the names.
std::vector<GivenOption> winners(const std::vector<const std::vector<GivenOption>*>& by_rank);

// The file to read where none was named: the first that is there of chimere/chimere.yaml in $XDG_CONFIG_HOME (else
// ~/.config) and /etc/chimere/chimere.yaml; empty when neither is.
std::string default_settings_file();

// As YAML, on one line: a word, quoted where it needs to be, or a list.
std::string yaml_of(const std::vector<std::string>& values);

}  // namespace chimere::apps
