// owner_folder.h  The folder of what a key keeps on this server, below that of everybody's.
#pragma once

#include <string>
#include <string_view>

namespace chimere::server {

inline constexpr std::string_view kKeyFolder = "key-";
inline constexpr std::string_view kFolderWithoutKeys = "everybody";

// `owner`: the name of a key; empty where there are none. With its beginning no name can be that of another folder.
inline std::string owner_folder(const std::string& owner) {
  return owner.empty() ? std::string(kFolderWithoutKeys) : std::string(kKeyFolder) + owner;
}

}  // namespace chimere::server
