// model_config.h  Options of single models (terminal/option_file.h) put where the command line puts its own.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "base/result.h"
#include "terminal/option_file.h"

namespace chimere::apps {

// As if they had been given on the command line to `options`, whose names and ranges hold. Errors say the place, and
// the nearest name. `check` is asked behind each of them whether all is well.
Status apply_section(const ModelSection& section, const std::string& file, CLI::App& options,
                     const std::function<Status()>& check);

}  // namespace chimere::apps
