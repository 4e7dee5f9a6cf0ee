// measure.h  Times on the card itself, for benchmarks, and what the card and its bus can do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "backend/cuda/runtime/ledger.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

struct GraphTime {
  int n_nodes = 0;
  double seconds = 0;         // the median
  double submit_seconds = 0;  // the host's time to submit without waiting, likewise the median
};

// Times what `record` gives to the stream, captured once and launched `repeats` times.
Result<GraphTime> time_graph(const Stream& stream, int repeats, const std::function<Status()>& record);

// Bytes read and written per second by copies inside the card's memory, of pieces too large for any cache.
Result<double> copy_bandwidth(Ledger& ledger, const Stream& stream);

struct CardSpeeds {
  std::string name;
  uint64_t memory_bytes = 0;
  uint64_t free_bytes = 0;
  double copy_bytes_s = 0;  // inside its memory, as copy_bandwidth() has it
  // Over the bus, bytes a second: from and to pinned memory of the host, and any.
  double to_card_pinned = 0, from_card_pinned = 0, to_card = 0, from_card = 0;
};

// Whether there is one that can be used.
bool has_card();
Result<CardSpeeds> measure_card();

}  // namespace chimere::cuda
