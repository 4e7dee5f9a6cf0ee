// commands.h  One function per sub-command: declares its options on the app and leaves its work as a callback.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "base/result.h"

namespace chimere::apps {

struct Configuration;

// What a command answers: the exit code of the program. Set by the callback of the chosen sub-command.
struct Outcome {
  int code = 0;
};

void add_bench(CLI::App& app, Outcome& outcome);
void add_cache(CLI::App& app, Outcome& outcome);
void add_chat(CLI::App& app, Outcome& outcome);
void add_completion(CLI::App& app, Outcome& outcome);
void add_config(CLI::App& app, Outcome& outcome);
void add_convert(CLI::App& app, Outcome& outcome);
void add_doctor(CLI::App& app, Outcome& outcome);
void add_engram(CLI::App& app, Outcome& outcome);
void add_engram_passages(CLI::App& engram, Outcome& outcome);
void add_engram_notes(CLI::App& engram, Outcome& outcome);
void add_eval(CLI::App& app, Outcome& outcome);
void add_imatrix(CLI::App& app, Outcome& outcome);
void add_improve(CLI::App& app, Outcome& outcome);
void add_improve_runs(CLI::App& improve, Outcome& outcome);
void add_improve_simulate(CLI::App& command, Outcome& outcome);
void add_improve_train(CLI::App& improve, Outcome& outcome);
void add_index(CLI::App& app, Outcome& outcome);
void add_inspect(CLI::App& app, Outcome& outcome);
void add_keys(CLI::App& app, Outcome& outcome);
void add_logits(CLI::App& app, Outcome& outcome);
void add_mcp(CLI::App& app, Outcome& outcome);
void add_perplexity(CLI::App& app, Outcome& outcome);
void add_plan(CLI::App& app, Outcome& outcome);
void add_quantize(CLI::App& app, Outcome& outcome);
void add_report(CLI::App& app, Outcome& outcome);
void add_serve(CLI::App& app, Outcome& outcome);
void add_tokenize(CLI::App& app, Outcome& outcome);
void add_top(CLI::App& app, Outcome& outcome);

// The options of `serve` on another command, and their values, which live as long as what is returned.
std::shared_ptr<void> declare_serve_options(CLI::App& command);
// Whether `serve` could start with them, as far as that can be seen without loading a model or taking the port.
Status check_serve(const Configuration& configuration);

}  // namespace chimere::apps
