// file_walk.h  The files below some paths, for commands that take folders.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace chimere::apps {

struct WalkedFile {
  std::string path;  // absolute, without links
  uint64_t bytes = 0;
  int64_t modified = 0;  // seconds since 1970
};

// Sorted by path. Of a folder all files below it, but hidden ones and links; a file that is named itself may be either.
// not_found: there is nothing of one of the names.
Result<std::vector<WalkedFile>> walk_files(const std::vector<std::string>& paths);

// Its content; an error beyond so many bytes.
Result<std::string> read_file(const std::string& path, uint64_t max_bytes);

}  // namespace chimere::apps
