// counters.h  What searching and fetching did since the start, for metrics. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace chimere::web {

struct WebCounters {
  std::atomic<uint64_t> searches{0}, searches_failed{0}, searches_from_cache{0};
  std::atomic<uint64_t> pages{0}, pages_failed{0}, pages_from_cache{0};
  std::atomic<uint64_t> refused{0};  // by the guard or by robots.txt; part of pages_failed
  std::atomic<uint64_t> page_bytes{0};
};

}  // namespace chimere::web
