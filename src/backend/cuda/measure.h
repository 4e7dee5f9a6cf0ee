// measure.h  Times on the card itself, for benchmarks.
#pragma once

#include <functional>

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

}  // namespace chimere::cuda
