// step_graphs.cpp  Capturing, keeping and forgetting graphs.
#include "backend/cuda/step_graphs.h"

#include <algorithm>

namespace chimere::cuda {

Status StepGraphs::launch(const Stream& stream, const StepShape& shape, const std::function<Status()>& record) {
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.shape == shape; });
  if (known == entries_.end()) {
    if (entries_.size() == kMost) forget_last();
    entries_.push_front({shape, std::nullopt});
    return record();
  }
  entries_.splice(entries_.begin(), entries_, known);
  Entry& entry = entries_.front();
  if (!entry.graph) {
    TRY_ASSIGN(Graph graph, Graph::capture(stream, record));
    // Without room for the graph the pass still runs, kernel by kernel.
    if (!ledger_.charge(Purpose::graphs, graph.device_bytes())) return record();
    entry.graph.emplace(std::move(graph));
  }
  ++n_launches_;
  return entry.graph->launch(stream);
}

void StepGraphs::forget_last() {
  if (entries_.back().graph) ledger_.discharge(Purpose::graphs, entries_.back().graph->device_bytes());
  entries_.pop_back();
}

void StepGraphs::clear() {
  while (!entries_.empty()) forget_last();
}

size_t StepGraphs::n_graphs() const {
  return static_cast<size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.graph.has_value(); }));
}

}  // namespace chimere::cuda
