// step_graphs.h  Graphs of decode steps and of replays, one for each shape that keeps coming back.
//
// A shape is launched kernel by kernel when it is seen first and captured when it is seen again: tails of prompts come
// in many shapes once, decoding comes in few of them thousands of times. The graphs used last are kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cuda/drawing.h"
#include "backend/cuda/pass_shape.h"
#include "backend/cuda/runtime/graph.h"
#include "backend/cuda/runtime/ledger.h"

namespace chimere::cuda {

// A pass, and what is drawn from its logits in the same graph; then the passes of a chain of drafts, each over what was
// drawn in the one before.
struct StepShape {
  PassShape pass;
  DrawShape draws;
  std::vector<PassShape> chain = {};
  bool row_hidden = false;  // hidden vectors of all rows go to the host

  bool operator==(const StepShape&) const = default;
};

// A replay of recorded inputs (Executable::replay): the same launches whenever a draft of the sequence has as many tokens
// left.
struct ReplayShape {
  float* recurrent;
  const float* recorded;
  int n_tokens;

  bool operator==(const ReplayShape&) const = default;
};

template <class Shape>
class ShapeGraphs {
 public:
  // Drafts come in up to 16 numbers of rows, their passes in as many and in several depths.
  static constexpr size_t kMost = 96;

  explicit ShapeGraphs(Ledger& ledger) : ledger_(ledger) {}
  ~ShapeGraphs() { clear(); }
  ShapeGraphs(const ShapeGraphs&) = delete;

  // Gives the stream what `record` gives it, which depends on the shape alone.
  Status launch(const Stream& stream, const Shape& shape, const std::function<Status()>& record) {
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
      // Without room for the graph the work is still done, kernel by kernel.
      if (!ledger_.charge(Purpose::graphs, graph.device_bytes())) return record();
      entry.graph.emplace(std::move(graph));
    }
    ++n_launches_;
    return entry.graph->launch(stream);
  }
  // For when something moved whose address they hold. REQUIRES: the stream is done with them.
  void clear() {
    while (!entries_.empty()) forget_last();
  }

  size_t n_graphs() const {
    return static_cast<size_t>(
        std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.graph.has_value(); }));
  }
  uint64_t n_launches() const { return n_launches_; }  // of graphs

 private:
  struct Entry {
    Shape shape;
    std::optional<Graph> graph;
  };
  void forget_last() {
    if (entries_.back().graph) ledger_.discharge(Purpose::graphs, entries_.back().graph->device_bytes());
    entries_.pop_back();
  }

  Ledger& ledger_;
  std::list<Entry> entries_;  // used last in front
  uint64_t n_launches_ = 0;
};

using StepGraphs = ShapeGraphs<StepShape>;

}  // namespace chimere::cuda
