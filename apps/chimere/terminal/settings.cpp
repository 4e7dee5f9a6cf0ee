#include "terminal/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "text/nearest_word.h"
#include "text/yaml.h"

namespace chimere::apps {
namespace {

constexpr std::string_view kVariables = "CHIMERE_";
constexpr size_t kMaxSettingValues = 1024;
// Variables that mean something here and are no options.
constexpr std::string_view kOtherVariables[] = {"CHIMERE_HOME", "CHIMERE_CONFIG"};

const KnownOption* find_option(const std::vector<KnownOption>& known, std::string_view name) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const KnownOption& o) { return o.name == name; });
  return found == known.end() ? nullptr : &*found;
}

std::string guess(const std::string& nearest) {
  return nearest.empty() ? std::string() : "; did you mean `" + nearest + "`?";
}

std::string unknown_key(const std::string& name, const std::vector<KnownOption>& known) {
  std::vector<std::string> names;
  for (const KnownOption& option : known) names.push_back(option.name);
  names.emplace_back(kModelOptions);
  // People write names with the line of other languages.
  std::string dashed = name;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return "'" + name + "' is no option of `chimere serve`" + guess(nearest_word(dashed, names));
}

Result<std::vector<std::string>> values_of(const YamlNode& node, const KnownOption& option, const std::string& file) {
  const auto wrong = [&](const YamlNode& at) {
    return error_at(file, {at.line, at.column},
                    option.name + ": expected " + (option.takes_list ? "a value or a list of values" : "a value") +
                        ", found " + described(at));
  };
  if (node.kind == YamlNode::Kind::word) return std::vector<std::string>{node.word};
  if (node.kind != YamlNode::Kind::list || !option.takes_list || node.items.size() > kMaxSettingValues) {
    return wrong(node);
  }
  std::vector<std::string> values;
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlNode::Kind::word) return wrong(item);
    values.push_back(item.word);
  }
  if (values.empty()) return wrong(node);
  return values;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string folder_of_user() {
  if (const char* xdg = std::getenv("XDG_CONFIG_HOME"); xdg && *xdg) return xdg;
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.config" : "";
}

std::string quoted_word(const std::string& text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:=+@";
  const bool is_plain = !text.empty() && text.find_first_not_of(kPlain) == std::string::npos && text[0] != '-' &&
                        text[0] != '@' && text.back() != ':' && text != "null";
  if (is_plain) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    constexpr std::string_view kHex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace

std::string variable_of(std::string_view option) {
  std::string name(kVariables);
  for (const char c : option) name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

Result<FileSettings> settings_of_yaml(std::string_view text, const std::string& file,
                                      const std::vector<KnownOption>& known) {
  TRY_ASSIGN(const YamlNode root, parse_yaml(text, file));
  FileSettings found;
  if (root.kind == YamlNode::Kind::nothing) return found;
  if (root.kind != YamlNode::Kind::map) {
    return error_at(file, {root.line, root.column}, "expected lines `option: value`, found " + described(root));
  }
  for (const auto& [name, value] : root.pairs) {
    if (name == kModelOptions) {
      TRY_ASSIGN(found.models, model_sections(value, file));
      continue;
    }
    const KnownOption* option = find_option(known, name);
    const FilePlace place{value.key_line, value.key_column};
    if (!option) return error_at(file, place, unknown_key(name, known));
    TRY_ASSIGN(auto values, values_of(value, *option, file));
    found.settings.push_back({name, std::move(values), place_text(file, place)});
  }
  return Result<FileSettings>{std::move(found)};
}

EnvironmentSettings settings_of_environment(const std::vector<std::pair<std::string, std::string>>& variables,
                                            const std::vector<KnownOption>& known) {
  std::map<std::string, const KnownOption*> by_variable;
  std::vector<std::string> names;
  for (const KnownOption& option : known) {
    names.push_back(variable_of(option.name));
    by_variable[names.back()] = &option;
  }
  EnvironmentSettings found;
  for (const auto& [name, value] : variables) {
    if (value.empty() || !name.starts_with(kVariables)) continue;
    if (std::find(std::begin(kOtherVariables), std::end(kOtherVariables), name) != std::end(kOtherVariables)) continue;
    const auto option = by_variable.find(name);
    if (option == by_variable.end()) {
      found.strangers.push_back("the variable " + name + " is no option of `chimere serve` and has no effect" +
                                guess(nearest_word(name, names)));
      continue;
    }
    const bool is_list = option->second->takes_list && !option->second->is_secret;
    found.settings.push_back(
        {option->second->name, is_list ? split_at_commas(value) : std::vector<std::string>{value}, name});
  }
  return found;
}

std::vector<std::pair<std::string, std::string>> own_variables() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (!text.starts_with(kVariables) || equals == std::string_view::npos) continue;
    variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::vector<GivenOption> winners(const std::vector<const std::vector<GivenOption>*>& by_rank) {
  std::map<std::string, GivenOption> won;
  for (const std::vector<GivenOption>* settings : by_rank) {
    for (const GivenOption& setting : *settings) won.emplace(setting.name, setting);
  }
  std::vector<GivenOption> all;
  for (auto& [name, setting] : won) all.push_back(std::move(setting));
  return all;
}

std::string default_settings_file() {
  std::vector<std::string> places;
  if (const std::string own = folder_of_user(); !own.empty()) places.push_back(own + "/chimere/chimere.yaml");
  places.emplace_back("/etc/chimere/chimere.yaml");
  std::error_code error;
  for (const std::string& place : places) {
    if (std::filesystem::exists(place, error)) return place;
  }
  return "";
}

std::string yaml_of(const std::vector<std::string>& values) {
  if (values.size() == 1) return quoted_word(values.front());
  std::string list;
  for (const std::string& value : values) {
    std::string word = quoted_word(value);
    // Inside of brackets a comma separates; quoted_word quotes those that have one.
    list += (list.empty() ? "" : ", ") + word;
  }
  return "[" + list + "]";
}

}  // namespace chimere::apps
