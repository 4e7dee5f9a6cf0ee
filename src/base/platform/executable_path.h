// executable_path.h  Where the running program lies, to find what was installed or cloned beside it.
#pragma once

#include <string>

namespace chimere {

// The folder of the running executable, links resolved; empty when the system does not tell.
std::string executable_folder();

}  // namespace chimere
