#include "usage.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <utility>

#include "server/shelf/model_files.h"
#include "terminal/foreign_options.h"
#include "terminal/word_wrap.h"
#include "text/nearest_word.h"

namespace chimere::apps {
namespace {

constexpr int kUsageError = 2;

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The first word that stands where a command is expected; empty when there is none.
std::string first_word(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("-")) return std::string(word);
  }
  return "";
}

// Commands of other programs for the same work.
std::string instead_of(const std::string& command) {
  constexpr std::pair<const char*, const char*> kKnown[] = {
      {"pull",
       "Nothing is downloaded here: fetch a GGUF file, then `chimere serve FILE`; `chimere serve --models "
       "ollama` serves what Ollama has."},
      {"list", "`chimere serve --models FOLDER` serves every GGUF file of a folder; GET /v1/models lists them."},
      {"ps", "`chimere top` shows a running server, and what it has loaded."},
      {"show", "`chimere inspect FILE` shows what is in a GGUF file."},
      {"start", "`chimere serve` starts a server."},
      {"stop", "Ctrl-C ends a server in its terminal."},
  };
  constexpr std::pair<const char*, const char*> kSame[] = {{"download", "pull"}, {"get", "pull"},  {"ls", "list"},
                                                           {"models", "list"},   {"info", "show"}, {"status", "ps"}};
  std::string name = command;
  for (const auto& [other, known] : kSame) {
    if (command == other) name = known;
  }
  for (const auto& [known, text] : kKnown) {
    if (name == known) return text;
  }
  return {};
}

void print_guess(const std::string& guess) {
  if (!guess.empty()) std::fprintf(stderr, "Did you mean `%s`?\n", guess.c_str());
}

// Of `chimere run NAME`: a file of that name, or what Ollama has under it.
Result<std::string> file_of_run(const std::string& name) {
  std::error_code error;
  if (std::filesystem::is_regular_file(name, error)) return name;
  const auto files = server::find_models(server::model_folder("ollama"));
  for (const std::string& known : {name, name + ":latest"}) {
    if (!files) break;
    for (const server::ModelFile& file : *files) {
      if (file.name == known) return file.path;
    }
  }
  return Error{Code::not_found, "run " + name +
                                    ": expected a GGUF file or a model that Ollama has here, found neither; nothing "
                                    "is downloaded"};
}

}  // namespace

void spell_out(int argc, char** argv) {
  static char help[] = "--help", version[] = "--version";
  if (argc < 2) return;
  if (std::string_view(argv[1]) == "version") argv[1] = version;
  if (std::string_view(argv[1]) != "help") return;
  argv[1] = help;
  if (argc > 2) std::swap(argv[1], argv[2]);
}

int translate_command(std::vector<std::string>& words) {
  if (words.size() < 2 || (words[1] != "serve" && words[1] != "run")) return 0;
  const bool is_run = words[1] == "run";
  const std::vector<std::string> given = {words.begin() + 2, words.end()};
  auto own = is_run ? chat_in_own_words(given) : in_own_words(given);
  if (own && is_run) {
    if (auto file = file_of_run(own->arguments.front())) {
      own->arguments.front() = std::move(*file);
    } else {
      own = std::move(file.error());
    }
  }
  const char* const command = is_run ? "chat" : "serve";
  if (!own) {
    std::fprintf(stderr, "chimere: %s\n`chimere %s --help` says more.\n", harmless(own.error().message).c_str(),
                 command);
    return kUsageError;
  }
  for (const std::string& note : own->notes) std::fprintf(stderr, "chimere: %s\n", harmless(note).c_str());
  words.resize(1);
  words.emplace_back(command);
  words.insert(words.end(), own->arguments.begin(), own->arguments.end());
  return 0;
}

int explain_usage(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (error.get_exit_code() == 0) return app.exit(error);  // help or the version
  const std::string word = first_word(argc, argv);
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  if (argc < 2) {  // what there is says more than that something is missing
    std::fprintf(stderr, "%s", app.help().c_str());
    return kUsageError;
  }
  if (chosen.empty() && !word.empty()) {
    std::fprintf(stderr, "chimere: there is no command '%s'\n", harmless(word).c_str());
    const std::string instead = instead_of(word);
    if (!instead.empty()) std::fprintf(stderr, "%s\n", instead.c_str());
    if (instead.empty()) print_guess(nearest_word(word, command_names(app)));
    std::fprintf(stderr, "`chimere --help` lists the commands.\n");
    return kUsageError;
  }
  std::fprintf(stderr, "chimere: %s\n", harmless(error.what()).c_str());
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  for (int i = 1; i < argc; ++i) {
    const std::string option(std::string_view(argv[i]).substr(0, std::string_view(argv[i]).find('=')));
    if (!option.starts_with("--") || command->get_option_no_throw(option)) continue;
    print_guess(nearest_word(option, option_names(*command)));
    break;
  }
  std::fprintf(stderr, "`chimere%s --help` says more.\n",
               chosen.empty() ? "" : (" " + chosen.front()->get_name()).c_str());
  return kUsageError;
}

}  // namespace chimere::apps
