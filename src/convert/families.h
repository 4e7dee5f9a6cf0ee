// families.h  Which model classes of Hugging Face can be converted, and to which architecture.
#pragma once

#include <span>
#include <string_view>

#include "convert/recipe.h"

namespace chimere::convert {

struct Family {
  std::string_view model_class;   // first entry of "architectures" in config.json
  std::string_view architecture;  // of the GGUF file
  void (*fill)(Recipe&);
};

std::span<const Family> families();

// The family of a checkpoint, or what was expected.
Result<const Family*> find_family(const HfConfig& config);

}  // namespace chimere::convert
