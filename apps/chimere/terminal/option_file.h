// option_file.h  Options of single models in a YAML file:
//
//   models:
//     qwen3-4b:            the name that /v1/models shows
//       ctx: 8192          an option of `serve`, without its dashes
//       temp: 0.6
//       lora: [formal=formal.gguf:0.5, short=short.gguf]
//
// This reads the form alone, with the place of every word, so that whoever knows the options can say where one is wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere::apps {

struct FilePlace {
  int line = 1, column = 1;
};

struct FileOption {
  std::string name;
  std::vector<std::string> values;  // one, or those of a list
  FilePlace place;
};

struct ModelSection {
  std::string name;
  FilePlace place;
  std::vector<FileOption> options;
};

// "chimere.yaml:3:7: message"
Error error_at(const std::string& file, FilePlace place, const std::string& message);

// What stands behind `models:`. `file` is for messages.
Result<std::vector<ModelSection>> parse_model_sections(std::string_view text, const std::string& file);
Result<std::vector<ModelSection>> read_model_sections(const std::string& file);

}  // namespace chimere::apps
