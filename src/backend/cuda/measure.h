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
  double submit_seconds = 0;  // of the host, which waits for nothing: the median too
};

// Of what `record` gives to the stream, captured once and launched `repeats` times.
Result<GraphTime> time_graph(const Stream& stream, int repeats, const std::function<Status()>& record);

// Bytes read and bytes written a second by copies inside the card's memory, of pieces that no cache holds.
Result<double> copy_bandwidth(Ledger& ledger, const Stream& stream);

}  // namespace chimere::cuda
