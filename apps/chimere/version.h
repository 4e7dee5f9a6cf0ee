// version.h  What this program is: its number, the commit it was built from, what it can compute with.
#pragma once

#include <string>

namespace chimere::apps {

// "0.1.0"
const char* version_number();
// Lines for people. The same sources give the same text: there is no date in it.
std::string version_text();

}  // namespace chimere::apps
