#include "convert/recipe.h"

#include <cmath>

#include "gguf/value.h"

namespace chimere::convert {

Target& Target::with_rows(IndexMap map) {
  rows = std::move(map);
  return *this;
}

Target& Target::with_columns(IndexMap map) {
  columns = std::move(map);
  return *this;
}

Target& Target::with_edit(RowEdit e) {
  edit = std::move(e);
  return *this;
}

Target& Target::times(double factor) {
  if (factor == 1.0) return *this;
  return with_edit([f = static_cast<float>(factor)](uint64_t, std::span<float> values) {
    for (float& v : values) v *= f;
  });
}

Target& Target::plus_one() {
  return with_edit([](uint64_t, std::span<float> values) {
    for (float& v : values) v += 1.0f;
  });
}

Target& Target::minus_exp() {
  return with_edit([](uint64_t, std::span<float> values) {
    for (float& v : values) v = -std::exp(v);
  });
}

Target& Target::shaped(const Shape& shape) {
  ne = shape;
  return *this;
}

Recipe::Recipe(const Checkpoint& checkpoint, const HfConfig& config, std::string arch)
    : checkpoint_(checkpoint), config_(config), arch_(std::move(arch)) {
  metadata_.set_string("general.architecture", arch_);
  metadata_.set_string("general.type", "model");
}

void Recipe::fail(Code code, const std::string& message) {
  if (status_) status_ = Error{code, message};
}

Status Recipe::status() const { return status_; }

template <class T, class Find>
T Recipe::setting(std::string_view key, Find find, const T* fallback) {
  auto found = find(key);
  if (!found) {
    fail(found.error().code, found.error().message);
  } else if (found->has_value()) {
    return **found;
  } else if (!fallback) {
    fail(Code::corrupt, "config.json: " + std::string(key) + " is missing");
  }
  return fallback ? *fallback : T{};
}

int64_t Recipe::integer(std::string_view key) {
  const int64_t value = setting<int64_t>(
      key, [&](std::string_view k) { return config_.find_int(k); }, nullptr);
  if (value < 1) fail(Code::corrupt, "config.json: " + std::string(key) + ": expected 1 or more, found 0");
  return std::max<int64_t>(value, 1);  // a divisor even after an error
}

int64_t Recipe::count(std::string_view key, int64_t most) {
  const int64_t value = integer(key);
  if (value <= most) return value;
  fail(Code::corrupt, "config.json: " + std::string(key) + ": expected at most " + std::to_string(most) + ", found " +
                          std::to_string(value));
  return 1;
}

int64_t Recipe::integer_or(std::string_view key, int64_t fallback) {
  return setting<int64_t>(
      key, [&](std::string_view k) { return config_.find_int(k); }, &fallback);
}

double Recipe::number(std::string_view key) {
  return setting<double>(
      key, [&](std::string_view k) { return config_.find_float(k); }, nullptr);
}

double Recipe::number_or(std::string_view key, double fallback) {
  return setting<double>(
      key, [&](std::string_view k) { return config_.find_float(k); }, &fallback);
}

bool Recipe::flag_or(std::string_view key, bool fallback) {
  return setting<bool>(
      key, [&](std::string_view k) { return config_.find_bool(k); }, &fallback);
}

std::string Recipe::text_or(std::string_view key, std::string fallback) {
  return setting<std::string>(
      key, [&](std::string_view k) { return config_.find_string(k); }, &fallback);
}

std::vector<int64_t> Recipe::integers(std::string_view key) {
  auto found = config_.find_ints(key);
  if (found) return std::move(*found);
  fail(found.error().code, found.error().message);
  return {};
}

std::vector<double> Recipe::numbers(std::string_view key) {
  auto found = config_.find_floats(key);
  if (found) return std::move(*found);
  fail(found.error().code, found.error().message);
  return {};
}

std::vector<std::string> Recipe::texts(std::string_view key) {
  auto found = config_.find_strings(key);
  if (found) return std::move(*found);
  fail(found.error().code, found.error().message);
  return {};
}

void Recipe::set_int(std::string_view key, int64_t value) {
  if (value < 0 || value > UINT32_MAX) {
    return fail(Code::corrupt, "config.json: " + std::string(key) + " is out of range: " + std::to_string(value));
  }
  metadata_.set_int(arch_ + "." + std::string(key), gguf::ValueType::u32, value);
}

void Recipe::set_ints(std::string_view key, const std::vector<int64_t>& values) {
  for (const int64_t value : values) {
    if (value < 0 || value > INT32_MAX)
      return fail(Code::corrupt, "config.json: " + std::string(key) + " is out of range");
  }
  gguf::Value list;
  list.type = gguf::ValueType::i32;
  list.is_array = true;
  list.data = values;
  metadata_.set(arch_ + "." + std::string(key), std::move(list));
}

void Recipe::set_float(std::string_view key, double value) {
  metadata_.set_float(arch_ + "." + std::string(key), value);
}
void Recipe::set_bool(std::string_view key, bool value) { metadata_.set_bool(arch_ + "." + std::string(key), value); }
void Recipe::set_string(std::string_view key, std::string value) {
  metadata_.set_string(arch_ + "." + std::string(key), std::move(value));
}

const StoredTensor* Recipe::require(const std::string& source) {
  const StoredTensor* tensor = checkpoint_.find(source);
  if (!tensor) {
    fail(Code::not_found, "tensor " + gguf::quoted(source) + " is missing from the checkpoint");
    return nullptr;
  }
  used_.insert(source);
  if (const StoredTensor* scales = checkpoint_.scales_of(*tensor)) used_.insert(scales->name);
  return tensor;
}

Target& Recipe::add(std::string name, Storage storage, const std::vector<std::string>& sources) {
  Target target;
  target.name = std::move(name);
  target.storage = storage;
  for (const std::string& source : sources) {
    const StoredTensor* tensor = require(source);
    if (!tensor) return spare_ = Target{};
    if (!target.sources.empty() && tensor->shape != target.sources.front()->shape) {
      fail(Code::corrupt, "tensor " + gguf::quoted(source) + " has shape " + shape_text(tensor->shape) + ", expected " +
                              shape_text(target.sources.front()->shape) + " as " +
                              gguf::quoted(target.sources.front()->name) + " has");
      return spare_ = Target{};
    }
    target.sources.push_back(tensor);
  }
  // Ones inside a shape (the [channels, 1, width] of a convolution) carry nothing.
  std::vector<uint64_t> dims;
  for (const uint64_t d : target.sources.front()->shape) {
    if (d != 1) dims.push_back(d);
  }
  if (dims.size() + (sources.size() > 1) > target.ne.size()) {
    fail(Code::corrupt, "tensor " + gguf::quoted(sources.front()) + " has shape " +
                            shape_text(target.sources.front()->shape) + ", expected at most 4 dimensions");
    return spare_ = Target{};
  }
  for (size_t d = 0; d < dims.size(); ++d) target.ne[d] = dims[dims.size() - 1 - d];
  if (sources.size() > 1) target.ne[dims.size()] = sources.size();
  targets_.push_back(std::move(target));
  return targets_.back();
}

Target& Recipe::matrix(std::string name, const std::string& source) {
  return add(std::move(name), Storage::matrix, {source});
}

Target& Recipe::matrix(std::string name, const std::vector<std::string>& sources) {
  return add(std::move(name), Storage::matrix, sources);
}

Target& Recipe::f32(std::string name, const std::string& source) {
  return add(std::move(name), Storage::f32, {source});
}

Target& Recipe::mxfp4(std::string name, const std::string& blocks, const std::string& scales, const Shape& ne) {
  Target& target = add(std::move(name), Storage::mxfp4, {blocks});
  target.scales = require(scales);
  target.ne = ne;
  return target;
}

void Recipe::computed(std::string name, std::vector<float> values) {
  Target target;
  target.name = std::move(name);
  target.ne = {values.size(), 1, 1, 1};
  target.values = std::move(values);
  targets_.push_back(std::move(target));
}

std::vector<std::string> Recipe::unused() const {
  std::vector<std::string> out;
  for (const auto& [name, tensor] : checkpoint_.tensors()) {
    if (!used_.count(name)) out.push_back(name);
  }
  return out;
}

}  // namespace chimere::convert
