// config.cpp  `chimere config`: which options `chimere serve` would run with, where each comes from, and whether they
// can be.
#include <cstdio>

#include "commands.h"
#include "common.h"
#include "configuration.h"
#include "own_options.h"
#include "serve_options.h"
#include "terminal/word_wrap.h"

namespace chimere::apps {
namespace {

void print_warnings(const Configuration& configuration) {
  for (const std::string& warning : configuration.warnings) {
    std::fprintf(stderr, "chimere: %s\n", harmless(warning).c_str());
  }
}

Result<Configuration> configuration_of(const CLI::App& command) {
  CLI::App trial;
  const auto values = declare_serve_options(trial);
  return read_configuration(settings_of_line(command), settings_file(command), trial);
}

Status show(const CLI::App& command) {
  TRY_ASSIGN(const Configuration configuration, configuration_of(command));
  print_warnings(configuration);
  ServeOptions o;
  CLI::App app;
  declare_options(app, o);
  TRY(apply_all(configuration, app, o));
  TRY(own_options(o, configuration));
  TRY_ASSIGN(const auto models, all_sections(configuration, o.model_folders));
  std::printf("%s", harmless(shown_configuration(configuration, command, models)).c_str());
  return Ok{};
}

Status check(const CLI::App& command) {
  TRY_ASSIGN(const Configuration configuration, configuration_of(command));
  print_warnings(configuration);
  TRY(check_serve(configuration));
  std::string models;
  if (const size_t n = configuration.models.size(); n > 0) {
    models = ", options of " + std::to_string(n) + (n == 1 ? " model" : " models");
  }
  std::printf("%s: %zu options are set%s, and all of them can be\n",
              configuration.file.empty() ? "no file" : configuration.file.c_str(), configuration.settings.size(),
              models.c_str());
  return Ok{};
}

}  // namespace

void add_config(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("config", "What `chimere serve` would run with, and why");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* description, Status (*work)(const CLI::App&)) {
    CLI::App* sub = command->add_subcommand(name, description);
    // The options' values live as long as the command that has them.
    auto values = declare_serve_options(*sub);
    sub->callback([sub, work, values, &outcome] {
      if (Status s = work(*sub); !s) outcome.code = fail(s.error());
    });
  };
  add("show", "Every option with its value and where it comes from, as a file of options; keys are hidden", show);
  add("check", "Reads files and environment as `serve` would, and says what is wrong; nothing is loaded or opened",
      check);
  add("example", "A file of options with all of them as comments, their meanings and defaults",
      [](const CLI::App& sub) -> Status {
        ServeOptions nobodys;
        CLI::App own;
        add_own_options(own, nobodys);
        std::printf("%s", example_configuration(sub, own).c_str());
        return Ok{};
      });
}

}  // namespace chimere::apps
