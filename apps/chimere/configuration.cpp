#include "configuration.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "journal_place.h"
#include "store/journal_url.h"
#include "terminal/word_wrap.h"

namespace chimere::apps {
namespace {

constexpr const char* kLinePlace = "the command line";
constexpr std::string_view kSecretOptions[] = {"api-key"};
constexpr size_t kMaxConfigurationBytes = size_t{1} << 20;

// The name by which it is configured; empty when it is not.
std::string key_of(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  if (names.empty() || names.front() == "help" || names.front() == "config") return "";
  return names.front();
}

bool is_secret(const std::string& name) {
  return std::find(std::begin(kSecretOptions), std::end(kSecretOptions), name) != std::end(kSecretOptions);
}

Result<std::string> read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Code::not_found, "--config " + path + ": expected a file that can be read"};
  std::string text(kMaxConfigurationBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

constexpr std::string_view kJournal = "journal";  // its URL may have a password in it

bool holds_secret(const GivenOption& setting) {
  return is_secret(setting.name) || (setting.name == kJournal && store::has_password(setting.values.back()));
}

bool is_of_file(const GivenOption& setting) {
  return setting.place != kLinePlace && !setting.place.starts_with("CHIMERE_");
}

std::map<std::string, std::map<std::string, std::vector<std::string>>> values_by_model(
    const std::vector<ModelSection>& models) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> values;
  for (const ModelSection& model : models) {
    auto& of_model = values[model.name];
    for (const GivenOption& option : model.options) of_model[option.name] = option.values;
  }
  return values;
}

// As it may be shown.
std::string shown_values(const GivenOption& setting) {
  if (is_secret(setting.name)) return "\"********\"";
  return yaml_of(setting.name == kJournal ? std::vector{store::without_password(setting.values.back())}
                                          : setting.values);
}

// A key in a file that others may read is no secret.
void warn_of_readers(const std::string& file, const std::vector<GivenOption>& settings,
                     std::vector<std::string>& warnings) {
  struct stat status {};
  const bool has_secret = std::any_of(settings.begin(), settings.end(), holds_secret);
  if (!has_secret || stat(file.c_str(), &status) != 0 || (status.st_mode & S_IROTH) == 0) return;
  warnings.push_back(file +
                     " has a key or a password in it, and every account of this machine may read it (chmod o-r)");
}

// "words that go on", wrapped, behind `mark`.
std::string as_comment(const std::string& text) {
  constexpr size_t kColumns = 100;
  std::string comment, line;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + 1 + word.size() > kColumns) {
      comment += "# " + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return comment + "# " + line + "\n";
}

// What holds where nobody says anything, as YAML; empty when that is nothing.
std::string default_of(const CLI::Option& option) {
  const std::string text = option.get_default_str();
  if (text.empty() || option.get_items_expected_max() == 0) return "";
  return text.front() == '[' ? text : yaml_of({text});
}

// What holds of it; what does not, since somebody above says otherwise, as a comment.
std::string shown_sections(const Configuration& configuration, const std::vector<ModelSection>& models) {
  if (models.empty()) return std::string("# ") + kModelOptions + ":  # not set\n";
  std::string text = std::string(kModelOptions) + ":\n";
  for (const ModelSection& model : models) {
    const bool has_some = std::any_of(model.options.begin(), model.options.end(), [&](const GivenOption& option) {
      return !above_files(configuration, option.name);
    });
    text += "  " + yaml_of({model.name}) + ":" + (has_some ? "" : " {}") + "\n";
    for (const GivenOption& option : model.options) {
      const GivenOption* above = above_files(configuration, option.name);
      text +=
          std::string(above ? "    # " : "    ") + option.name + ": " + yaml_of(option.values) + "  # " + option.place;
      text += above ? ", but " + above->place + " says " + yaml_of(above->values) + "\n" : "\n";
    }
  }
  return text;
}

std::string example_sections(const CLI::App& own) {
  std::string names;
  for (const CLI::Option* option : own.get_options()) {
    if (const std::string name = key_of(*option); !name.empty()) names += (names.empty() ? "" : ", ") + name;
  }
  return "\n# == Single models\n\n" +
         as_comment(
             "options of a model by its name, which /v1/models shows; they win over those above, and the "
             "command line and the environment over them. There may be: " +
             names) +
         "#" + kModelOptions + ":\n#  qwen3-4b-q4:\n#    ctx: 8192\n#    temp: 0.6\n";
}

// "16GiB", "-1", "0.7"; not an address, which has more dots.
bool is_number(const std::string& text) {
  const size_t first = text.starts_with("-") ? 1 : 0;
  return text.find_first_of("0123456789") == first && std::count(text.begin(), text.end(), '.') <= 1 &&
         text.find_first_not_of("0123456789.kKMGTiB", first) == std::string::npos;
}

bool has_word(const std::string& text, const std::string& word) {
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  for (size_t at = text.find(word); !word.empty() && at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || text.find_first_of(kLetters, at - 1) != at - 1;
    const bool ends = end == text.size() || text.find_first_of(kLetters, end) != end;
    if (begins && ends) return true;
  }
  return false;
}

// Nothing that somebody made up: that may be a path, an address or a name.
bool is_shareable(const std::string& value, const CLI::Option& option) {
  if (value == "true" || value == "false" || is_number(value)) return true;
  return value.find('/') == std::string::npos &&
         has_word(option.get_description() + " " + option.get_type_name() + " " + option.get_default_str(), value);
}

}  // namespace

