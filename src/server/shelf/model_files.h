// model_files.h  The GGUF files of a folder that can be served, by the names people ask for.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace chimere::server {

struct ModelFile {
  std::string name;  // of the file, without its ending
  std::string path;
  uint64_t bytes = 0;                                             // of all its parts
  int64_t written = 0;                                            // seconds since 1970
  std::vector<std::pair<std::string, std::string>> options = {};  // that it has of its own: name and value, to be shown
};

// Folders inside are looked into, as LM Studio and the hub's cache have them. Of a file in parts there is one entry;
// projectors for pictures are no models. Two files of one name are told apart by their folders. Sorted by name.
//
// A folder of Ollama, which has `manifests` and `blobs`, gives the models its manifests name ("qwen3:8b").
Result<std::vector<ModelFile>> find_models(const std::string& folder);

// "ollama" and "lmstudio" stand for the folders where these keep their models; others are what they say.
std::string model_folder(const std::string& given);

}  // namespace chimere::server
