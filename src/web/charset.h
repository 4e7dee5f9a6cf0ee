// charset.h  Bytes of a page as UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace chimere::web {

// "utf-8" of `text/html; charset="UTF-8"`, in lower case; empty where there is none.
std::string charset_of_type(std::string_view content_type);

// Valid UTF-8 without NUL, at most three times as long. A byte order mark wins, then `charset`, then what a <meta> of
// the first KiB says, then UTF-8 where the bytes are valid, and windows-1252. A name that we do not know is as none.
std::string decoded_text(std::string_view bytes, std::string_view charset);

}  // namespace chimere::web
