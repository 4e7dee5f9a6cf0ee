#include "base/platform/executable_path.h"

#include <vector>

#include "base/platform/windows/files.h"

namespace chimere {

std::string executable_folder() {
  std::vector<wchar_t> path(32'768);  // the longest there is
  const DWORD n = GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size()));
  if (n == 0 || n == path.size()) return "";
  const std::string program = windows::narrow({path.data(), n});
  const size_t end = program.find_last_of("\\/");
  return end == std::string::npos ? "" : program.substr(0, end);
}

}  // namespace chimere
