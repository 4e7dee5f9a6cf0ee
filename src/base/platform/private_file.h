// private_file.h  Files and folders that nobody but the user who runs us may read: modes 0600 and 0700.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace chimere {

// False when something of that name is there already; nothing is changed then.
Result<bool> make_private_folder(const std::string& path);
// Makes the folder and what is missing above it. Folders that are there already stay as they are.
Status make_private_folders(const std::string& path);

// Puts a line and its end behind what a file holds, and waits for the disk; makes the file when there is none. A line
// that was cut off before, by a crash or a full disk, is ended first, so that it spoils itself alone; what of this one
// can not be written is taken back. Several lines with newlines between them are one wait.
Status append_private_line(const std::string& path, std::string_view line);

}  // namespace chimere
