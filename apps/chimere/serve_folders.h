// serve_folders.h  `chimere serve --models`: the files of folders by their names, each with options of its own.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "serve_options.h"

namespace chimere::apps {

// The options of a model that has some of its own, and the template they name.
struct OwnOptions {
  ServeOptions options;
  std::string chat_template;
};
using OwnOptionsByName = std::map<std::string, OwnOptions>;

// Before anything is served: a mistake in the file is not found when its model is asked for.
Result<OwnOptionsByName> read_own_options(const ServeOptions& o);

Status serve_folders(ServeOptions& o, const std::string& chat_template);

}  // namespace chimere::apps
