#include "data_folder.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace chimere::apps {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::string data_folder() {
  if (const std::string home = variable("CHIMERE_HOME"); !home.empty()) return home;
  if (const std::string data = variable("XDG_DATA_HOME"); !data.empty()) return data + "/chimere";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.local/share/chimere";
  return "";
}

std::string key_usage_file() {
  const std::string data = data_folder();
  return data.empty() ? "" : data + "/key-usage";
}

std::string default_cache_folder() {
  const std::string data = data_folder();
  return data.empty() ? "" : data + "/prefix-cache";
}

std::string default_experts_folder() {
  const std::string data = data_folder();
  std::error_code error;
  return (data.empty() ? std::filesystem::temp_directory_path(error).string() + "/chimere" : data) + "/experts";
}

std::string default_collections_file() {
  const std::string data = data_folder();
  return data.empty() ? "" : data + "/collections.db";
}

std::string default_journal_file() {
  const std::string data = data_folder();
  return data.empty() ? "" : data + "/journal.db";
}

std::string default_improve_folder() {
  const std::string data = data_folder();
  return data.empty() ? "" : data + "/improve";
}

}  // namespace chimere::apps