std::vector<KnownOption> configurable_options(const CLI::App& command) {
  std::vector<KnownOption> known;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = key_of(*option);
    if (!name.empty()) known.push_back({name, option->get_items_expected_max() > 1, is_secret(name)});
  }
  return known;
}

std::vector<GivenOption> settings_of_line(const CLI::App& command) {
  std::vector<GivenOption> settings;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = key_of(*option);
    if (!name.empty() && option->count() > 0) settings.push_back({name, option->results(), kLinePlace});
  }
  return settings;
}

std::vector<GivenOption> of_line(const Configuration& configuration) {
  std::vector<GivenOption> line;
  for (const GivenOption& setting : configuration.settings) {
    if (setting.place == kLinePlace) line.push_back(setting);
  }
  return line;
}

const GivenOption* above_files(const Configuration& configuration, const std::string& name) {
  const auto found =
      std::find_if(configuration.settings.begin(), configuration.settings.end(),
                   [&](const GivenOption& setting) { return setting.name == name && !is_of_file(setting); });
  return found == configuration.settings.end() ? nullptr : &*found;
}

std::vector<std::string> changed_names(const Configuration& before, const Configuration& now) {
  std::map<std::string, std::vector<std::string>> values[2];
  for (const GivenOption& setting : before.settings) values[0][setting.name] = setting.values;
  for (const GivenOption& setting : now.settings) values[1][setting.name] = setting.values;
  std::set<std::string> names;
  if (values_by_model(before.models) != values_by_model(now.models)) names.insert(kModelOptions);
  for (int side : {0, 1}) {
    for (const auto& [name, value] : values[side]) {
      const auto other = values[1 - side].find(name);
      if (other == values[1 - side].end() || other->second != value) names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

std::string settings_file(const CLI::App& command) {
  std::string file;
  const CLI::Option* option = command.get_option_no_throw("--config");
  if (option && option->count() > 0) {
    file = option->results().back();
  } else if (const char* named = std::getenv("CHIMERE_CONFIG"); named && *named) {
    file = named;
  } else {
    return default_settings_file();
  }
  return file == "none" ? "" : file;
}

Status apply_setting(const GivenOption& setting, CLI::App& app) {
  const std::string name = "--" + setting.name;
  const CLI::Option* option = app.get_option_no_throw(name);
  if (!option) return Error{Code::internal, setting.place + ": " + name + " is no option"};
  // An option of two values has them behind its name, one of any number is repeated. CLI11 takes them from the back.
  const bool is_tuple = option->get_items_expected_min() > 1;
  std::vector<std::string> arguments;
  for (const std::string& value : setting.values) {
    arguments.push_back(is_tuple && !arguments.empty() ? value : name + "=" + value);
  }
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.clear();
    app.parse(arguments);
  } catch (const CLI::Error& e) {
    return Error{Code::invalid_argument, setting.place + ": " + e.what()};
  }
  return Ok{};
}

Result<Configuration> read_configuration(const std::vector<GivenOption>& line, const std::string& file,
                                         CLI::App& trial) {
  for (const GivenOption& setting : line) {
    if (setting.name == kJournal) TRY(refuse_password_on_line(setting.values.back()));
  }
  Configuration configuration;
  configuration.file = file;
  const std::vector<KnownOption> known = configurable_options(trial);
  std::vector<GivenOption> from_file;
  if (!file.empty()) {
    TRY_ASSIGN(const std::string text, read_text(file));
    TRY_ASSIGN(FileSettings said, settings_of_yaml(text, file, known));
    from_file = std::move(said.settings);
    configuration.models = std::move(said.models);
    warn_of_readers(file, from_file, configuration.warnings);
  }
  EnvironmentSettings from_environment = settings_of_environment(own_variables(), known);
  for (const auto* settings : {&from_file, &from_environment.settings}) {
    for (const GivenOption& setting : *settings) TRY(apply_setting(setting, trial));
  }
  std::move(from_environment.strangers.begin(), from_environment.strangers.end(),
            std::back_inserter(configuration.warnings));
  configuration.settings = winners({&line, &from_environment.settings, &from_file});
  return Result<Configuration>{std::move(configuration)};
}

std::string shown_configuration(const Configuration& configuration, const CLI::App& command,
                                const std::vector<ModelSection>& models) {
  std::map<std::string, const GivenOption*> by_name;
  for (const GivenOption& setting : configuration.settings) by_name[setting.name] = &setting;
  std::string text = "# from " + (configuration.file.empty() ? "no file" : configuration.file) +
                     ", the environment and the command line\n";
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = key_of(*option);
    if (name.empty()) continue;
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      const std::string value = default_of(*option);
      text += value.empty() ? "# " + name + ":  # not set\n" : name + ": " + value + "  # default\n";
      continue;
    }
    const GivenOption& setting = *found->second;
    text += name + ": " + shown_values(setting) + "  # " + setting.place + "\n";
  }
  return text + shown_sections(configuration, models);
}

