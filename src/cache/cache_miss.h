// cache_miss.h  The reasons why a prompt had to be computed.
#pragma once

namespace chimere {

// Why a lookup did not find all that a prompt could have used.
enum class CacheMiss {
  none,         // it did
  empty,        // nothing is kept yet
  changed,      // texts kept here differ from the prompt from some token on
  no_snapshot,  // such a text was seen, but no position before the change was kept
  evicted,      // it was kept, and gave way
  bad_file,     // the file that had it could not be used
  scope,        // it is kept for somebody else
};
inline constexpr int kCacheMisses = 7;
const char* name(CacheMiss miss);

}  // namespace chimere
