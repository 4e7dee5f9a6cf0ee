// measure.cpp  Timing with events around graphs and copies.
#include "backend/cuda/measure.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "backend/cuda/kernels/rows/rows.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/event.h"
#include "backend/cuda/runtime/graph.h"

namespace chimere::cuda {

namespace {

double median(std::vector<double> seconds) {
  if (seconds.empty()) return 0;
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace

Result<GraphTime> time_graph(const Stream& stream, int repeats, const std::function<Status()>& record) {
  TRY_ASSIGN(const Graph graph, Graph::capture(stream, record));
  TRY_ASSIGN(Event begin, Event::create(true));
  TRY_ASSIGN(Event end, Event::create(true));
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds, submit_seconds;
  for (int i = -1; i < repeats; ++i) {
    TRY(begin.record(stream));
    const Clock::time_point start = Clock::now();
    TRY(graph.launch(stream));
    const std::chrono::duration<double> submitted = Clock::now() - start;
    TRY(end.record(stream));
    TRY(stream.synchronize());
    TRY_ASSIGN(const float ms, end.milliseconds_since(begin));
    if (i < 0) continue;
    seconds.push_back(ms / 1e3);
    submit_seconds.push_back(submitted.count());
  }
  return GraphTime{graph.n_nodes(), median(std::move(seconds)), median(std::move(submit_seconds))};
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
