// configuration.h  Options of a command from everywhere they may come (terminal/settings.h), put where the command line
// puts its own. The list of options is that of the command itself, so that none can be forgotten.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "terminal/settings.h"

namespace chimere::apps {

struct Configuration {
  std::string file;                   // that was read; empty: none
  std::vector<GivenOption> settings;  // one of each name: those of the command line, of the environment, of the file
  std::vector<ModelSection> models;   // of the file: options of single models
  std::vector<std::string> warnings;
};

// All but --help and --config, which say where the others are.
std::vector<KnownOption> configurable_options(const CLI::App& command);

// What a command line that was parsed has said.
std::vector<GivenOption> settings_of_line(const CLI::App& command);
// "none": no file. Empty: CHIMERE_CONFIG, else default_settings_file().
std::string settings_file(const CLI::App& command);

// Of a configuration, those of the command line.
std::vector<GivenOption> of_line(const Configuration& configuration);
// Whether the command line or the environment says it: what a file says of a single model then has no effect.
const GivenOption* above_files(const Configuration& configuration, const std::string& name);
// Names whose values differ, whatever their places; `model-options` where any of those do.
std::vector<std::string> changed_names(const Configuration& before, const Configuration& now);

// As if it had been given on the command line to `app`. An error begins with the place of the setting.
Status apply_setting(const GivenOption& setting, CLI::App& app);

// Reads file and environment, and tries each of their settings in `trial`, which has the same options as the command
// and whose values nobody uses: one that is wrong is an error even where another wins over it.
Result<Configuration> read_configuration(const std::vector<GivenOption>& line, const std::string& file,
                                         CLI::App& trial);

// As a file with its values, and behind each where it comes from. `models`: of all files, merged.
std::string shown_configuration(const Configuration& configuration, const CLI::App& command,
                                const std::vector<ModelSection>& models);
// What is set, as lines of a list that others may read: without keys, paths, addresses and names. Numbers are told, and
// words that the option's own description has.
std::string shareable_configuration(const Configuration& configuration, const CLI::App& command);
// As a file in which every option stands as a comment with its meaning and default. `own`: has those of single models.
std::string example_configuration(const CLI::App& command, const CLI::App& own);

}  // namespace chimere::apps
