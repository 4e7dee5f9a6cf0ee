#include "own_options.h"

#include <algorithm>
#include <filesystem>

#include "server/shelf/model_files.h"
#include "text/nearest_word.h"

namespace chimere::apps {
namespace {

Error unknown_option(const GivenOption& option, const CLI::App& own) {
  ServeOptions nobodys;
  CLI::App all;
  declare_options(all, nobodys);
  const CLI::Option* of_server = all.get_option_no_throw("--" + option.name);
  if (of_server && of_server->check_lname(option.name)) {
    return Error{Code::invalid_argument, option.place + ": '" + option.name +
                                             "' is no option of a model, but of the whole server: put it above " +
                                             kModelOptions};
  }
  std::vector<std::string> names;
  for (const KnownOption& known : configurable_options(own)) names.push_back(known.name);
  std::string dashed = option.name;  // people write names with the line of other languages
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  const std::string nearest = nearest_word(dashed, names);
  return Error{Code::invalid_argument, option.place + ": '" + option.name + "' is no option of a model" +
                                           (nearest.empty() ? std::string() : "; did you mean `" + nearest + "`?")};
}

// One that is wrong is an error even where another wins over it. `check` is asked behind each whether all is well.
Status try_section(const ModelSection& section, CLI::App& own, const std::function<Status()>& check) {
  for (const GivenOption& option : section.options) {
    const CLI::Option* known = own.get_option_no_throw("--" + option.name);
    if (!known || !known->check_lname(option.name)) return unknown_option(option, own);
    GivenOption at_model = option;
    at_model.place += ": " + section.name;
    TRY(apply_setting(at_model, own));
    if (const Status good = check(); !good) {
      return Error{good.error().code, at_model.place + ": " + good.error().message};
    }
  }
  return Ok{};
}

// With all options of the section that nobody above it speaks of, or with all of them.
Result<OwnOptions> options_of(const ServeOptions& o, const Configuration& configuration, const ModelSection& section,
                              bool with_all) {
  OwnOptions own{o, {}, {}};
  CLI::App app;
  app.set_help_flag();
  add_own_options(app, own.options);
  const auto check = [&own]() -> Status {
    orchestrator::Defaults defaults;
    TRY(set_defaults(own.options, defaults));
    TRY_ASSIGN(own.chat_template, read_chat_template(own.options.chat_template_file));
    return Ok{};
  };
  TRY(check());
  ModelSection taken{section.name, section.place, {}};
  for (const GivenOption& option : section.options) {
    if (!with_all && above_files(configuration, option.name)) continue;
    taken.options.push_back(option);
    if (option.name == "state-gb") own.options.says_state_gb = true;
    const std::string value = yaml_of(option.values);
    own.shown.emplace_back(option.name, value.find('/') == std::string::npos ? value : "a file");
  }
  TRY(try_section(taken, app, check));
  return Result<OwnOptions>{std::move(own)};
}

// The folder's file, unless it is the one that all options are in.
Result<std::vector<ModelSection>> folder_sections(const std::string& folder, const Configuration& configuration) {
  const std::string file = server::model_folder(folder) + "/chimere.yaml";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::vector<ModelSection>();
  if (!configuration.file.empty() && std::filesystem::equivalent(file, configuration.file, error)) {
    return std::vector<ModelSection>();
  }
  return read_model_sections(file);
}

}  // namespace

Result<std::vector<ModelSection>> all_sections(const Configuration& configuration,
                                               const std::vector<std::string>& folders) {
  std::vector<ModelSection> of_folders;
  for (const std::string& folder : folders) {
    TRY_ASSIGN(auto sections, folder_sections(folder, configuration));
    for (ModelSection& section : sections) {
      const auto other = std::find_if(of_folders.begin(), of_folders.end(),
                                      [&](const ModelSection& one) { return one.name == section.name; });
      if (other != of_folders.end()) {
        return Error{Code::invalid_argument, section.place + ": " + section.name +
                                                 ": another folder's file has options of this name, too (" +
                                                 other->place + ")"};
      }
      of_folders.push_back(std::move(section));
    }
  }
  return merged_sections({&configuration.models, &of_folders});
}

Result<OwnOptionsByName> own_options(const ServeOptions& o, const Configuration& configuration) {
  TRY_ASSIGN(const auto sections, all_sections(configuration, o.model_folders));
  OwnOptionsByName own;
  for (const ModelSection& section : sections) {
    TRY(options_of(o, configuration, section, true));
    TRY_ASSIGN(auto mine, options_of(o, configuration, section, false));
    own.emplace(section.name, std::move(mine));
  }
  return Result<OwnOptionsByName>{std::move(own)};
}

Status use_own_options(ServeOptions& o, const std::string& model) {
  TRY_ASSIGN(auto own, own_options(o, o.configuration));
  const auto mine = own.find(model);
  if (mine != own.end()) o = std::move(mine->second.options);
  return Ok{};
}

void OwnOptionsBook::set(OwnOptionsByName own) {
  auto next = std::make_shared<const OwnOptionsByName>(std::move(own));
  const std::lock_guard lock(mutex_);
  own_ = std::move(next);
}

std::shared_ptr<const OwnOptionsByName> OwnOptionsBook::get() const {
  const std::lock_guard lock(mutex_);
  return own_;
}

}  // namespace chimere::apps
