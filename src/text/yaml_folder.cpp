#include "text/yaml_folder.h"

namespace chimere {

YamlFiles find_yaml_files(const std::vector<std::string>& folders, size_t max_files) {
  namespace fs = std::filesystem;
  YamlFiles files;
  for (const std::string& folder : folders) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      std::error_code ignored;
      const fs::path& path = entry.path();
      if (path.extension() != ".yaml" || !entry.is_regular_file(ignored) || files.size() >= max_files) continue;
      files[path.stem().string()] = {entry.last_write_time(ignored), entry.file_size(ignored), path.string()};
    }
  }
  return files;
}

}  // namespace chimere