std::string shareable_configuration(const Configuration& configuration, const CLI::App& command) {
  std::string text;
  for (const GivenOption& setting : configuration.settings) {
    const CLI::Option* option = command.get_option_no_throw("--" + setting.name);
    const bool is_told = option && !is_secret(setting.name) &&
                         std::all_of(setting.values.begin(), setting.values.end(),
                                     [&](const std::string& value) { return is_shareable(value, *option); });
    const std::string place = setting.place == kLinePlace ? "command line"
                              : is_of_file(setting)       ? "file"
                                                          : "environment";
    text += "- " + setting.name + ": " + (is_told ? yaml_of(setting.values) : "\"********\"") + " (" + place + ")\n";
  }
  // Names of models are nobody else's business.
  std::set<std::string> names;
  for (const ModelSection& model : configuration.models) {
    for (const GivenOption& option : model.options) names.insert(option.name);
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  if (!list.empty()) {
    text += "- " + std::string(kModelOptions) + ": of " + std::to_string(configuration.models.size()) + " models, " +
            list + " (file)\n";
  }
  return text.empty() ? "- nothing is set: all options have their defaults\n" : text;
}

std::string example_configuration(const CLI::App& command, const CLI::App& own) {
  std::string text =
      "# Options of `chimere serve`. What stands here holds unless a variable of the environment (CHIMERE_PORT for "
      "port)\n"
      "# or the command line says otherwise. `chimere config check` reads this file as the server would, and\n"
      "# `chimere config show` tells what holds and why. The lines below show the defaults.\n";
  std::string group;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = key_of(*option);
    if (name.empty()) continue;
    if (option->get_group() != group) {
      group = option->get_group();
      if (group != "Options") text += "\n# == " + group + "\n";
    }
    const bool is_flag = option->get_items_expected_max() == 0;
    const std::string value = is_flag ? "false" : default_of(*option);
    text += "\n" + as_comment(option->get_description()) + "#" + name + ":" + (value.empty() ? "" : " " + value) + "\n";
  }
  return text + example_sections(own);
}

}  // namespace chimere::apps
