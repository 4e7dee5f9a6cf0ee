// measure.cpp  Timing with events around graphs and copies.
#include "backend/cuda/measure.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "backend/cuda/kernels/rows/rows.h"
#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/device.h"
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

bool has_card() { return device_count() > 0 && probe_device(); }

Result<CardSpeeds> measure_card() {
  TRY_ASSIGN(const DeviceInfo device, probe_device());
  CardSpeeds speeds{device.name, device.memory_bytes, device.free_bytes};
  const uint64_t bytes = std::min<uint64_t>(uint64_t{128} << 20, device.free_bytes / 16);
  Ledger ledger(device.free_bytes);
  TRY_ASSIGN(const Stream stream, Stream::create());
  TRY_ASSIGN(speeds.copy_bytes_s, copy_bandwidth(ledger, stream));
  TRY_ASSIGN(const auto there, DeviceBuffer<std::byte>::create(ledger, Purpose::scratch, bytes));
  TRY_ASSIGN(const auto pinned, PinnedBuffer<std::byte>::create(bytes));
  std::vector<std::byte> plain(bytes);
  const auto copies = [&](void* to, const void* from) -> Result<double> {
    std::vector<double> seconds;
    for (int i = -1; i < 5; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      TRY(stream.copy(to, from, bytes));
      TRY(stream.synchronize());
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (i >= 0) seconds.push_back(took.count());
    }
    return static_cast<double>(bytes) / std::max(median(std::move(seconds)), 1e-9);
  };
  std::fill_n(pinned.data(), bytes, std::byte{1});
  TRY_ASSIGN(speeds.to_card_pinned, copies(there.data(), pinned.data()));
  TRY_ASSIGN(speeds.from_card_pinned, copies(pinned.data(), there.data()));
  TRY_ASSIGN(speeds.to_card, copies(there.data(), plain.data()));
  TRY_ASSIGN(speeds.from_card, copies(plain.data(), there.data()));
  return Result<CardSpeeds>{std::move(speeds)};
}

}  // namespace chimere::cuda
