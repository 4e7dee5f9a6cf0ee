// What a failed call of the operating system becomes: the file, what was tried, and the system's own words.
#pragma once

#include <string>
#include <system_error>

#include "base/result.h"

namespace chimere {

inline Error io_error(const std::string& path, const char* what, int number) {
  return Error{Code::io, path + ": " + what + ": " + std::generic_category().message(number)};
}

}  // namespace chimere
