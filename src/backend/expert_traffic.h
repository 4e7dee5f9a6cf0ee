// expert_traffic.h  Figures of experts that are on disk, or in RAM beside a card.
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

// Experts in RAM that a card reads over the bus, and those of them that it has in slots of its own memory, since the
// model was loaded. Uses are those of decode passes.
struct CardTraffic {
  uint64_t n_experts = 0, ram_bytes = 0;  // of all these layers
  uint64_t n_slots = 0, slot_bytes = 0;   // what the card has room for
  uint64_t hits = 0;                      // uses of an expert in a slot
  uint64_t misses = 0;
  uint64_t bytes_read = 0;  // over the bus, for those
  uint64_t moved = 0;       // experts that were taken into a slot
};

}  // namespace chimere
