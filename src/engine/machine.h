// machine.h  What this machine can do, measured: memory, products by weight format, disk, card. Everything that a forecast
// of a model's speed needs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace chimere::engine {

struct ThreadsSpeed {
  int threads = 0;
  double bytes_s = 0;
};

// Of a matrix of this format with all threads.
struct ProductSpeed {
  DType type = DType::F16;
  double decode_bytes_s = 0;  // of packed weights that come from RAM, for one row
  double cached_bytes_s = 0;  // of those that fit into the caches
  double prompt_flop_s = 0;   // two for each weight and row, many rows at a time
  double expert_flop_s = 0;   // the same of kExpertRows rows, as many as an expert has of a slice of a prompt
};

inline constexpr int kExpertRows = 16;

struct DiskSpeed {
  std::string folder;
  double sequential_bytes_s = 0;
  double random_bytes_s = 0;  // reads of kExpertRead bytes, kReadsInFlight at a time
  bool is_direct = false;     // the page cache had no part in it
};
inline constexpr uint64_t kExpertRead = 1'310'720;  // about the three matrices of an expert
inline constexpr int kReadsInFlight = 8;

struct CardSpeed {
  std::string name;
  uint64_t memory_bytes = 0;
  uint64_t free_bytes = 0;
  double copy_bytes_s = 0;  // inside its memory, bytes read and bytes written
  // Over the bus: from memory that the card reads itself, and from any.
  double to_card_pinned = 0, from_card_pinned = 0, to_card = 0, from_card = 0;
};

struct HostFacts {
  std::string processor;
  std::string isa;  // the instruction set that is used
  int cores = 0;
  uint64_t ram_bytes = 0;
  uint64_t cache_bytes = 0;  // of the last level

  bool operator==(const HostFacts&) const = default;
};

struct Machine {
  std::string measured;  // when, as 2026-11-18T11:22:00Z
  HostFacts host;
  int threads = 0;                // that products and barriers are of; 0: one per core
  std::vector<ThreadsSpeed> ram;  // what threads read together; the last one is of as many
  std::vector<ProductSpeed> products;
  double barrier_s = 0;  // that all threads wait for one another once
  std::optional<DiskSpeed> disk;
  std::string disk_problem;  // why there is none
  std::optional<CardSpeed> card;

  double ram_bytes_s() const { return ram.empty() ? 0 : ram.back().bytes_s; }
  const ProductSpeed* product(DType type) const;
};

// Asks the system, measures nothing.
HostFacts host_facts();

// Parts of a machine. n_threads 0: one per core.
void measure_ram(Machine& machine, int n_threads);
// REQUIRES: a type of weights that the CPU multiplies with (cpu::PackedMatrix::supports).
ProductSpeed measure_product(DType type, int n_threads);
double measure_barrier(int n_threads);
// Writes a file of `bytes` into the folder and reads it; nothing of it stays, whatever happens.
Result<DiskSpeed> measure_disk(const std::string& folder, uint64_t bytes);
// Nothing where there is no card, or the build has no CUDA.
Result<std::optional<CardSpeed>> measure_card();

// The formats that files on people's disks have most.
const std::vector<DType>& usual_formats();

}  // namespace chimere::engine
