// content_hash.h  The name of an artefact: the SHA-256 of its bytes.
#pragma once

#include <string>
#include <string_view>

namespace chimere::improve {

// 64 hexadecimal digits.
std::string content_hash(std::string_view bytes);
bool is_content_hash(std::string_view text);

}  // namespace chimere::improve
