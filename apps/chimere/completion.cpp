// completion.cpp  `chimere completion SHELL` and `chimere manual`: what shells and man need to know of the commands,
// written from the commands themselves.
#include <cstdio>
#include <string>
#include <vector>

#include "commands.h"
#include "version.h"

namespace chimere::apps {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) commands.push_back(command);
  return commands;
}

struct Named {
  std::string name;  // with its dashes
  std::string description;
  bool takes_value;
};

std::vector<Named> options_of(const CLI::App& command) {
  std::vector<Named> options;
  for (const CLI::Option* option : command.get_options()) {
    const bool takes_value = option->get_items_expected_max() > 0;
    for (const std::string& name : option->get_lnames()) {
      options.push_back({"--" + name, option->get_description(), takes_value});
    }
    for (const std::string& name : option->get_snames()) {
      options.push_back({"-" + name, option->get_description(), takes_value});
    }
  }
  return options;
}

// With every name of a command and of those below it, "engram" and "engram notes".
template <class Visit>
void walk(const CLI::App& app, const std::string& path, const Visit& visit) {
  for (const CLI::App* command : commands_of(app)) {
    const std::string own = path.empty() ? command->get_name() : path + " " + command->get_name();
    visit(*command, own);
    walk(*command, own, visit);
  }
}

std::string words_of(const CLI::App& command) {
  std::string words;
  for (const CLI::App* sub : commands_of(command)) words += sub->get_name() + " ";
  for (const Named& option : options_of(command)) words += option.name + " ";
  return words;
}

// Words that are options or commands of where the line stands; else files.
std::string bash(const CLI::App& app) {
  std::string text =
      "# bash completion of chimere, written by `chimere completion bash`\n"
      "_chimere() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} path= word i words\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    word=${COMP_WORDS[i]}\n"
      "    case \"$path $word\" in\n";
  std::string tables;
  walk(app, "", [&](const CLI::App& command, const std::string& path) {
    const size_t end = path.rfind(' ');
    const std::string before = end == std::string::npos ? "" : path.substr(0, end);
    text += "      \"" + before + " " + command.get_name() + "\") path=\"" + path + "\" ;;\n";
    tables += "    \"" + path + "\") words=\"" + words_of(command) + "\" ;;\n";
  });
  text += "    esac\n  done\n  case \"$path\" in\n    \"\") words=\"" + words_of(app) + "\" ;;\n" + tables +
          "  esac\n"
          "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "  [[ $current == -* || -z $path ]] || COMPREPLY+=($(compgen -f -- \"$current\"))\n"
          "}\n"
          "complete -o filenames -F _chimere chimere\n";
  return text;
}

std::string in_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string fish(const CLI::App& app) {
  std::string text = "# fish completion of chimere, written by `chimere completion fish`\n";
  for (const CLI::App* command : commands_of(app)) {
    text += "complete -c chimere -n __fish_use_subcommand -f -a " + command->get_name() + " -d " +
            in_quotes(first_line(command->get_description())) + "\n";
    for (const CLI::App* sub : commands_of(*command)) {
      text += "complete -c chimere -n '__fish_seen_subcommand_from " + command->get_name() + "' -f -a " +
              sub->get_name() + " -d " + in_quotes(first_line(sub->get_description())) + "\n";
    }
    for (const Named& option : options_of(*command)) {
      const bool is_long = option.name.starts_with("--");
      text += "complete -c chimere -n '__fish_seen_subcommand_from " + command->get_name() + "' " +
              (is_long ? "-l " + option.name.substr(2) : "-s " + option.name.substr(1)) +
              (option.takes_value ? " -r" : "") + " -d " + in_quotes(first_line(option.description)) + "\n";
    }
  }
  return text;
}

// zsh reads bash's words with a helper of its own.
std::string zsh(const CLI::App& app) {
  return "#compdef chimere\n# zsh completion of chimere, written by `chimere completion zsh`\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash(app) + "_bash_complete -o filenames -F _chimere\n";
}

std::string troff(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else if (c == '\n') {
      safe += "\n.br\n";
    } else if ((c == '.' || c == '\'') && (safe.empty() || safe.back() == '\n')) {
      safe += std::string("\\&") + c;
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string manual(const CLI::App& app) {
  std::string text = std::string(".TH CHIMERE 1 \"\" \"chimere ") + version_number() +
                     "\" \"User Commands\"\n.SH NAME\nchimere \\- " +
                     "serve hybrid language models on your own machine\n.SH SYNOPSIS\n.B chimere\nCOMMAND [options]\n"
                     ".SH DESCRIPTION\n" +
                     troff(app.get_description()) + "\n.SH COMMANDS\n";
  walk(app, "", [&](const CLI::App& command, const std::string& path) {
    text += ".SS \"chimere " + troff(path) + "\"\n" + troff(command.get_description()) + "\n";
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_lnames().empty() && option->get_snames().empty() && !option->get_positional()) continue;
      text += ".TP\n.B " + troff(option->get_name(true, true)) + "\n" + troff(option->get_description());
      if (!option->get_default_str().empty()) text += " (default: " + troff(option->get_default_str()) + ")";
      text += "\n";
    }
  });
  text +=
      ".SH FILES\n.TP\n/etc/chimere/chimere.yaml, ~/.config/chimere/chimere.yaml\noptions of \\fBchimere serve\\fR\n"
      ".SH ENVIRONMENT\n.TP\nCHIMERE_...\nevery option of \\fBchimere serve\\fR in capitals: CHIMERE_PORT for "
      "\\-\\-port\n.TP\nCHIMERE_CONFIG\nthe file of options\n.TP\nCHIMERE_HOME\nthe data folder\n";
  return text;
}

}  // namespace

void add_completion(CLI::App& app, Outcome&) {
  CLI::App* command =
      app.add_subcommand("completion", "Completion of commands and options for a shell: bash, zsh, fish");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer("  chimere completion bash > ~/.local/share/bash-completion/completions/chimere");
  command->callback([shell, &app] {
    std::fputs((*shell == "bash" ? bash(app) : *shell == "zsh" ? zsh(app) : fish(app)).c_str(), stdout);
  });
  CLI::App* man = app.add_subcommand("manual", "The manual page, for man: chimere manual | man -l -");
  man->callback([&app] { std::fputs(manual(app).c_str(), stdout); });
}

}  // namespace chimere::apps
