// What a failed call of the operating system becomes: the file, what was tried, and the system's own words.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "base/result.h"

namespace chimere {

inline Error io_error(const std::string& path, const char* what, int number) {
  const Code code = number == ENOENT ? Code::not_found : Code::io;
  return Error{code, path + ": " + what + ": " + std::generic_category().message(number)};
}

}  // namespace chimere
