// calculator.h  The tool "calculator": exact arithmetic for models, which guess digits.
#pragma once

#include <memory>

#include "tools/tool.h"

namespace chimere::tools {

std::shared_ptr<Tool> make_calculator();

}  // namespace chimere::tools
