// hf_config.h  config.json of a checkpoint: typed access to what the conversion rules ask for.
//
// A model with an image part keeps the text model's settings in `text_config`; they are looked up there first.
// A value of another type or out of range is an error that names the key; rules collect them (recipe.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere::convert {

class HfConfig {
 public:
  static Result<HfConfig> parse(std::string_view text, const std::string& label);
  static Result<HfConfig> open(const std::string& path);

  HfConfig(HfConfig&&) noexcept;
  HfConfig& operator=(HfConfig&&) noexcept;
  ~HfConfig();

  // "rope_parameters/rope_theta" is a key inside an object. Null counts as absent.
  bool has(std::string_view key) const;

  // Nothing when the key is absent.
  Result<std::optional<int64_t>> find_int(std::string_view key) const;  // 0 to 2^40
  Result<std::optional<double>> find_float(std::string_view key) const;
  Result<std::optional<bool>> find_bool(std::string_view key) const;
  Result<std::optional<std::string>> find_string(std::string_view key) const;
  Result<std::vector<int64_t>> find_ints(std::string_view key) const;  // empty when absent; at most 4096 entries
  Result<std::vector<double>> find_floats(std::string_view key) const;
  Result<std::vector<std::string>> find_strings(std::string_view key) const;

  // The model class, "Qwen3ForCausalLM": the first of `architectures`.
  Result<std::string> architecture() const;

 private:
  struct Impl;
  explicit HfConfig(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace chimere::convert
