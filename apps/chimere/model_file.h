// model_file.h  What people give in place of a model's file, and what they can do about it.
#pragma once

#include <string>

#include "base/result.h"

namespace chimere::apps {

// Not found, or a folder: why this is no file of a model, with the nearest thing that would be one. Ok where there is a
// file, whatever is in it.
Status check_model_file(const std::string& given);

}  // namespace chimere::apps
