// measure.cpp  Timing with events around graphs and copies.
#include "backend/cuda/measure.h"

#include <algorithm>
#include <vector>

#include "backend/cuda/kernels/rows.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/event.h"
#include "backend/cuda/runtime/graph.h"

namespace chimere::cuda {

Result<GraphTime> time_graph(const Stream& stream, int repeats, const std::function<Status()>& record) {
  TRY_ASSIGN(const Graph graph, Graph::capture(stream, record));
  TRY_ASSIGN(Event begin, Event::create(true));
  TRY_ASSIGN(Event end, Event::create(true));
  std::vector<double> seconds;
  for (int i = -1; i < repeats; ++i) {
    TRY(begin.record(stream));
    TRY(graph.launch(stream));
    TRY(end.record(stream));
    TRY(stream.synchronize());
    TRY_ASSIGN(const float ms, end.milliseconds_since(begin));
    if (i >= 0) seconds.push_back(ms / 1e3);
  }
  std::sort(seconds.begin(), seconds.end());
  return GraphTime{graph.n_nodes(), seconds.empty() ? 0 : seconds[seconds.size() / 2]};
}

Result<double> copy_bandwidth(Ledger& ledger, const Stream& stream) {
  constexpr uint64_t kMostBytes = uint64_t{512} << 20;
  const uint64_t bytes = std::min(kMostBytes, ledger.free_bytes() / 4) / 16 * 16;
  TRY_ASSIGN(const auto from, DeviceBuffer<std::byte>::create(ledger, Purpose::scratch, bytes));
  TRY_ASSIGN(const auto to, DeviceBuffer<std::byte>::create(ledger, Purpose::scratch, bytes));
  TRY(from.zero(stream));
  TRY_ASSIGN(const GraphTime time,
             time_graph(stream, 5, [&] { return copy_bytes(stream, from.data(), to.data(), bytes); }));
  return time.seconds > 0 ? 2.0 * static_cast<double>(bytes) / time.seconds : 0.0;
}

}  // namespace chimere::cuda
