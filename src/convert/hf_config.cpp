#include "convert/hf_config.h"

#include <cmath>

#include "convert/json_text.h"

namespace chimere::convert {

struct HfConfig::Impl {
  std::string label;
  Json root;

  const Json* find(std::string_view key) const {
    if (const auto text = root.find("text_config"); text != root.end()) {
      if (const Json* found = find_in(*text, key)) return found;
    }
    return find_in(root, key);
  }

  static const Json* find_in(const Json& object, std::string_view key) {
    const Json* at = &object;
    for (;;) {
      const size_t slash = key.find('/');
      if (!at->is_object()) return nullptr;
      const auto found = at->find(std::string(key.substr(0, slash)));
      if (found == at->end() || found->is_null()) return nullptr;
      at = &*found;
      if (slash == std::string_view::npos) return at;
      key.remove_prefix(slash + 1);
    }
  }

  Error wrong(std::string_view key, const char* expected, const Json& found) const {
    std::string text = found.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 60) + "...";
    return Error{Code::corrupt, label + ": " + std::string(key) + ": expected " + expected + ", found " + text};
  }
};

namespace {

constexpr int64_t kMaxInt = int64_t{1} << 40;
constexpr size_t kMaxEntries = 4096;

// A whole number that may be written as a float.
std::optional<int64_t> whole(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  if (!(number >= 0 && number <= static_cast<double>(kMaxInt)) || number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

// A float32 at most: that is what the file can hold.
std::optional<double> finite(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::fabs(number) <= 3e38 ? std::optional(number) : std::nullopt;
}

}  // namespace

HfConfig::HfConfig(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HfConfig::HfConfig(HfConfig&&) noexcept = default;
HfConfig& HfConfig::operator=(HfConfig&&) noexcept = default;
HfConfig::~HfConfig() = default;

Result<HfConfig> HfConfig::parse(std::string_view text, const std::string& label) {
  TRY_ASSIGN(Json root, parse_json(text, label));
  if (!root.is_object()) return Error{Code::corrupt, label + ": expected an object"};
  return Result<HfConfig>{HfConfig(std::make_unique<Impl>(Impl{label, std::move(root)}))};
}

Result<HfConfig> HfConfig::open(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_text(path));
  return parse(text, path);
}

bool HfConfig::has(std::string_view key) const { return impl_->find(key) != nullptr; }

Result<std::optional<int64_t>> HfConfig::find_int(std::string_view key) const {
  const Json* found = impl_->find(key);
  if (!found) return std::optional<int64_t>();
  const std::optional<int64_t> value = whole(*found);
  if (!value) return impl_->wrong(key, "a whole number from 0 to 2^40", *found);
  return value;
}

Result<std::optional<double>> HfConfig::find_float(std::string_view key) const {
  const Json* found = impl_->find(key);
  if (!found) return std::optional<double>();
  const std::optional<double> value = finite(*found);
  if (!value) return impl_->wrong(key, "a finite number", *found);
  return value;
}

Result<std::optional<bool>> HfConfig::find_bool(std::string_view key) const {
  const Json* found = impl_->find(key);
  if (!found) return std::optional<bool>();
  if (!found->is_boolean()) return impl_->wrong(key, "true or false", *found);
  return std::optional<bool>(found->get<bool>());
}

Result<std::optional<std::string>> HfConfig::find_string(std::string_view key) const {
  const Json* found = impl_->find(key);
  if (!found) return std::optional<std::string>();
  if (!found->is_string()) return impl_->wrong(key, "a string", *found);
  return std::optional<std::string>(found->get<std::string>());
}

Result<std::vector<int64_t>> HfConfig::find_ints(std::string_view key) const {
  std::vector<int64_t> out;
  const Json* found = impl_->find(key);
  if (!found) return Result<std::vector<int64_t>>{std::move(out)};
  if (!found->is_array() || found->size() > kMaxEntries) return impl_->wrong(key, "a list of whole numbers", *found);
  for (const Json& element : *found) {
    const std::optional<int64_t> value = whole(element);
    if (!value) return impl_->wrong(key, "a list of whole numbers", *found);
    out.push_back(*value);
  }
  return Result<std::vector<int64_t>>{std::move(out)};
}

Result<std::vector<double>> HfConfig::find_floats(std::string_view key) const {
  std::vector<double> out;
  const Json* found = impl_->find(key);
  if (!found) return Result<std::vector<double>>{std::move(out)};
  if (!found->is_array() || found->size() > kMaxEntries) return impl_->wrong(key, "a list of numbers", *found);
  for (const Json& element : *found) {
    const std::optional<double> value = finite(element);
    if (!value) return impl_->wrong(key, "a list of finite numbers", *found);
    out.push_back(*value);
  }
  return Result<std::vector<double>>{std::move(out)};
}

Result<std::vector<std::string>> HfConfig::find_strings(std::string_view key) const {
  std::vector<std::string> out;
  const Json* found = impl_->find(key);
  if (!found) return Result<std::vector<std::string>>{std::move(out)};
  if (!found->is_array() || found->size() > kMaxEntries) return impl_->wrong(key, "a list of strings", *found);
  for (const Json& element : *found) {
    if (!element.is_string()) return impl_->wrong(key, "a list of strings", *found);
    out.push_back(element.get<std::string>());
  }
  return Result<std::vector<std::string>>{std::move(out)};
}

Result<std::string> HfConfig::architecture() const {
  TRY_ASSIGN(const std::vector<std::string> names, find_strings("architectures"));
  if (names.empty()) {
    return Error{Code::corrupt, impl_->label + ": expected the model's class in \"architectures\", found none"};
  }
  return Result<std::string>{names.front()};
}

}  // namespace chimere::convert
