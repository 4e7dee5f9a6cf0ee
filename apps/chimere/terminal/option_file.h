// option_file.h  Options of single models, as chimere.yaml has them beside those of the server, and as the file of a folder
// of models has them alone:
//
//   model-options:
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
#include "text/yaml.h"

namespace chimere::apps {

inline constexpr const char* kModelOptions = "model-options";

struct FilePlace {
  int line = 1, column = 1;
};

struct GivenOption {
  std::string name;
  std::vector<std::string> values;
  std::string place;  // "/etc/chimere/chimere.yaml:3:1", "CHIMERE_RATE_LIMIT", "the command line"
};

struct ModelSection {
  std::string name;
  std::string place;
  std::vector<GivenOption> options;
};

// "chimere.yaml:3:7"
std::string place_text(const std::string& file, FilePlace place);
// "chimere.yaml:3:7: message"
Error error_at(const std::string& file, FilePlace place, const std::string& message);

// What stands behind `model-options:`. `file` is for messages.
Result<std::vector<ModelSection>> model_sections(const YamlNode& models, const std::string& file);
// Of a file that has nothing else. `models:` is what it was called in 0.1.
Result<std::vector<ModelSection>> parse_model_sections(std::string_view text, const std::string& file);
Result<std::vector<ModelSection>> read_model_sections(const std::string& file);

// One section of each name: an option that several have is that of the first.
std::vector<ModelSection> merged_sections(const std::vector<const std::vector<ModelSection>*>& by_rank);

}  // namespace chimere::apps
