#include "models/adapter_library.h"

#include <cmath>
#include <cstdlib>

#include "gguf/value.h"
#include "models/adapter_file.h"

namespace chimere::models {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMaxAdapters = 256;

bool is_name(const std::string& name) {
  constexpr char kAllowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  return !name.empty() && name.size() <= kMaxNameBytes && name[0] != '.' &&
         name.find_first_not_of(kAllowed) == std::string::npos;
}

}  // namespace

Status AdapterLibrary::load(const std::string& name, const std::string& path, float scale, const std::string& owner) {
  if (!is_name(name)) {
    return Error{Code::invalid_argument,
                 "adapter " + gguf::quoted(name) + ": expected a name of at most 64 letters, digits, '-', '_' and '.'"};
  }
  const auto refusal = [&]() -> Status {
    if (loaded_.count(name)) return Error{Code::invalid_argument, "adapter '" + name + "' is loaded already"};
    if (loaded_.size() >= kMaxAdapters) return Error{Code::exhausted, "256 adapters are loaded, which is the limit"};
    return Ok{};
  };
  {
    const std::lock_guard lock(mutex_);
    TRY(refusal());
  }
  TRY_ASSIGN(auto adapter, load_adapter(path, name, model_));
  const std::lock_guard lock(mutex_);
  TRY(refusal());  // another thread may have been faster
  const uint64_t n_bytes = adapter->size_bytes();
  loaded_[name] = {{name, path, scale, n_bytes, owner}, std::move(adapter)};
  return Ok{};
}

Result<std::shared_ptr<const Adapter>> AdapterLibrary::read(const std::string& path, const std::string& name) const {
  return load_adapter(path, name, model_);
}

Status AdapterLibrary::unload(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (loaded_.erase(name) == 0) return unknown(name);
  return Ok{};
}

std::vector<AdapterLibrary::Entry> AdapterLibrary::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<Entry> entries;
  for (const auto& [name, loaded] : loaded_) entries.push_back(loaded.entry);
  return entries;
}

Error AdapterLibrary::unknown(const std::string& name) const {
  std::string known;
  for (const auto& [other, loaded] : loaded_) known += (known.empty() ? "" : ", ") + other;
  return Error{Code::not_found, "adapter " + gguf::quoted(name) + " is not loaded; there " +
                                    (known.empty() ? "are none" : "is " + known)};
}

Result<std::shared_ptr<const AdapterSet>> AdapterLibrary::set_of(
    const std::vector<std::pair<std::string, std::optional<float>>>& names) const {
  auto set = std::make_shared<AdapterSet>();
  const std::lock_guard lock(mutex_);
  for (const auto& [name, scale] : names) {
    const auto found = loaded_.find(name);
    if (found == loaded_.end()) return unknown(name);
    set->uses.push_back({found->second.adapter, scale.value_or(found->second.entry.scale)});
  }
  return Result<std::shared_ptr<const AdapterSet>>{std::move(set)};
}

Result<AdapterArgument> parse_adapter_argument(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return Error{Code::invalid_argument, "--lora: expected NAME=FILE or NAME=FILE:SCALE, found '" + text + "'"};
  }
  AdapterArgument argument{text.substr(0, equals), text.substr(equals + 1), 1.0f};
  const size_t colon = argument.path.rfind(':');
  if (colon == std::string::npos || argument.path.find('/', colon) != std::string::npos) return argument;
  const std::string number = argument.path.substr(colon + 1);
  char* end = nullptr;
  argument.scale = std::strtof(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !(std::fabs(argument.scale) <= 100.0f)) {
    return Error{Code::invalid_argument,
                 "--lora: expected a scale from -100 to 100 after the last ':', found '" + number + "'"};
  }
  argument.path.resize(colon);
  return argument;
}

}  // namespace chimere::models
