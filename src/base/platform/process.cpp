// process.cpp  For POSIX systems.
#include "base/platform/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace chimere {
namespace {

// The number behind `key` in a file of lines "key number ..."; behind nothing: the first of the file.
std::optional<uint64_t> number_in(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  uint64_t number = 0;
  if (key.empty()) return file >> number ? std::optional(number) : std::nullopt;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (words >> word >> number && word == key) return number;
  }
  return std::nullopt;
}

}  // namespace

uint64_t available_memory_bytes() {
  uint64_t available = number_in("/proc/meminfo", "MemAvailable:").value_or(0) * 1024;
  const auto limit = number_in("/sys/fs/cgroup/memory.max", "");
  const auto used = number_in("/sys/fs/cgroup/memory.current", "");
  if (limit && used) {
    // Pages of files count as used, and go when they are in the way.
    const uint64_t files = number_in("/sys/fs/cgroup/memory.stat", "inactive_file").value_or(0);
    const uint64_t held = *used - std::min(*used, files), left = *limit - std::min(*limit, held);
    available = available == 0 ? left : std::min(available, left);
  }
  return available;
}

uint64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file) return 0;
  unsigned long long total = 0, resident = 0;
  const int n = std::fscanf(file, "%llu %llu", &total, &resident);
  std::fclose(file);
  return n == 2 ? resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

void release_free_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

uint64_t allow_open_files(uint64_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur;
}

}  // namespace chimere
