// check.h  CHECK for broken invariants of our own: aborts in every build. Never reachable from input.
#pragma once

namespace chimere {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}  // namespace chimere

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) ::chimere::check_failed(#condition, __FILE__, __LINE__); \
  } while (0)

#ifdef NDEBUG
#define DCHECK(condition)    \
  do {                       \
    (void)sizeof(condition); \
  } while (0)
#else
#define DCHECK(condition) CHECK(condition)
#endif
