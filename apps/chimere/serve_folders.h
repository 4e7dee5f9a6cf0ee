// serve_folders.h  `chimere serve --models`: the files of folders by their names, each with options of its own.
#pragma once

#include <string>

#include "base/result.h"
#include "serve_options.h"

namespace chimere::apps {

Status serve_folders(ServeOptions& o, const std::string& chat_template);

}  // namespace chimere::apps
