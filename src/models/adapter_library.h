// adapter_library.h  The loaded LoRA adapters that requests may name. Thread-safe.
//
// A request keeps the adapters it uses: unloading one does not end answers under way.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/adapter.h"
#include "base/result.h"

namespace chimere::models {

class Model;

class AdapterLibrary {
 public:
  // The model must outlive the library.
  explicit AdapterLibrary(Model& model) : model_(model) {}

  struct Entry {
    std::string name;
    std::string path;
    float scale = 1;  // the default, when a request names none
    uint64_t n_bytes = 0;
    std::string owner = {};  // name of the key that loaded it; empty: no key
  };

  // Refuses a name that is taken or invalid. Valid: letters, digits, '-', '_' and '.'.
  Status load(const std::string& name, const std::string& path, float scale, const std::string& owner = {});
  Status unload(const std::string& name);
  // For whoever keeps it himself: requests can not name it.
  Result<std::shared_ptr<const Adapter>> read(const std::string& path, const std::string& name) const;
  std::vector<Entry> list() const;  // by name

  // In the given order, each with the given scale or the adapter's own. not_found lists the known names.
  Result<std::shared_ptr<const AdapterSet>> set_of(
      const std::vector<std::pair<std::string, std::optional<float>>>& names) const;

 private:
  struct Loaded {
    Entry entry;
    std::shared_ptr<const Adapter> adapter;
  };
  Error unknown(const std::string& name) const;  // REQUIRES: mutex_ held

  Model& model_;
  mutable std::mutex mutex_;
  std::map<std::string, Loaded> loaded_;
};

// "NAME=FILE" or "NAME=FILE:SCALE".
struct AdapterArgument {
  std::string name, path;
  float scale = 1;
};
Result<AdapterArgument> parse_adapter_argument(const std::string& text);

}  // namespace chimere::models
