#include "model_config.h"

#include <vector>

#include "text/nearest_word.h"

namespace chimere::apps {
namespace {

Error unknown_option(const FileOption& option, const std::string& file, const CLI::App& options) {
  std::vector<std::string> names;
  for (const CLI::Option* known : options.get_options()) {
    const auto& long_names = known->get_lnames();
    names.insert(names.end(), long_names.begin(), long_names.end());
  }
  const std::string nearest = nearest_word(option.name, names);
  return error_at(file, option.place,
                  "'" + option.name + "' is no option of a model" +
                      (nearest.empty() ? std::string() : "; did you mean `" + nearest + "`?"));
}

}  // namespace

Status apply_section(const ModelSection& section, const std::string& file, CLI::App& options,
                     const std::function<Status()>& check) {
  for (const FileOption& option : section.options) {
    const std::string name = "--" + option.name;
    const CLI::Option* known = options.get_option_no_throw(name);
    if (!known || !known->check_lname(option.name)) return unknown_option(option, file, options);
    // One at a time, so that what is wrong has a place. CLI11 takes them from the last to the first.
    std::vector<std::string> arguments;
    for (auto value = option.values.rbegin(); value != option.values.rend(); ++value) {
      arguments.push_back(name + "=" + *value);
    }
    try {
      options.clear();
      options.parse(arguments);
    } catch (const CLI::Error& e) {
      return error_at(file, option.place, section.name + ": " + e.what());
    }
    if (const Status good = check(); !good) {
      return error_at(file, option.place, section.name + ": " + good.error().message);
    }
  }
  return Ok{};
}

}  // namespace chimere::apps
