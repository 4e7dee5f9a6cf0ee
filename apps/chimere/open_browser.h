// open_browser.h  Shows an address in the desktop's browser.
#pragma once

#include <string>

namespace chimere::apps {

// Whether a browser was started. What becomes of it is not waited for, and its words are not ours.
bool open_browser(const std::string& url);

}  // namespace chimere::apps
