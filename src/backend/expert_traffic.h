// expert_traffic.h  Figures of experts that are on disk.
#pragma once

#include <cstdint>

namespace chimere {

// Experts on disk (LoadOptions::ram_bytes), and those of them that are in RAM, since the model was loaded.
struct ExpertTraffic {
  uint64_t n_experts = 0, all_bytes = 0;  // of all layers
  uint64_t n_slots = 0, ram_bytes = 0;    // what RAM has room for
  uint64_t hits = 0;                      // uses of an expert that was in RAM, or being read ahead
  uint64_t misses = 0;
  uint64_t read_ahead = 0;  // experts that were read because they were expected
  uint64_t bytes_read = 0;
  double waited_s = 0;  // of all threads, for experts that were being read
};

}  // namespace chimere
