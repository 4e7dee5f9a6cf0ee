// usage.h  What to say when a command line can not be read.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace chimere::apps {

// `chimere help`, `chimere help serve` and `chimere version`, as other programs have them, become --help and --version.
void spell_out(int argc, char** argv);

// Options of llama-server and Ollama behind `serve` become ours, and Ollama's `run` a chat; those without effect are
// named on stderr. Not 0: the exit code of a command line that asks for what is not here.
int translate_command(std::vector<std::string>& words);

// Prints help where it was asked for, else what is wrong and what was probably meant. The exit code: 0, or 2 for a
// mistake.
int explain_usage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv);

}  // namespace chimere::apps
