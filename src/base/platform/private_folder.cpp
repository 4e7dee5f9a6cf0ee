#include "base/platform/private_folder.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/platform/io_error.h"

namespace chimere {

Result<bool> make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return true;
  if (errno == EEXIST) return false;
  return io_error(path, "cannot create the folder", errno);
}

}  // namespace chimere
